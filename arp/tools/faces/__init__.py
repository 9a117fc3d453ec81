"""How others reach the Tool Agent: HTTP routes, an MCP server, the tools of an app."""
