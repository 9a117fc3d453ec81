"""HTTP routes of the server, by subject."""
