"""Commands that read sessions and facts, from a running server or from a ledger file.

Read `reader` (the interface), `server_reader` and `file_reader` (its implementations),
`reader_options`; then the commands: `sessions`, `events`, `feedback`, `evidence` with `packs`,
`ledger_levels`.
"""
