"""What each kind of renderer gets: translated for its profile, encoded once, or whole.

Read in this order: `profile`, `fitting`, `shown_roots`, `inlined`, `translate`, `snapshot`,
`chunks`, `frames`, `view`, `replay`.
"""
