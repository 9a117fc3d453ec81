"""The one loop: facts are made durable, then delivered; agents run; renderers come and go.

Read in this order: `settings`, `viewer`, `delivery`, `live`, `writer`, `tool`, `turn_counters`,
`saved`, `turn`, `handler`, `runner`, `replay`, `archive`, `states`, `history`, `listing`,
`directory`, `models`, `hub`, `trace`, `peer`.
"""
