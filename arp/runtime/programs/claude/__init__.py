"""Claude Code as an agent runtime. Read `messages`, `process`, `session`, `claude_code`."""
