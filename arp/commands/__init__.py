"""Commands of `arp` that read what happened: `sessions`, `events`, `evidence`, `replay`.

Read in this order: `output`, `reader`, `server_reader`, `file_reader`, `sessions`, `events`; then
`evidence` with `exporting` and `verifying`; `replay` with `playing`.
"""
