"""Who may do what now: sessions, turns, the queue, questions. Events in, facts and effects out.

Read in this order: `projection`, `parcels`, `emission`, `speech`, `log`, `policy`, `effects`,
`session`, `inputs`, `recovery`.
"""
