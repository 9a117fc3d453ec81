"""The Agent Runtime Interface (ARI): one interface over existing agents.

Read `contract` first: the types, the services and the rules that every runtime keeps. The adapters
are in `programs` (Claude Code, Codex, ACP), `frameworks` (agents of Python frameworks), `plain`
(functions, and the fake for tests) and `remote` (runtimes behind HTTP or gRPC). `turns` makes an
agent of ARP from any runtime, `mcp` offers the tools of MCP servers, and `named` finds a runtime by
its name.
"""
