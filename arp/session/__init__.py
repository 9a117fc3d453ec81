"""Who may do what now: sessions, turns, the queue, questions. Events in, facts and effects out.

Read in this order: `projection`, `recorded`, `redacted`, `text_assembler`, `log`, `policy`,
`effects`, `input_log`, `window`, `branches`, `session_settings`, `session`, `inputs`, `branching`,
`recovery`, `state`.
"""
