"""The Agent Runtime Interface (ARI): one interface over existing agents.

Read `contract` first. Adapters: `plain` (a function), `programs` (Claude Code, Codex, ACP),
`frameworks` (LangGraph, OpenAI Agents, Pydantic AI, AG-UI), `remote` (HTTP and gRPC). `turns`
makes an ARP agent of a runtime. `mcp` offers the tools of MCP servers; `named` finds a runtime
by its name.
"""
