"""Which tools there are: their descriptions, schemas and states, in files."""
