"""The facts of an agent run, and the rules that each fact must meet.

Read in this order: `fact`, `fact_types`, `payload_fields`, `payloads`, `fact_writer`, `chain`; then
the read models in `arp/audit/models`, which compute the current state of a session from its facts.
"""
