"""Commands that read a ledger: `sessions`, `events`, `evidence`, `feedback`."""
