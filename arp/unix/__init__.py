"""Unix sockets: their paths, the process at the other end, and framing.

Read in this order: `socket_path`, `peer_process`, `framed_socket`.
"""
