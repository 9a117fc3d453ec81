"""The object dialect: surfaces as objects with versioned interfaces.

Read `model`, `messages`, `states`, `wire`, `connection`; then `agent` and `renderer`.
"""
