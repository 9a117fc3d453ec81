"""Transports of the client, one file each; `dial` opens the transport for an address."""
