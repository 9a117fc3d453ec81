"""Agents of the Agent Client Protocol. Read `messages`, `session`, `acp`."""
