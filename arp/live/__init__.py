"""One session in memory: what is recorded, written and delivered.

Read `settings`, `live_session`, `writer`, `delivery`; then `cache`, `states` and `archive` (what is
stored beside the log), `files`, `tasks`.
"""
