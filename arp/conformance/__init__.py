"""The contract of agent runtimes as cases, and the levels of a ledger: for anyone's."""
