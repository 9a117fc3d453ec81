"""Limits on the connections of an HTTP server: their number, the time for a request, and stalls.

Theory of operation. uvicorn waits forever for the rest of a request. Here a connection is
*unfinished* until its request is complete, and an unfinished connection has a deadline. One timer
closes the connections that have missed it. If an address has too many unfinished connections, the
timer closes those that have waited longest, so that half-open connections cannot block the server.

The kernel gives a new connection the lowest free descriptor, so this number shows how many
descriptors the whole process uses. Above a limit, a new connection is answered with 503. The
remaining descriptors stay free for the ledger, for files and for agents.

A WebSocket with an incomplete message and a Unix socket with an incomplete frame are unfinished
too. All of this applies where ARP itself listens. If another ASGI server serves the application,
that server is responsible for such limits.

A renderer that stops reading keeps its connection open, and TCP never times out. A graceful close
would wait until the renderer reads, so the connection is aborted. A slow renderer is not affected,
because every byte that it receives is progress. On Linux, progress is the number of acknowledged
bytes; on other systems, it is a shorter write buffer of the transport.
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
"""Part of a request that is awaited: nothing, the headers, the body, or the rest of a body that is
discarded because the answer has been sent."""

MAX_TICK_S: Final = 1.0
WARN_EVERY_S: Final = 60.0


def answer(status: str, reason: str, *headers: str) -> bytes:
    """Return a complete HTTP response that refuses a request and closes the connection."""
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
    """Address of the client, for the limits per address."""

    def check_deadline(self, now: float) -> None:
        """Close the connection if its deadline has passed."""

    def abort(self) -> None:
        """Close the connection at once."""

    def waited_s(self, now: float) -> float:
        """Return the seconds since its deadline was last extended."""

    def eviction_key(self) -> tuple[bool, float]:
        """Return a sort key; the connection with the lowest key is closed first.

        Connections without complete headers come first, then those with the earliest deadline.
        """


class ConnectionWatch:
    """Counts the connections of a server, and closes late unfinished connections.

    Args:
        bounds: Limits of the server.
        max_descriptors: Limit of the process's open descriptors; `None` means no limit.
        proxies: Addresses of trusted proxies.
    """

    def __init__(
        self,
        bounds: Bounds,
        max_descriptors: int | None,
        proxies: TrustedProxies | None = None,
    ) -> None:
        self.bounds = bounds
        self.proxies = proxies or TrustedProxies()
        """Addresses that many clients share; the limits per address do not apply to them."""
        self.unfinished: dict[str, dict[IncompleteConnection, None]] = {}
        """Unfinished connections by address."""
        self.connections: Counter[str] = Counter()
        """Number of open connections by address."""
        self._most = usable_descriptors(bounds, max_descriptors)
        self._tick_s = min(MAX_TICK_S, bounds.header_s / 4, bounds.body_s / 4)
        self._timer: asyncio.TimerHandle | None = None
        self._warned_at = float("-inf")

    def refusal(self, address: str, descriptor: int) -> bytes | None:
        """Return the answer that refuses a new connection; `None` if the limits allow it.

        Called before the connection is counted by `joined`.

        Args:
            address: Address of the client; empty for a trusted proxy.
            descriptor: Descriptor of the connection.
        """
        if self.is_full(descriptor):
            return FULL
        most, bound = self._most, self.bounds.max_connections_per_address
        if most is not None:  # a single address must not occupy all descriptors
            bound = min(bound, most * 3 // 4)
        if address and self.connections[address] >= bound:
            self._warn(f"{address} has {bound} connections, as many as it may have")
            return TOO_MANY
        return None

    def is_full(self, descriptor: int) -> bool:
        """Return whether the descriptor of a new connection belongs to those that are kept free."""
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
        """Count an open connection."""
        self.connections[address] += 1

    def left(self, address: str) -> None:
        """Stop counting a connection, because it was closed."""
        self.connections[address] -= 1
        if not self.connections[address]:
            del self.connections[address]

    def begin(self, connection: IncompleteConnection) -> None:
        """Start to check the deadline of a connection."""
        self.unfinished.setdefault(connection.address, {})[connection] = None
        if self._timer is None:
            self._wait()

    def end(self, connection: IncompleteConnection) -> None:
        """Stop checking a connection, because its request is complete or it was closed."""
        mine = self.unfinished.get(connection.address)
        if mine is not None:
            mine.pop(connection, None)
            if not mine:
                del self.unfinished[connection.address]

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._check)

    def _check(self) -> None:
        """Close late connections; if an address has too many, close its surplus connections too."""
        now = asyncio.get_running_loop().time()
        for address, mine in list(self.unfinished.items()):
            for connection in list(mine):
                connection.check_deadline(now)
            if address and len(mine) > self.bounds.max_unfinished_per_address:
                self._thin_out(mine, now)
        self._timer = None
        if self.unfinished:
            self._wait()

    def _thin_out(self, mine: dict[IncompleteConnection, None], now: float) -> None:
        """Close the connections of an address that have waited longest, down to the limit."""
        # A browser opens many connections at once. Their requests have arrived but may not have
        # been read yet, so connections younger than one tick are never closed here.
        waiting = [one for one in mine if one.waited_s(now) >= self._tick_s]
        waiting.sort(key=lambda one: one.eviction_key())
        for connection in waiting[: len(mine) - self.bounds.max_unfinished_per_address]:
            connection.abort()


@runtime_checkable
class WatchedSocket(Protocol):
    """A WebSocket protocol that reports unfinished messages and its end to a watch."""

    def watch_with(self, watch: ConnectionWatch, address: str) -> None:
        """Report to a watch from now on; call `watch.left(address)` when the connection ends."""


class MessageProgress:
    """The deadline of an incomplete message or frame; every received byte extends it.

    Args:
        watch: Watch that checks the deadline.
        address: Address of the client, for the limits per address.
        abort: Closes the connection.
        is_held: Returns whether this side has paused reading; the deadline is then extended,
            because the delay is not the client's fault.
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
        """Record that bytes were received, and whether the last message is incomplete."""
        if is_unfinished:
            now = asyncio.get_running_loop().time()
            self._deadline = now + self._watch.bounds.body_s
        if is_unfinished != self._is_begun:
            self._is_begun = is_unfinished
            (self._watch.begin if is_unfinished else self._watch.end)(self)

    def check_deadline(self, now: float) -> None:
        """See `IncompleteConnection.check_deadline`."""
        if self._is_held():
            self._deadline = now + self._watch.bounds.body_s
        if now >= self._deadline:
            self.abort()

    def abort(self) -> None:
        """See `IncompleteConnection.abort`."""
        self.note(is_unfinished=False)
        self._abort()

    def waited_s(self, now: float) -> float:
        """See `IncompleteConnection.waited_s`."""
        return now - self._deadline + self._watch.bounds.body_s

    def eviction_key(self) -> tuple[bool, float]:
        """See `IncompleteConnection.eviction_key`."""
        return True, self._deadline


