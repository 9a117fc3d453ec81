"""Unix sockets of this machine: where they are, who is at the other end, and frames on them.

Read in this order: `socket_path`, `peer_process`, `framed_socket`.
"""
