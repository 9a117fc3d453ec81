"""Readers of the ledger: they compute everything from facts and write no facts.

Read `models` (read models: the current state of a session), then `evidence` (exports of a
session: packs, replay cases, reviews, benchmark trials).
"""
