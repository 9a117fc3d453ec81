"""Storage of facts: one small interface, implemented in memory and in SQLite, and its blobs.

Read in this order: `store`, `session_list`, `errors`, `memory`; then `sqlite` and its parts
`schema`, `tails`, `journal`, `writer`, `reader`, `lock`, `directory`; then `blobs`, `location`.
"""
