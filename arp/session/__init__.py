"""The state machine of a session: turns, the queue, questions. Events in, facts and effects out.

`turn_states` has the transitions of a turn on one page; `README.md` has the reading order.
"""
