"""The contract of agent runtimes as cases that run against any of them."""
