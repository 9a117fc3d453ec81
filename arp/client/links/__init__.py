"""Transports of the client, one file each, and the choice between them."""
