"""One session in memory: recording, writing and delivery.

Read `settings`, `live_session`, `writer`, `delivery`; then `cache`, `states` and `archive` (what is
stored beside the log), `files`, `tasks`.
"""
