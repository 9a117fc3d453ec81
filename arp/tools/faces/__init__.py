"""Interfaces to the Tool Agent for other programs.

Read `routes` with `openapi` (HTTP), `mcp_face` (an MCP server), `catalog` with `pictures` (tools of
turns and models).
"""
