"""Transports: they carry frames and never look into them.

Read in this order: `queue_outbox`, `wire`, `websocket`, `event_stream`, `stdio`, `unix_socket`,
`grpc_stream`.
"""
