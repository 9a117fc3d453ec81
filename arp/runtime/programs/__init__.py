"""Adapters for agents that are programs: processes that speak JSON over pipes.

Read `agent_process` (starts every program), `json_rpc_peer`, `agent_server` (one process with many
sessions: Codex and ACP) and `program_version`; then one of `claude`, `codex`, `acp`.
"""
