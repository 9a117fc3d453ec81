"""Connections of renderers and programs, one file for each transport.

HTTP: `sockets` (WebSocket) with `socket_protocol`, `streams` (server-sent events). Others:
`unix_port` with `descriptor_uploads`, `grpc_port` with `grpc_uploads`, `pipes` (standard input
and output).
"""
