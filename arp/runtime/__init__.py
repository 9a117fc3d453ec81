"""The Agent Runtime Interface (ARI): one interface over agents that exist already.

Read `types` (what goes in and out), `services` (what can be called, and the contract), `errors`,
then `feed` (the order of events) and `driven` (what all adapters share). Each adapter is a
module of its own: `claude_code` and `codex` need their extras, `acp` and `function` none. `agent`
makes an ARP agent of a runtime. The README has the order of its files.
"""
