"""Exports of a session: evidence packs, replay cases, reviews; and checks of packs.

Read in this order: `manifest`, `sections`, `scope`, `derived`, `fact_lines`; `replay_case`,
`review`, `pacing`; `trajectory`, `trials`, `comparison`; then the files that use the disk:
`pack_writer`, `pack`, `export`, `checking`.
"""
