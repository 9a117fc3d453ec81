"""Turns that a runtime carries out: the only part of `arp.runtime` that knows `Turn`.

Read `linked_session`, `session_commands`, `runtime_messages`, `agent_sessions`; then
`runtime_turn`, `turn_questions`, `late_answers`, `run_facts`; last `agent`, which combines them.
"""
