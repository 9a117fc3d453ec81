"""Frames for renderers: live, translated for their profile, or as a snapshot; encoded once.

Read in this order: `profile`, `fitting`, `shown_roots`, `inlined`, `translate`, `snapshot`,
`chunks`, `frames`, `view`, `replay`.
"""
