"""WebSocket in an ASGI application: one message is one frame.

Theory of operation. Sending must cost little more than the write to the socket. Under ARP's own
server, encoded bytes are written directly to the transport (`Wire`). If the transport cannot accept
more, messages are queued here and sent in pieces of bounded size, each after the previous one was
accepted.

Under another ASGI server, a send is run to its end at once and without a task, as long as it does
not have to wait. A task completes the first send that waits, and sends the frames that are queued
meanwhile. The viewer is notified when the queue is short again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, MutableMapping
from typing import Any, TypeAlias

from arp.live.outbox import LOW_WATER_BYTES, Conversation, DrainListener
from arp.protocol.codec import Encoding
from arp.protocol.framing.envelope import Dialect
from arp.transport.wire import (
    BINARY,
    EXTENSION,
    TEXT,
    Wire,
    WireBacklog,
    one_piece,
)

logger = logging.getLogger(__name__)

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]

SUBPROTOCOLS: dict[str, tuple[Dialect, Encoding]] = {
    "arp.session.v1.json": ("session", "json"),
    "arp.session.v1.msgpack": ("session", "msgpack"),
    "arp.session.v1.cbor": ("session", "cbor"),
    "arp.v1.json": ("object", "json"),
    "arp.v1.msgpack": ("object", "msgpack"),
    "arp.v1.cbor": ("object", "cbor"),
}
"""Dialect and encoding of each subprotocol. Source: protocol.md 1."""

FLUSH_S = 1.0
"""Time in seconds to send the queued frames before the socket is closed."""


class SocketOutbox:
    """Sends frames over one WebSocket."""

    __slots__ = (
        "_backlog",
        "_closed",
        "_closing",
        "_empty",
        "_opcode",
        "_send",
        "_task",
        "_wire",
        "buffered",
        "viewer",
    )

    def __init__(self, send: Send, encoding: Encoding, wire: Wire | None = None) -> None:
        self.buffered = 0
        self.viewer: DrainListener | None = None
        self._send = send
        self._opcode = TEXT if encoding == "json" else BINARY
        self._wire = wire
        self._backlog = WireBacklog(self._opcode)
        self._task: asyncio.Task[None] | None = None
        """Task that completes a waiting send, then sends the queue; always `None` with a wire."""
        self._closing: asyncio.Task[None] | None = None
        self._closed = False
        self._empty: asyncio.Future[None] | None = None
        """Future that is done when the queue for the wire is empty; `close` waits for it."""
        if wire is not None:
            wire.when_writable = self._feed

    def send(self, frames: list[bytes]) -> None:
        """Send frames now, or enqueue them."""
        if self._closed:
            return
        wire = self._wire
        if wire is None:
            for frame in frames:
                self._send_or_queue(frame)
            return
        # This runs for each renderer and commit, so it makes as few calls as possible.
        if not self._backlog.size and wire.can_write():
            piece = one_piece(frames, self._opcode)
            if piece is not None:
                wire.write(piece)
                return
        self._backlog.add(frames)
        self._feed()

    def send_first(self, frame: bytes) -> None:
        """Send a frame now, or enqueue it before the others; it replaces an earlier such frame."""
        if self._closed:
            return
        if self._wire is None and self._task is None:
            self._begin(self._event(frame), len(frame))
            return
        before = self._backlog.size
        self._backlog.add_first(frame)
        if self._wire is not None:
            self._feed()
        else:
            self.buffered += self._backlog.size - before

    def waiting(self) -> list[bytes]:
        """Return the queued frames."""
        return self._backlog.frames()

    # -- with a wire: bytes in bounded pieces, each after the previous one was accepted ------------

    def _feed(self) -> None:
        wire, backlog = self._wire, self._backlog
        assert wire is not None
        before = backlog.size
        while backlog and wire.can_write():
            wire.write(backlog.dequeue_piece())
        self.buffered = backlog.size
        if backlog.size == before:
            return
        if not backlog and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)
        self._notify()

    # -- without a wire: ASGI events ---------------------------------------------------------------

    def _send_or_queue(self, frame: bytes) -> None:
        if self._task is not None:
            self._backlog.add([frame])
            self.buffered += len(frame)
        elif not self._closed:
            self._begin(self._event(frame), len(frame))

    def _event(self, frame: bytes) -> Event:
        if self._opcode == TEXT:
            return {"type": "websocket.send", "text": frame.decode()}
        return {"type": "websocket.send", "bytes": frame}

    def _begin(self, event: Event, size: int) -> None:
        sending = self._send(event)
        assert isinstance(sending, Coroutine)
        try:
            waits_for = sending.send(None)
        except StopIteration:
            return
        except Exception:  # noqa: BLE001
            # Each server raises its own error for a peer that has disconnected. The reading side
            # gets it too and ends the connection.
            self._closed = True
            return
        self.buffered += size
        self._task = asyncio.get_running_loop().create_task(self._finish(sending, waits_for, size))

    async def _finish(
        self, sending: Coroutine[Any, Any, None], waits_for: object, size: int
    ) -> None:
        try:
            # The first part of this send has already run in `_begin`. Awaiting it again is not
            # possible, and a later frame must not overtake it.
            await _resume(sending, waits_for)
            self.buffered -= size
            while self._backlog:
                frame = self._backlog.dequeue()
                await self._send(self._event(frame))
                self.buffered -= len(frame)
                self._notify()
        except Exception as error:  # noqa: BLE001
            logger.debug("sending ended: %r", error)
            self._closed = True
            self._backlog.clear()
        finally:
            self._task = None
        self.buffered = 0
        self._notify()

    def _notify(self) -> None:
        if self.viewer is not None and self.buffered < LOW_WATER_BYTES:
            self.viewer.drained()

    def close(self, code: int, reason: str) -> None:
        """Close the WebSocket after the queued frames are sent."""
        if self._closing is None:
            self._closed = True
            closing = self._close(code, reason)
            self._closing = asyncio.get_running_loop().create_task(closing)

    def cut(self, code: int, reason: str) -> None:
        """Close the WebSocket and drop the queued frames, because the reader has lost access."""
        self._backlog.clear()
        self.buffered = 0
        self.close(code, reason)

    def end(self) -> None:
        """Drop the queued frames after the connection has ended."""
        self._closed = True
        self._backlog.clear()
        self.buffered = 0
        if self._wire is not None:
            del self._wire.when_writable

    async def _close(self, code: int, reason: str) -> None:
        if self._task is not None:
            await asyncio.wait([self._task], timeout=FLUSH_S)
        elif self._backlog:
            self._empty = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._empty], timeout=FLUSH_S)
            self._backlog.clear()
        with contextlib.suppress(Exception):
            await self._send({"type": "websocket.close", "code": code, "reason": reason})


@types.coroutine
def _resume(sending: Coroutine[Any, Any, None], waits_for: object) -> Generator[Any, Any, None]:
    """Resume a coroutine that was started with `send(None)` and waits for `waits_for`."""
    while True:
        try:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001
                # A cancellation must reach the coroutine.
                waits_for = sending.throw(error)
            else:
                waits_for = sending.send(sent)
        except StopIteration:
            return


async def talk(
    scope: Scope,
    receive: Receive,
    send: Send,
    encoding: Encoding,
    subprotocol: str | None,
    make_peer: Callable[[SocketOutbox], Conversation],
) -> None:
    """Accept a WebSocket handshake, and serve the connection until either side ends it."""
    await send({"type": "websocket.accept", "subprotocol": subprotocol})
    outbox = SocketOutbox(send, encoding, scope.get("extensions", {}).get(EXTENSION))
    peer = make_peer(outbox)
    # An idle connection must not keep in memory what it no longer needs: the function with the
    # objects that it refers to, and the last message (the other `del`).
    del make_peer
    outbox.viewer = peer.viewer
    peer.start()
    try:
        while True:
            event = await receive()
            if event["type"] == "websocket.disconnect":
                return
            text = event.get("text")
            await peer.receive(text if text is not None else event["bytes"])
            del event, text
    finally:
        peer.closed()
        outbox.end()
