"""Storage of facts: one small interface, implemented in memory and in SQLite, and its blobs.

Read in this order: `store`, `batch`, `session_list`, `errors`, `memory`; then `sqlite` with its
parts `schema`, `tails`, `journal`, `writer`, `reader`, `lock`, `directory`; `blobs`, `location`.
"""
