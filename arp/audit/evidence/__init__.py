"""What is exported of a session: packs, replay cases, reviews; and packs, checked.

Read in this order: `manifest`, `sections`, `scope`, `derived`, `fact_lines`; `replay_case` and
`review`; `trajectory`, `trials`, `comparison`; then `pack_writer`, `pack`, `export`, `checking`.
"""
