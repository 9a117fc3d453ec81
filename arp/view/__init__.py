"""What each kind of renderer gets: translated for its profile, encoded once, or all of it anew.

Read in this order: `profile`, `fitting`, `shown_roots`, `translate`, `snapshot`, `chunks`,
`frames`, `view`, `replay`.
"""
