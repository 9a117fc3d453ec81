"""The object dialect: surfaces as objects with versioned interfaces.

Read `messages` (generated), `states`, `wire`, `model`, `connection`; then `agent` and
`plain_agent`, `content` and `renderer`, `display`, `conversation`, `screen`.
"""
