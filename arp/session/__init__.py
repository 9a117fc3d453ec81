"""One session as a pure state machine: events in, facts and effects out.

Read `turn_states` first: it defines the legal transitions of a turn and of the queue. Then read
`effects`, the folders `recording` and `tracking`, `session`, the folder `input`, and `recovery`.
`README.md` has the complete order.
"""
