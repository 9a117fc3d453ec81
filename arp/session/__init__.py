"""Who may do what now: sessions, turns, the queue, questions. Pure: events in, facts and effects out.

Read in this order: `emission`, `projection`, `effects`, `session`, `inputs`, `recovery`.
"""
