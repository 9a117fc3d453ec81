"""Runtimes without a framework: a Python function, and the fake for tests."""
