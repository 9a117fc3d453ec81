"""Framing: how messages are separated in a stream of bytes.

Read `frame_parts` (counts before decoding), then one format: `event_stream` (server-sent events),
`length_prefix` (Unix sockets), `envelope` (gRPC, on `protobuf`). `backlog` queues frames for a
connection that accepts no more. `program_output` interprets the terminal output of programs.
"""
