"""Modules of the hub that read the log.

They are independent of each other: `session_reader` (sessions that are not loaded), `replay`
(missed messages), `history` (evicted turns), `models` (read models), `verification` (hash chains),
`player` (playback of a recording).
"""
