"""WebSocket, as an ASGI application sees it: one message is one frame.

Theory of operation. Sending must cost what the socket costs. As long as the server's transport
takes frames at once, a send is driven to its end on the spot, without a task. The first that has to
wait is finished by a task, and what comes meanwhile queues behind it; when the queue is small again
the viewer is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, MutableMapping
from typing import Any, TypeAlias

from arp.hub.viewer import LOW_WATER_BYTES, Conversation, Drained
from arp.protocol.codec import Encoding
from arp.transport.wire import BINARY, EXTENSION, TEXT, Wire, wire_bytes

logger = logging.getLogger(__name__)

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]

SUBPROTOCOLS: dict[str, Encoding] = {
    "arp.session.v1.json": "json",
    "arp.session.v1.msgpack": "msgpack",
    "arp.session.v1.cbor": "cbor",
}
"""Source: protocol.md 1."""

FLUSH_S = 1.0
"""How long what waits may take to leave before the socket is closed."""


class SocketOutbox:
    """Sends frames over one WebSocket."""

    __slots__ = (
        "_closed",
        "_closing",
        "_opcode",
        "_queue",
        "_send",
        "_task",
        "_wire",
        "buffered",
        "viewer",
    )

    def __init__(self, send: Send, encoding: Encoding, wire: Wire | None = None) -> None:
        self.buffered = 0
        self.viewer: Drained | None = None
        self._send = send
        self._opcode = TEXT if encoding == "json" else BINARY
        self._wire = wire
        self._queue: deque[tuple[Event, int]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._closed = False

    def send(self, frames: list[bytes]) -> None:
        """Sends frames now, or queues them behind what waits."""
        if self._closed:
            return
        wire = self._wire
        if wire is not None and self._task is None and wire.can_write():
            wire.write(wire_bytes(frames, self._opcode))
            return
        for frame in frames:
            event: Event = (
                {"type": "websocket.send", "text": frame.decode()}
                if self._opcode == TEXT
                else {"type": "websocket.send", "bytes": frame}
            )
            if self._task is not None:
                self._queue.append((event, len(frame)))
                self.buffered += len(frame)
            elif not self._closed:
                self._begin(event, len(frame))

    def _begin(self, event: Event, size: int) -> None:
        sending = self._send(event)
        assert isinstance(sending, Coroutine)
        try:
            waits_for = sending.send(None)
        except StopIteration:
            return
        except Exception:  # noqa: BLE001
            # Each server has an error of its own for a peer that is gone; the reading side learns
            # it too and ends the connection.
            self._closed = True
            return
        self.buffered += size
        self._task = asyncio.get_running_loop().create_task(self._go_on(sending, waits_for, size))

    async def _go_on(
        self, sending: Coroutine[Any, Any, None], waits_for: object, size: int
    ) -> None:
        try:
            await _resume(sending, waits_for)
            self.buffered -= size
            while self._queue:
                event, size = self._queue.popleft()
                await self._send(event)
                self.buffered -= size
                if not self._queue or self.buffered < LOW_WATER_BYTES:
                    self._tell()
        except Exception as error:  # noqa: BLE001
            logger.debug("sending ended: %r", error)
            self._closed = True
            self._queue.clear()
        finally:
            self._task = None
        self.buffered = 0
        self._tell()

    def _tell(self) -> None:
        if self.viewer is not None and self.buffered < LOW_WATER_BYTES:
            self.viewer.drained()

    def close(self, code: int, reason: str) -> None:
        """Closes the WebSocket behind what waits."""
        if self._closing is None:
            self._closed = True
            closing = self._close(code, reason)
            self._closing = asyncio.get_running_loop().create_task(closing)

    async def _close(self, code: int, reason: str) -> None:
        if self._task is not None:
            await asyncio.wait([self._task], timeout=FLUSH_S)
        with contextlib.suppress(Exception):
            await self._send({"type": "websocket.close", "code": code, "reason": reason})


@types.coroutine
def _resume(sending: Coroutine[Any, Any, None], waits_for: object) -> Generator[Any, Any, None]:
    """Goes on with a coroutine that has been driven to its first wait."""
    while True:
        try:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001  # a cancel goes into the coroutine
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
    """Serves one accepted handshake until either side ends it."""
    await send({"type": "websocket.accept", "subprotocol": subprotocol})
    outbox = SocketOutbox(send, encoding, scope.get("extensions", {}).get(EXTENSION))
    peer = make_peer(outbox)
    outbox.viewer = peer.viewer
    peer.start()
    try:
        while True:
            event = await receive()
            if event["type"] == "websocket.disconnect":
                return
            text = event.get("text")
            await peer.receive(text if text is not None else event["bytes"])
    finally:
        peer.closed()
