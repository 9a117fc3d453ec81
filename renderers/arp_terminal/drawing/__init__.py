"""Drawings of components and of the parts of a turn; pure, and they accept any JSON.

Reading order: `props` and `palette` (what may be drawn), `blocks`, `markdown`, then a module for
each kind of component; `turn`, `tool_run` and `permission` draw the parts of a turn.
"""
