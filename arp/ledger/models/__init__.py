"""What a session is now, told from its facts alone: read models that fold one fact at a time.

Read in this order: `reading`, `window`, `span`, then a part each: `turns`, `requests`, `calls`,
`incidents`, `tasks`, `routing`, `evidence`, `benchmark`, `delegation`, `history`, `telemetry`; then
`state` (all parts), `read_model` (the fold), `document` (what is given out).
"""
