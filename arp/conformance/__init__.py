"""The contract of agent runtimes as cases for anyone's runtime, and the levels of anyone's ledger."""
