"""The control plane: what programs can do with sessions, as Python values and as JSON-RPC 2.0.

Read in this order: `context`, `method`, `facts`; one file for each area: `sessions`, `turns`,
`actions`, `surfaces`, `tasks` with `task_facts`, `exports`, `benchmarks`; then `control`,
`jsonrpc`, `connection`.
"""
