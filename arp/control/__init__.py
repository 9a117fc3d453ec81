"""The control plane: what a program may ask of sessions, as Python and as JSON-RPC 2.0.

Read in this order: `control`, `plane`, `follow`, then an area each: `sessions`, `turns`, `actions`,
`tasks`; then the JSON-RPC face: `jsonrpc`, `refusals`, `methods`, `connection`.
"""
