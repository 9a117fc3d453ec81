"""Unix socket: one length-prefixed frame is one message or an array of messages.

`arp/unix/framed_socket.py` reads and writes; this file adapts it to the hub.
Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from arp.live.outbox import LOW_WATER_BYTES, Conversation, DrainListener
from arp.protocol.framing.length_prefix import prefixed
from arp.unix.framed_socket import PIECE_BYTES, FramedSocket, ReceivedFrame
from arp.view.frames import Frames

FLUSH_S = 1.0
"""Time in seconds to send the queued frames before the socket is closed."""


class UnixOutbox:
    """Sends frames over one Unix socket."""

    __slots__ = ("_closing", "_socket", "viewer")

    def __init__(self, framed: FramedSocket) -> None:
        self.viewer: DrainListener | None = None
        self._socket = framed
        self._closing: asyncio.Task[None] | None = None
        framed.on_sent = self._sent

    @property
    def buffered(self) -> int:
        """Bytes in the queue, without those in the kernel's buffer."""
        return self._socket.buffered

    def send(self, frames: list[bytes]) -> None:
        """Send frames now, or enqueue them."""
        if isinstance(frames, Frames):  # all sockets of a group share the encoded bytes
            piece = frames.prefixed
            if piece is None and sum(map(len, frames)) <= PIECE_BYTES:
                piece = frames.prefixed = prefixed(frames)
            if piece is not None and self._socket.send_now(piece):
                return
        self._socket.send(frames)

    def send_first(self, frame: bytes) -> None:
        """Send a frame now, or enqueue it before the others; it replaces an earlier such frame."""
        self._socket.send_first(frame)

    def waiting(self) -> list[bytes]:
        """Return the queued frames."""
        return self._socket.waiting()

    def close(self, code: int, reason: str) -> None:
        """Close the connection after the queued frames and the reason are sent."""
        if self._closing is None:
            closing = self._socket.close(code, reason, flush_s=FLUSH_S)
            self._closing = asyncio.get_running_loop().create_task(closing)

    def cut(self, code: int, reason: str) -> None:
        """Close the connection and drop the queued frames, because the reader has lost access."""
        self._socket.drop_waiting()
        self.close(code, reason)

    async def closed(self) -> None:
        """Wait until a started close is complete; without one, close the connection at once."""
        if self._closing is not None:
            await asyncio.wait([self._closing])
        self._socket.abort()

    def _sent(self) -> None:
        if self.viewer is not None and self._socket.buffered < LOW_WATER_BYTES:
            self.viewer.drained()


async def talk_framed(
    framed: FramedSocket,
    make_peer: Callable[[UnixOutbox], Conversation],
    receive_files: Callable[[ReceivedFrame], Awaitable[None]],
) -> None:
    """Serve one connection until either side ends it.

    Args:
        framed: The connection; it is closed at the end.
        make_peer: Makes the agent side of the conversation.
        receive_files: Processes a frame with descriptors, and closes the descriptors.
    """
    outbox = UnixOutbox(framed)
    peer = make_peer(outbox)
    outbox.viewer = peer.viewer
    try:
        peer.start()
        while (received := await framed.receive()) is not None:
            if received.descriptors:
                await receive_files(received)
            else:
                await peer.receive(received.data)
        if framed.ended is not None:  # the other end gets the reason, if it still reads
            outbox.close(*framed.ended)
    finally:
        peer.closed()
        await outbox.closed()
