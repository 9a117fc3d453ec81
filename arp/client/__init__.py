"""A client for asyncio programs: it keeps one session connected and the state of its screen.

Read in this order: `client`, `options`, `address`; `events`, `callbacks`, `watch`; `inputs`,
`uploads`; `driver`, `link`; `links`; `errors`.
"""
