"""Remote runtimes: client and server over HTTP and gRPC.

Read `remote` (shared by the clients), then `http_runtime` with `http_gateway`, or `grpc_runtime`
with `grpc_server` and `grpc_status`; `tls`. `proto_fields` and `proto_codec` write and read
Protocol Buffers; `make gen` writes `methods` and `proto_numbers.json`.
"""
