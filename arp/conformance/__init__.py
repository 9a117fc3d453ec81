"""The contract of agent runtimes, as test cases that anyone can run against their own runtime."""
