"""Codex as an agent runtime.

Read `messages` (pure functions), `questions`, `server` (the process and its threads), `codex`.
"""
