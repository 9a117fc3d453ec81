"""The process at the other end of a Unix socket, as the kernel reports it."""

from __future__ import annotations

import socket
import struct
import sys
from typing import NamedTuple

_CREDENTIALS = struct.Struct("=iII")
"""`struct ucred` on Linux: process, user, group."""

_LOCAL_PEERCRED, _XUCRED = 0x001, struct.Struct("=II")
"""Socket option of macOS and the BSDs, and the start of its `struct xucred`: version, user."""


class PeerProcess(NamedTuple):
    """The process at the other end of a connection, either the client or the listener."""

    uid: int
    """User of the process when it connected or began to listen."""
    pid: int | None
    """Process id; `None` if the system does not report it."""


def peer_of(own: socket.socket) -> PeerProcess:
    """Return the process at the other end of a Unix socket.

    Raises:
        OSError: The system does not report it; the caller must refuse the connection.
    """
    if sys.platform == "linux":
        data = own.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(data)
        return PeerProcess(uid, pid)
    data = own.getsockopt(0, _LOCAL_PEERCRED, _XUCRED.size)  # level SOL_LOCAL
    _, uid = _XUCRED.unpack(data)
    return PeerProcess(uid, None)
