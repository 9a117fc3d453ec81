"""Agents of the Agent Client Protocol as runtimes.

Read `messages` (values and their meaning), `history`, `session`, `acp`.
"""
