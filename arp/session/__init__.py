"""One session as a pure state machine: events in, facts and effects out.

`turn_states` defines the legal transitions of a turn and of the queue. Read it, then `recording`,
`tracking`, `session`, `input`, `recovery`. `README.md` has the complete order.
"""
