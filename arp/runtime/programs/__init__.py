"""Adapters for agents that are programs: processes that speak JSON over pipes.

Read `agent_process` (starts every program), `json_rpc_peer` and `program_version`; then one of
`claude`, `codex`, `acp`.
"""
