"""Readers of the ledger: the state of a session (`models`), and its exports (`evidence`)."""
