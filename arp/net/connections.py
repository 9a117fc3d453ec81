"""Limits on connections of the HTTP server: their number, how long a request takes, and stalls.

Theory of operation. uvicorn waits forever for a request that does not come. Here a connection is
*unfinished* until its request is complete. One timer checks the unfinished ones and closes those
that are late. If an address has too many of them, those that have waited longest are closed, so
that half-open connections do not keep others from being served.

The kernel gives a new connection the lowest free descriptor. So its number says how many are in use
by the whole process: from a certain number on, a new connection gets 503, and the descriptors above
stay free for the ledger, for files and for agents.

A WebSocket whose message has begun and is not complete is unfinished too, and so is a Unix socket
with an unfinished frame. This holds wherever the package listens itself. Under another ASGI server,
that server is responsible.

A renderer that stops reading keeps its socket open, and TCP never times out. To close such a
connection gracefully would mean to wait until it reads, so it is aborted. A slow one is not: any
byte that it takes counts. Linux says how much the other end has acknowledged; elsewhere the buffer
of the transport must have shrunk.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, runtime_checkable

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from arp.access.client_address import TrustedProxies, counted_address
from arp.access.settings import Bounds
from arp.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as HttpBase
else:
    HttpBase = object

logger = logging.getLogger(__name__)

Phase = Literal["done", "header", "body", "rest"]
"""What is still to come: nothing, a request's headers, more of its body, or the rest of a body that
nobody reads any more, since the answer has been sent."""

MAX_TICK_S: Final = 1.0
WARN_EVERY_S: Final = 60.0


def answer(status: str, reason: str, *headers: str) -> bytes:
    """Return a whole answer that ends a connection."""
    payload = {"error": reason, "code": int(ErrorCode.RATE_LIMITED), "retryable": True}
    body = json.dumps({"v": 1, "type": "error", "payload": payload}).encode()
    lines = (
        f"HTTP/1.1 {status}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
        *headers,
    )
    return "\r\n".join((*lines, "", "")).encode() + body


FULL: Final = answer(
    "503 Service Unavailable", "too many connections; try again later", "retry-after: 5"
)
TOO_MANY: Final = answer(
    "429 Too Many Requests", "too many connections from this address", "retry-after: 5"
)
TOO_LATE: Final = answer("408 Request Timeout", "the request did not come in time")
TOO_LONG: Final = answer("431 Request Header Fields Too Large", "the headers are too long")


class IncompleteConnection(Protocol):
    """A connection with an incomplete request, message or frame."""

    address: str
    """For whom it counts."""

    def look(self, now: float) -> None:
        """Close the connection if it is late."""

    def abort(self) -> None:
        """Close the connection at once."""

    def waited_s(self, now: float) -> float:
        """Return how long nothing has come that would extend its deadline."""

    def patience(self) -> tuple[bool, float]:
        """Return a sort key: who sent least of the request, longest ago, comes first."""


class ConnectionWatch:
    """The connections of one server."""

    def __init__(
        self,
        bounds: Bounds,
        max_descriptors: int | None,
        proxies: TrustedProxies | None = None,
    ) -> None:
        self.bounds = bounds
        self.proxies = proxies or TrustedProxies()
        """Whether many clients come from an address, so that it is not counted as one."""
        self.unfinished: dict[str, dict[IncompleteConnection, None]] = {}
        """Connections whose request is not whole, by address."""
        self.connections: Counter[str] = Counter()
        """How many are open, by address."""
        self._most = usable_descriptors(bounds, max_descriptors)
        self._tick_s = min(MAX_TICK_S, bounds.header_s / 4, bounds.body_s / 4)
        self._timer: asyncio.TimerHandle | None = None
        self._warned_at = float("-inf")

    def refusal(self, address: str, descriptor: int) -> bytes | None:
        """Return the answer for a connection for which there is no room; `None` if there is."""
        if self.is_full(descriptor):
            return FULL
        most, bound = self._most, self.bounds.max_connections_per_address
        if most is not None:
            bound = min(bound, most * 3 // 4)
        if address and self.connections[address] > bound:
            self._warn(f"{address} has {bound} connections, as many as it may have")
            return TOO_MANY
        return None

    def is_full(self, descriptor: int) -> bool:
        """Return whether a new connection has one of the descriptors that stay free."""
        if self._most is None or descriptor < self._most:
            return False
        self._warn(f"{descriptor} descriptors are in use; raise the limit (ulimit -n)")
        return True

    def _warn(self, why: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._warned_at >= WARN_EVERY_S:
            self._warned_at = now
            logger.warning("a connection was refused: %s", why)

    def joined(self, address: str) -> None:
        """Count a connection."""
        self.connections[address] += 1

    def left(self, address: str) -> None:
        """Count a connection no longer."""
        self.connections[address] -= 1
        if not self.connections[address]:
            del self.connections[address]

    def begin(self, connection: IncompleteConnection) -> None:
        """Wait for the rest of a request."""
        self.unfinished.setdefault(connection.address, {})[connection] = None
        if self._timer is None:
            self._wait()

    def end(self, connection: IncompleteConnection) -> None:
        """Stop waiting, because the request is complete or the connection is gone."""
        mine = self.unfinished.get(connection.address)
        if mine is not None:
            mine.pop(connection, None)
            if not mine:
                del self.unfinished[connection.address]

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._look)

    def _look(self) -> None:
        """Close connections that are late, and of each address those that are too many."""
        now = asyncio.get_running_loop().time()
        for address, mine in list(self.unfinished.items()):
            for connection in list(mine):
                connection.look(now)
            if address and len(mine) > self.bounds.max_unfinished_per_address:
                self._thin_out(mine, now)
        self._timer = None
        if self.unfinished:
            self._wait()

    def _thin_out(self, mine: dict[IncompleteConnection, None], now: float) -> None:
        """Close those that have waited longest.

        New ones are spared: many may come at once, whose requests are read in a moment.
        """
        waiting = [one for one in mine if one.waited_s(now) >= self._tick_s]
        waiting.sort(key=lambda one: one.patience())
        for connection in waiting[: len(mine) - self.bounds.max_unfinished_per_address]:
            connection.abort()


@runtime_checkable
class WatchedSocket(Protocol):
    """A WebSocket protocol that says when its connection is gone, and when a message is late."""

    def watch_with(self, watch: ConnectionWatch, address: str) -> None:
        """Count for an address in a watch until the connection is gone."""


class MessageProgress:
    """What is still to come of one message or frame: every byte of it extends the deadline.

    Args:
        watch: Closes the connection when it is late.
        address: For whom it counts.
        abort: Closes the connection.
        is_held: Whether this side does not read now, so that it is not the client's fault.
    """

    __slots__ = ("_abort", "_deadline", "_is_begun", "_is_held", "_watch", "address")

    def __init__(
        self,
        watch: ConnectionWatch,
        address: str,
        abort: Callable[[], object],
        is_held: Callable[[], bool],
    ) -> None:
        self.address = address
        self._watch = watch
        self._abort = abort
        self._is_held = is_held
        self._deadline = 0.0
        self._is_begun = False

    def note(self, is_unfinished: bool) -> None:
        """Record that bytes have come, and whether they end within a message."""
        if is_unfinished:
            now = asyncio.get_running_loop().time()
            self._deadline = now + self._watch.bounds.body_s
        if is_unfinished != self._is_begun:
            self._is_begun = is_unfinished
            (self._watch.begin if is_unfinished else self._watch.end)(self)

    def look(self, now: float) -> None:
        """As `IncompleteConnection.look`."""
        if self._is_held():
            self._deadline = now + self._watch.bounds.body_s
        if now >= self._deadline:
            self.abort()

    def abort(self) -> None:
        """As `IncompleteConnection.abort`."""
        self.note(is_unfinished=False)
        self._abort()

    def waited_s(self, now: float) -> float:
        """As `IncompleteConnection.waited_s`."""
        return now - self._deadline + self._watch.bounds.body_s

    def patience(self) -> tuple[bool, float]:
        """As `IncompleteConnection.patience`."""
        return True, self._deadline


class WatchedHttp(HttpBase):
    """uvicorn's HTTP protocol, with either parser, whose connections are watched."""

    watch: ConnectionWatch
    address = ""
    _phase: Phase = "done"
    _deadline = 0.0
    _header_bytes = 0
    _known: Any = None
    """The request whose headers have come, as uvicorn has it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, or refuse it."""
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple) and peer[0] not in self.watch.proxies:
            self.address = counted_address(peer[0])
        self.watch.joined(self.address)
        descriptor = transport.get_extra_info("socket").fileno()
        refusal = self.watch.refusal(self.address, descriptor)
        if refusal is not None:
            transport.write(refusal)
            transport.close()
            return
        self._expect("header")

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection no longer."""
        self._expect("done")
        self.watch.left(self.address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read, and note what is still to come."""
        super().data_received(data)
        heir = self.transport.get_protocol()
        if heir is self:
            self._note(len(data))
            return
        self._expect("done")
        if isinstance(heir, WatchedSocket):
            heir.watch_with(self.watch, self.address)
        else:
            self.watch.left(self.address)

    def on_response_complete(self) -> None:
        """Note what has come of a request that waited behind the answer."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._note(0)

    def _note(self, size: int) -> None:
        cycle = self.cycle
        if cycle is not self._known:
            self._known, self._header_bytes = cycle, 0
        elif self._phase in ("header", "done"):
            self._header_bytes += size
            if self._header_bytes > self.watch.bounds.max_header_bytes:
                self._close(TOO_LONG)
                return
        if cycle is not None and cycle.more_body:
            self._expect("rest" if cycle.response_complete else "body")
        elif cycle is not None and not cycle.response_complete:
            self._expect("done")
        elif size:  # otherwise uvicorn's own keep-alive timer runs
            self._expect("header")

    def _expect(self, phase: Phase) -> None:
        bounds, now = self.watch.bounds, self.loop.time()
        if phase == "body":  # every byte of it extends the deadline
            self._deadline = now + bounds.body_s
        elif phase != self._phase:
            self._deadline = now + (bounds.header_s if phase == "header" else bounds.body_s)
        if phase != self._phase:
            self._phase = phase
            if phase == "done":
                self.watch.end(self)
            else:
                self.watch.begin(self)

    def waited_s(self, now: float) -> float:
        """Return how long nothing has come that would extend its deadline."""
        bounds = self.watch.bounds
        return (
            now - self._deadline + (bounds.header_s if self._phase == "header" else bounds.body_s)
        )

    def patience(self) -> tuple[bool, float]:
        """Return a sort key: who sent least of the request, longest ago, comes first."""
        return self._phase != "header", self._deadline

    def look(self, now: float) -> None:
        """Close the connection if it is late."""
        is_held = self.flow.read_paused and not self.transport.is_closing()
        if is_held:  # the application does not read, so it is not the client's fault
            self._deadline = max(self._deadline, now + self.watch.bounds.body_s)
        if now >= self._deadline:
            self.drop()

    def abort(self) -> None:
        """Close the connection at once."""
        self._expect("done")
        self.transport.abort()

    def drop(self) -> None:
        """Close the connection, with an answer if a request had begun and has none."""
        if self.transport.is_closing():  # the client did not even take the last answer
            self.abort()
            return
        begun = self._phase == "body" or (self._phase == "header" and self._header_bytes > 0)
        self._close(TOO_LATE if begun else b"")

    def _close(self, answer: bytes) -> None:
        cycle = self.cycle
        if answer and (cycle is None or cycle.response_complete or not cycle.response_started):
            self.transport.write(answer)
        self._deadline = 0.0
        self.transport.close()


def watched_http(watch: ConnectionWatch, base: type[asyncio.Protocol] = AutoHTTPProtocol) -> Any:
    """Return the protocol class for uvicorn."""
    return type("WatchedHttpProtocol", (WatchedHttp, base), {"watch": watch})


def descriptor_limit() -> int | None:
    """Return how many descriptors this process may have open; `None` if that is not bounded."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def usable_descriptors(bounds: Bounds, limit: int | None) -> int | None:
    """Return how many descriptors connections may use; the others are kept free."""
    return None if limit is None else limit - min(bounds.spare_descriptors, limit // 4)


# -- stalls ------------------------------------------------------------------------------------

LOOKS = 4
"""How often connections are checked within the time that one may stall."""

_ACKNOWLEDGED: Final = slice(120, 128)
"""Where `tcpi_bytes_acked` stands in `struct tcp_info` (linux/tcp.h)."""


class ServerConnection(Protocol):
    """One connection of a server, as uvicorn keeps it."""

    transport: Any
    """Of asyncio; `None` before it is there."""


class _RequestProgress(NamedTuple):
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
        self._seen: dict[ServerConnection, _RequestProgress] = {}
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
                self._seen[connection] = _RequestProgress(waits, taken, now)
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
