"""The levels of a ledger, checked against the published schemas."""
