"""The author's interface: `Turn`, and its tools, questions, surfaces and memory.

Read `turn`, `tool` with `approval`, `open_question`, `open_surface` (what authors call); then
`host` (what a turn needs of its session) with `pending_changes`, `services` and `surfaces`;
`sync_turn` and `thread` (agents without async).
"""
