"""The process at the other end of a Unix socket, as the kernel reports it."""

from __future__ import annotations

import socket
import struct
import sys
from typing import NamedTuple

_CREDENTIALS = struct.Struct("=iII")
"""`struct ucred` of Linux: process, user, group."""

_LOCAL_PEERCRED, _XUCRED = 0x001, struct.Struct("=II")
"""Of macOS and the BSDs: the version of `struct xucred`, and the user."""


class PeerProcess(NamedTuple):
    """The process at the other end: the one that connected, or the one that listens."""

    uid: int
    """The user that it ran as when it connected or began to listen."""
    pid: int | None
    """The process id; `None` if the system does not say."""


def peer_of(own: socket.socket) -> PeerProcess:
    """Return the process at the other end of a Unix socket.

    Raises:
        OSError: The system does not say; refuse the connection.
    """
    if sys.platform == "linux":
        data = own.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(data)
        return PeerProcess(uid, pid)
    data = own.getsockopt(0, _LOCAL_PEERCRED, _XUCRED.size)  # of level SOL_LOCAL
    _, uid = _XUCRED.unpack(data)
    return PeerProcess(uid, None)
