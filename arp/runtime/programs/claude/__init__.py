"""Claude Code as an agent runtime.

Read `messages` (what the program writes), `process`, `asking`, `transcripts`, `session`,
`claude_code`.
"""
