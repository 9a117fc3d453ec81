"""A renderer's end of the wire, for asyncio: a session kept connected, and its screen kept.

Read in this order: `client`, `options`, `events`, `callbacks`, `watch`, `inputs`, `uploads`,
`driver`, `dial`, `link`, `websocket_link`, `sse_link`, `stdio_link`, `errors`.
"""
