"""A renderer's end of the wire, for asyncio: a session kept connected, and its screen kept.

Read in this order: `client`, `options`, `events`, `callbacks`, `driver`, `inputs`, `uploads`,
`watch`, `dial`, `address`, `link`, `websocket_link`, `sse_link`, `sse`, `stdio_link`, `backoff`,
`errors`.
"""
