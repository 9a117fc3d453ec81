"""Agents that are programs: processes that speak JSON over standard input and output.

Read `agent_process` and `json_rpc_peer`, then one of `claude`, `codex`, `acp`.
"""
