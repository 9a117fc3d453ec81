"""Who may do what now: sessions, turns, the queue, questions. Events in, facts and effects out.

What may happen to a turn now stands on one page, `turn_states`; `README.md` has the reading order.
"""
