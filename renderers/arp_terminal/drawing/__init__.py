"""Drawings of components and of the parts of a turn: pure functions that accept any JSON.

Reading order: `props` (reading values), `palette` (styles), `blocks`, `markdown`, then a module for
each kind of component. `turn`, `tool_run` and `permission` draw the parts of a turn.
"""