class WatchedHttp(HttpBase):
    """uvicorn's HTTP protocol with a `ConnectionWatch`; a mixin for both parsers of uvicorn."""

    watch: ConnectionWatch
    address = ""
    _phase: Phase = "done"
    _deadline = 0.0
    _header_bytes = 0
    _known: Any = None
    """uvicorn's object of the newest request with complete headers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, or refuse it."""
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple) and peer[0] not in self.watch.proxies:
            self.address = counted_address(peer[0])
        descriptor = transport.get_extra_info("socket").fileno()
        refusal = self.watch.refusal(self.address, descriptor)
        self.watch.joined(self.address)
        if refusal is not None:
            transport.write(refusal)
            transport.close()
            return
        self._expect("header")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        self._expect("done")
        self.watch.left(self.address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and update the deadline."""
        super().data_received(data)
        successor = self.transport.get_protocol()
        if successor is self:
            self._note(len(data))
            return
        # The connection has become a WebSocket: `connection_lost` will be called on the successor
        # only, so the successor must count the connection from now on.
        self._expect("done")
        if isinstance(successor, WatchedSocket):
            successor.watch_with(self.watch, self.address)
        else:
            self.watch.left(self.address)

    def on_response_complete(self) -> None:
        """Update the deadline for the next request, which may have arrived before this answer."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._note(0)

    def _note(self, size: int) -> None:
        cycle = self.cycle  # uvicorn makes a new cycle when the headers of a request are complete
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
        """See `IncompleteConnection.waited_s`."""
        bounds = self.watch.bounds
        return (
            now - self._deadline + (bounds.header_s if self._phase == "header" else bounds.body_s)
        )

    def eviction_key(self) -> tuple[bool, float]:
        """See `IncompleteConnection.eviction_key`."""
        return self._phase != "header", self._deadline

    def check_deadline(self, now: float) -> None:
        """See `IncompleteConnection.check_deadline`."""
        is_held = self.flow.read_paused and not self.transport.is_closing()
        if is_held:  # the application has paused reading, so the delay is not the client's fault
            self._deadline = max(self._deadline, now + self.watch.bounds.body_s)
        if now >= self._deadline:
            self.drop()

    def abort(self) -> None:
        """Close the connection at once."""
        self._expect("done")
        self.transport.abort()

    def drop(self) -> None:
        """Close the connection; answer an incomplete request first."""
        if self.transport.is_closing():  # the client has not read the last answer either
            self.abort()
            return
        begun = self._phase == "body" or (self._phase == "header" and self._header_bytes > 0)
        self._close(TOO_LATE if begun else b"")

    def _close(self, answer: bytes) -> None:
        cycle = self.cycle
        if answer and (cycle is None or cycle.response_complete or not cycle.response_started):
            self.transport.write(answer)
        self._deadline = 0.0  # the next check aborts the connection if `close` is still waiting
        self.transport.close()


def watched_http(watch: ConnectionWatch, base: type[asyncio.Protocol] = AutoHTTPProtocol) -> Any:
    """Return a protocol class for uvicorn that reports to a watch."""
    return type("WatchedHttpProtocol", (WatchedHttp, base), {"watch": watch})


def descriptor_limit() -> int | None:
    """Return the limit of open descriptors of this process; `None` if there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def usable_descriptors(bounds: Bounds, limit: int | None) -> int | None:
    """Return the number of descriptors that connections may use; the others are kept free."""
    return None if limit is None else limit - min(bounds.spare_descriptors, limit // 4)


# -- stalls ------------------------------------------------------------------------------------

CHECKS_PER_STALL = 4
"""Number of checks within the time after which a connection counts as stalled."""

_ACKNOWLEDGED: Final = slice(120, 128)
"""Bytes of `tcpi_bytes_acked` in `struct tcp_info` (linux/tcp.h)."""


class ServerConnection(Protocol):
    """A connection in uvicorn's set of connections."""

    transport: Any
    """asyncio's transport; `None` until the connection is made."""


class _WriteProgress(NamedTuple):
    waits: int
    """Bytes in the write buffer of the transport."""
    acknowledged: int
    """Bytes that the client has acknowledged; 0 if the system does not report them."""
    since: float
    """Loop time of the last progress."""


class Stalls:
    """Aborts the connections of clients that have stopped reading.

    Args:
        connections: Returns the open connections.
        stall_s: Seconds without progress after which a connection is aborted.
    """

    def __init__(
        self, connections: Callable[[], Iterable[ServerConnection]], stall_s: float
    ) -> None:
        self._connections = connections
        self._stall_s = stall_s
        self._seen: dict[ServerConnection, _WriteProgress] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timer."""
        wait_s = self._stall_s / CHECKS_PER_STALL
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._check)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def in_transports(self) -> int:
        """Return the number of bytes in the write buffers of all transports."""
        return sum(_waiting(one) for one in self._connections())

    def _check(self) -> None:
        self.start()
        now = asyncio.get_running_loop().time()
        before, self._seen = self._seen, {}
        for connection in list(self._connections()):
            waits = _waiting(connection)
            if not waits:
                continue
            seen, acknowledged = before.get(connection), _acknowledged(connection)
            if seen is None or waits < seen.waits or acknowledged > seen.acknowledged:
                self._seen[connection] = _WriteProgress(waits, acknowledged, now)
            elif now - seen.since < self._stall_s:
                self._seen[connection] = seen._replace(waits=waits)
            else:
                logger.info("a client read nothing for %g s; aborting", now - seen.since)
                connection.transport.abort()


def _waiting(connection: ServerConnection) -> int:
    transport = connection.transport
    return transport.get_write_buffer_size() if transport is not None else 0


def _acknowledged(connection: ServerConnection) -> int:
    """Return the number of bytes that the client has acknowledged; 0 if it is not known."""
    option = getattr(socket, "TCP_INFO", None)
    own = connection.transport.get_extra_info("socket")
    if option is None or own is None:
        return 0
    try:
        info = own.getsockopt(socket.IPPROTO_TCP, option, _ACKNOWLEDGED.stop)
    except OSError:  # not TCP
        return 0
    return int.from_bytes(info[_ACKNOWLEDGED], "little")
