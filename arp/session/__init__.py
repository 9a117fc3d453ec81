"""Who may do what now: sessions, turns, the queue, questions. Events in, facts and effects out.

Read in this order: `projection`, `recorded`, `redacted`, `speech`, `log`, `policy`,
`effects`, `seen`, `window`, `branches`, `standing`, `session`, `inputs`, `branching`, `recovery`,
`state`.
"""
