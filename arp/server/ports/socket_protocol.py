"""uvicorn's WebSocket protocol, extended to send encoded frames directly.

uvicorn and `websockets` do the handshake, reading, control frames, keepalive and closing. Only
complete data frames, which many sockets share, are written directly to the transport. That requires
that no extension (such as compression) is negotiated.

Pings are answered only while the client reads. Otherwise a client that does not read could make the
server queue a pong for each of its pings. RFC 6455, 5.5.3, permits to omit pongs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from arp.net.connections import ConnectionWatch, MessageProgress
from arp.transport.wire import EXTENSION

if TYPE_CHECKING:
    from arp.transport.wire import Wire

logger = logging.getLogger(__name__)


def _ignore() -> None:
    """Do nothing, because no writer waits for this connection."""


class SocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection, which implements `Wire`."""

    when_writable: Callable[[], None] = staticmethod(_ignore)

    _watch: ConnectionWatch | None = None
    _progress: MessageProgress | None = None

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
        """Process received bytes, and report whether a message is incomplete."""
        super().data_received(data)
        self._note_progress()

    def _note_progress(self) -> None:
        if self._progress is not None:
            # `websockets` buffers an incomplete frame, and uvicorn the frames of a message.
            self._progress.note(is_unfinished=bool(self.frames or self.conn.reader.buffer))

    def handle_ping(self) -> None:
        """Answer pings, unless the client has not read the data sent before."""
        pongs = self.conn.data_to_send()  # always fetched, or they would accumulate in `conn`
        if self.writable.is_set():
            self.transport.write(b"".join(pongs))

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
        return self.writable.is_set() and not (self.close_sent or self.transport.is_closing())

    def write(self, data: bytes) -> None:
        """Write encoded frames; see `Wire.write`."""
        self.transport.write(data)
