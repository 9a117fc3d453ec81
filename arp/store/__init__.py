"""Storage of facts: one small interface, in memory, in SQLite and in PostgreSQL, and its blobs.

Read in this order: `store`, `batch`, `session_list`, `errors`, `memory`; then `sqlite` with its
parts `schema`, `tails`, `journal`, `writer`, `reader`, `lock`, `directory`; then the package
`postgres`, `blobs`, `location`.
"""
