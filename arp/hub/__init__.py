"""The event loop: it runs agents, connects renderers, and delivers facts once they are durable.

Read in this order: `hub` (the interface for servers), `input_applier`, `directory`, `lifetimes`,
`removal`; `runner`, `pushed`, `extension`, `surface_timers`, `user_actions`; `peers` (connections)
and `inbound`; `readers` (they read the log); `transfers` and `transfer_id`.
"""
