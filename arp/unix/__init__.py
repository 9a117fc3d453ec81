"""Unix sockets of this machine: their paths, the process at the other end, and frames on them.

Read in this order: `socket_path`, `peer_process`, `framed_socket`.
"""
