"""Transports of the client, one file each, and the choice between them.

Read `dial` (selects the transport), then one transport: `websocket_link`, `sse_link` with
`http_access`, `stdio_link`, `unix_link`, `grpc_link`.
"""
