"""The contract of agent runtimes as cases that anyone can run against a runtime."""
