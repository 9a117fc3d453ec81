"""An outbox for transports with one task that writes the frames in a loop."""

from __future__ import annotations

import asyncio

from arp.live.outbox import LOW_WATER_BYTES, DrainListener
from arp.protocol.framing.backlog import Backlog


class QueueOutbox:
    """Queue of frames, from which one task dequeues and sends.

    The task waits for a plain future. An `asyncio.Event` and a timeout for each wait would cost
    half as much as sending a message over gRPC.
    """

    def __init__(self) -> None:
        self.viewer: DrainListener | None = None
        self.closed: tuple[int, str] | None = None
        """Close code and reason, once either side ended it."""
        self._backlog = Backlog()
        self._unsent = 0
        """Bytes of the frames that were dequeued and are not sent yet."""
        self._waiter: asyncio.Future[None] | None = None

    @property
    def buffered(self) -> int:
        """Bytes that are queued or being sent."""
        return self._backlog.size + self._unsent

    def send(self, frames: list[bytes]) -> None:
        """Enqueue frames."""
        if self.closed is None:
            self._backlog.add(frames)
            self._wake()

    def send_first(self, frame: bytes) -> None:
        """Enqueue a frame before the others; it replaces an earlier such frame."""
        if self.closed is None:
            self._backlog.add_first(frame)
            self._wake()

    def close(self, code: int, reason: str) -> None:
        """Close the outbox; the queued frames may still be dequeued."""
        if self.closed is None:
            self.closed = (code, reason)
            self._wake()

    def cut(self, code: int, reason: str) -> None:
        """Close the outbox and drop the queued frames, because the reader has lost access."""
        self._backlog.clear()
        self.close(code, reason)

    def waiting(self) -> list[bytes]:
        """Return the queued frames."""
        return self._backlog.frames()

    async def dequeue(self, timeout_s: float | None = None) -> bytes | None:
        """Wait for the next frame; return `None` if the outbox is closed and empty.

        Raises:
            TimeoutError: No frame was enqueued in time.
        """
        while not self._backlog:
            if self.closed is not None:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            if timeout_s is None:
                await self._waiter
            else:
                async with asyncio.timeout(timeout_s):
                    await self._waiter
        frame = self._backlog.dequeue()
        self._unsent += len(frame)
        return frame

    def record_sent(self, frame: bytes) -> None:
        """Record that a frame was sent, and notify the viewer if the queue is short."""
        self._unsent -= len(frame)
        if self.viewer is not None and self.buffered < LOW_WATER_BYTES:
            self.viewer.drained()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
