"""Servers within bounds: what every listener of this package shares.

Read in this order: `connections`, `bounded_server`, `bodies`, `grpc_bounds`. `http_problems` says
what went wrong with a request that this package or a framework made.
"""
