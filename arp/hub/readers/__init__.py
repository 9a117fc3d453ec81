"""Readers of the log.

Read in any order: `session_reader` (sessions that are not loaded), `replay` (missed messages),
`history` (evicted turns), `models` (read models), `verification` (hash chains), `player` (playback
of a recording).
"""
