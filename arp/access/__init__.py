"""Who may come in: settings, users, addresses, and the guard that every transport asks.

Read in this order: `principal`, `incoming`, `oidc`, `settings`, `client_address`, `usage`,
`tokens`, `leases`, `guard`.
"""
