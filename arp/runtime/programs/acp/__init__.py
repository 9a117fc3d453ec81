"""Agents of the Agent Client Protocol as runtimes.

Read `messages` (pure functions), `history`, `session`, `acp`.
"""
