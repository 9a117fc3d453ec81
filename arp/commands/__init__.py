"""What the commands of `arp` do: `sessions`, `events`, `evidence`, `replay`, `serve`.

Read in this order: `output`, `reader`, `server_reader`, `file_reader`, `sessions`, `events`; then
`evidence` with `packs`; `replay` with `playing`; `serve_settings`, `serving_app`, `serving`.
"""
