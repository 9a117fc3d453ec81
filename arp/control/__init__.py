"""The control plane: what a program may do with sessions, as Python and as JSON-RPC 2.0.

Read in this order: `context`, `method`, `facts`, then an area each: `sessions`, `turns`, `actions`,
`tasks`, `exports`, `benchmarks`; then `control`, and its JSON-RPC side: `jsonrpc`, `connection`.
"""
