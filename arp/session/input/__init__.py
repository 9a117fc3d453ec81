"""Inputs, and changes by programs outside of any turn: what they do to a session.

Read in this order: `receive`, `late_input`, `branching`, `outside_change`.
"""
