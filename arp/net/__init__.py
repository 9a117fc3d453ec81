"""Shared infrastructure of network servers: limits that every listener applies.

Read in this order: `connections`, `bounded_server`, `bodies`, `grpc_bounds`, `grpc_library`.
`http_problems` describes failed HTTP requests in plain words; `signer` signs values that are given
out and checked when they return.
"""
