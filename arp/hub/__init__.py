"""The event loop: facts are made durable, then delivered. README.md has the reading order."""
