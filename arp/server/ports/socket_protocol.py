"""uvicorn's WebSocket protocol, extended to send encoded frames directly.

uvicorn and `websockets` do the handshake, reading, control frames, keepalive and closing. Only
complete data frames, which many sockets share, are written directly to the transport. That requires
that no extension (such as compression) is negotiated.

Pings are answered only while the client reads. Otherwise a client that does not read could make the
server queue a pong for each of its pings. RFC 6455, 5.5.3, allows an endpoint to skip older pings.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from arp.net.connections import ConnectionWatch, MessageProgress
from arp.transport.wire import EXTENSION

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent

    from arp.transport.wire import Wire

logger = logging.getLogger(__name__)


def _ignore() -> None:
    """Do nothing, because no writer waits for this connection."""


class Gate:
    """An `asyncio.Event` for a connection that is idle most of the time.

    An `asyncio.Event` has a deque of its waiters, which takes 760 bytes even if it is empty.
    """

    __slots__ = ("_waiters", "is_open")

    def __init__(self) -> None:
        self.is_open = False
        self._waiters: list[asyncio.Future[None]] = []

    def is_set(self) -> bool:
        """Return whether the gate is open."""
        return self.is_open

    def set(self) -> None:
        """Open the gate and wake all waiters."""
        self.is_open = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def clear(self) -> None:
        """Close the gate."""
        self.is_open = False

    async def wait(self) -> None:
        """Wait until the gate is opened.

        Cancel: Safe.
        """
        if self.is_open:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            self._waiters.remove(waiter)


class ReceivedEvents:
    """The part of `asyncio.Queue` that uvicorn's protocol needs, without the deques of a queue.

    Its four deques take three kilobytes, a tenth of the memory of an idle connection and session.
    """

    __slots__ = ("_events", "_has_events")

    def __init__(self) -> None:
        self._events: deque[ASGIReceiveEvent] | None = None
        """`None` while there are no events."""
        self._has_events = Gate()

    def empty(self) -> bool:
        """Return whether no event waits."""
        return self._events is None

    def put_nowait(self, event: ASGIReceiveEvent) -> None:
        """Append an event."""
        if self._events is None:
            self._events = deque()
        self._events.append(event)
        self._has_events.set()

    async def get(self) -> ASGIReceiveEvent:
        """Wait for the next event and remove it.

        Cancel: Safe; no event is lost.
        """
        while self._events is None:
            await self._has_events.wait()
        event = self._events.popleft()
        if not self._events:
            self._events = None
            self._has_events.clear()
        return event


class SocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection, which implements `Wire`."""

    when_writable: Callable[[], None] = staticmethod(_ignore)

    _watch: ConnectionWatch | None = None
    _progress: MessageProgress | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.queue = cast("asyncio.Queue[ASGIReceiveEvent]", ReceivedEvents())
        self._room = Gate()
        """Open while the transport takes more bytes."""
        self._room.set()
        self.writable = cast("asyncio.Event", self._room)

    def watch_with(self, watch: ConnectionWatch, address: str) -> None:
        """Report the progress of messages; see `WatchedSocket.watch_with`."""
        self._watch = watch
        self._progress = MessageProgress(
            watch, address, self.transport.abort, lambda: self.read_paused
        )
        self._note_progress()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        super().connection_lost(exc)
        if self._watch is not None and self._progress is not None:
            self._progress.note(is_unfinished=False)
            self._watch.left(self._progress.address)
            self._watch = self._progress = None

    def data_received(self, data: bytes) -> None:
        """Process received bytes, and report to the watch whether a message is incomplete."""
        super().data_received(data)
        self._note_progress()

    def _note_progress(self) -> None:
        if self._progress is not None:
            # `websockets` buffers an incomplete frame, and uvicorn the frames of a message.
            self._progress.note(is_unfinished=bool(self.frames or self.conn.reader.buffer))

    def handle_ping(self) -> None:
        """Answer pings, unless the client has not read the data sent before."""
        pongs = self.conn.data_to_send()  # always fetched, or they would accumulate in `conn`
        if self._room.is_open:
            self.transport.write(b"".join(pongs))

    def start_keepalive(self) -> None:
        """Begin to send pings; called when the handshake is complete."""
        super().start_keepalive()
        self.response.headers.clear()  # already sent; they would stay in memory

    async def run_asgi(self) -> None:
        """Serve the application."""
        # The scope already has the headers. `websockets` would keep the request while the
        # connection is open, which costs 1.5 KiB for each idle connection.
        self.request.headers.clear()
        if not self.config.ws_per_message_deflate:
            extensions = cast("dict[str, Wire]", self.scope["extensions"])
            extensions[EXTENSION] = self
        await super().run_asgi()

    def send_receive_event_to_app(self) -> None:
        """Pass a message to the application; close with 1007 if a text is not UTF-8.

        uvicorn would log a traceback for such a text.
        """
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.frames = []
                logger.info("a client sent text that is not UTF-8; its connection is closed")
                self.conn.send_close(1007)
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    def resume_writing(self) -> None:
        """Resume writers; the transport calls this when its buffer is almost empty."""
        super().resume_writing()
        self.when_writable()

    def can_write(self) -> bool:
        """Return whether `write` may be called; see `Wire.can_write`."""
        return self._room.is_open and not (self.close_sent or self.transport.is_closing())

    def write(self, data: bytes) -> None:
        """Write encoded frames; see `Wire.write`."""
        self.transport.write(data)
