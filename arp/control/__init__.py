"""The control plane: the sessions API for programs, in Python and as JSON-RPC 2.0.

Read in this order: `context`, `method`, `facts`; one file for each area: `sessions`, `turns`,
`actions`, `surfaces`, `tasks` with `task_facts`, `exports`, `benchmarks`; then `control`,
`jsonrpc`, `connection`.
"""
