"""Codex as an agent runtime. Read `messages`, `questions`, `server`, `codex`."""
