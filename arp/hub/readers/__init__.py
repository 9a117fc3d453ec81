"""Readers of the log: missed messages, evicted turns, read models, hash chains, recordings."""
