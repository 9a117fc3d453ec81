"""The one loop: facts are made durable, then delivered. The order to read it is in README.md."""
