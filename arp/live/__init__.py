"""One session in memory: recording, the group commit, and delivery to its renderers.

Read in this order: `settings`, `live_session`, `writer`, `outbox`, `delivery`; then the caches
stored beside the log (`cache`, `states`, `archive`), `files`, `quotas`, `listing`, `tasks` with
`turn_name`, `loop_watch`, `spans`, `trace`.
"""
