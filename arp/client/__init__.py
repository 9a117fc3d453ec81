"""A client for asyncio programs: it keeps one session connected and the state of its screen.

Read in this order: `client`, `options`, `address`; `events`, `callbacks`, `watch`; `inputs`,
`uploads`; `driver`, `dial`, `link`; one transport (`websocket_link`, `sse_link` with
`http_access`, `stdio_link`, `unix_link`, `grpc_link`); `errors`.
"""
