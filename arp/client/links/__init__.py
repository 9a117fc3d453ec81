"""Transports of the client, one file each; `dial` opens the one that an address names."""
