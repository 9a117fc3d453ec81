"""What each renderer receives: messages translated for its profile, encoded once per group.

Read in this order: `profile`, `fitting`, `shown_roots`, `inlined`, `translate`, `snapshot`,
`chunks`, `frames`, `view`, `replay`, `stream_end`. `objects` does the same for the object dialect.
"""
