"""MCP servers as tools of agents.

Read `transport`, `connection`, `tools`.
"""
