"""Transports: they send and receive frames, and do not know their content.

Read in this order: `queue_outbox`, `wire`, `websocket`, `event_stream`, `stdio`, `unix_socket`,
`grpc_stream`.
"""
