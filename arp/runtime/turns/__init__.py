"""Turns of ARP sessions, carried out by a runtime: the only part that knows `Turn`.

Read `agent`, `agent_sessions`, `linked_session`, `runtime_turn`, `turn_questions`.
"""
