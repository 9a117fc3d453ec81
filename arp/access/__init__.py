"""Access control: settings, users, tokens, and the guard that every transport asks.

Read in this order: `principal`, `incoming`, `oidc`, `settings`, `client_address`, `usage`,
`tokens`, `leases`, `own_code`, `guard`. `django` is a hook for Django projects.
"""
