"""Aborts connections whose other end takes nothing, whose data would be kept forever.

Theory of operation. A renderer that stops reading keeps its socket open, and TCP never times out.
To close such a connection gracefully would mean to wait until it reads, so it is aborted. A slow
one is not: any byte that it takes counts. Linux says how much the other end has acknowledged;
elsewhere the buffer of the transport must have shrunk.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol

logger = logging.getLogger(__name__)

LOOKS = 4
"""How often connections are checked within the time that one may stall."""

_ACKNOWLEDGED: Final = slice(120, 128)
"""Where `tcpi_bytes_acked` stands in `struct tcp_info` (linux/tcp.h)."""


class ServerConnection(Protocol):
    """One connection of a server, as uvicorn keeps it."""

    transport: Any
    """Of asyncio; `None` before it is there."""


class _Seen(NamedTuple):
    waits: int
    """Bytes in the transport."""
    taken: int
    """Bytes that the other end has taken, if the system says so."""
    since: float
    """When it last took any."""


class Stalls:
    """Checks all connections of a server at intervals."""

    def __init__(
        self, connections: Callable[[], Iterable[ServerConnection]], stall_s: float
    ) -> None:
        self._connections = connections
        self._stall_s = stall_s
        self._seen: dict[ServerConnection, _Seen] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timer."""
        self._timer = asyncio.get_running_loop().call_later(self._stall_s / LOOKS, self._look)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def in_transports(self) -> int:
        """Return the bytes that all transports hold."""
        return sum(_waiting(one) for one in self._connections())

    def _look(self) -> None:
        self.start()
        now = asyncio.get_running_loop().time()
        before, self._seen = self._seen, {}
        for connection in list(self._connections()):
            waits = _waiting(connection)
            if not waits:
                continue
            seen, taken = before.get(connection), _taken(connection)
            if seen is None or waits < seen.waits or taken > seen.taken:
                self._seen[connection] = _Seen(waits, taken, now)
            elif now - seen.since < self._stall_s:
                self._seen[connection] = seen._replace(waits=waits)
            else:
                logger.info("a connection took nothing for %g s; it is cut", now - seen.since)
                connection.transport.abort()


def _waiting(connection: ServerConnection) -> int:
    transport = connection.transport
    return transport.get_write_buffer_size() if transport is not None else 0


def _taken(connection: ServerConnection) -> int:
    """Return how many bytes the other end has acknowledged; 0 if the system does not say."""
    option = getattr(socket, "TCP_INFO", None)
    own = connection.transport.get_extra_info("socket")
    if option is None or own is None:
        return 0
    try:
        info = own.getsockopt(socket.IPPROTO_TCP, option, _ACKNOWLEDGED.stop)
    except OSError:  # not TCP
        return 0
    return int.from_bytes(info[_ACKNOWLEDGED], "little")
