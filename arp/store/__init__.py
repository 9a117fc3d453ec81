"""Where facts live: one small interface, in memory and in SQLite, and the blobs beside it.

Read in this order: `store`, `session_list`, `errors`, `memory`; then `sqlite` and its parts
`schema`, `tails`, `journal`, `writer`, `reader`, `lock`, `directory`; then `blobs`, `location`.
"""
