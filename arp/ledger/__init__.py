"""What happened: the facts of an agent run, and the rules that each of them must meet.

Read in this order: `fact`, `fact_types`, `payload_fields`, `payloads`, `fact_writer`, `chain`; then
`models`, which tell from the facts what a session is now.
"""
