"""Runtimes without a framework: `function` (an async function) and `fake` (for tests)."""
