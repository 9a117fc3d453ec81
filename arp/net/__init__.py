"""Servers within bounds: what every listener of this package shares.

Read in this order: `connections`, `bounded_server`, `bodies`, `grpc_bounds`.
"""
