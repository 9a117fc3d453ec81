"""What each kind of renderer gets: translated for its profile, encoded once, or all of it anew.

Read in this order: `profile`, `fitting`, `translate`, `snapshot`, `chunks`, `frames`.
"""
