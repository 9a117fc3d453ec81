"""Runtimes over HTTP and gRPC, both ends.

Read `remote`, then `http_runtime` with `http_gateway`, or `grpc_runtime` with `grpc_server`.
"""
