"""An outbox for transports with one task that writes the frames in a loop."""

from __future__ import annotations

import asyncio
from collections import deque

from arp.live.outbox import LOW_WATER_BYTES, DrainListener


class QueueOutbox:
    """Queue of frames, from which one task dequeues and sends."""

    def __init__(self) -> None:
        self.buffered = 0
        self.viewer: DrainListener | None = None
        self.closed: tuple[int, str] | None = None
        """Close code and reason, once either side ended it."""
        self._frames: deque[bytes] = deque()
        self._first: bytes | None = None
        """Frame that is dequeued before the others."""
        self._ready = asyncio.Event()

    def send(self, frames: list[bytes]) -> None:
        """Enqueue frames."""
        if self.closed is None:
            self._frames.extend(frames)
            self.buffered += sum(map(len, frames))
            self._ready.set()

    def send_first(self, frame: bytes) -> None:
        """Enqueue a frame before the others; it replaces an earlier such frame."""
        if self.closed is None:
            self.buffered += len(frame) - len(self._first or b"")
            self._first = frame
            self._ready.set()

    def close(self, code: int, reason: str) -> None:
        """Close the outbox; the queued frames may still be dequeued."""
        if self.closed is None:
            self.closed = (code, reason)
            self._ready.set()

    def cut(self, code: int, reason: str) -> None:
        """Close the outbox and drop the queued frames, because the reader has lost access."""
        self.buffered = 0
        self._first = None
        self._frames.clear()
        self.close(code, reason)

    def waiting(self) -> list[bytes]:
        """Return the queued frames."""
        return [*(() if self._first is None else (self._first,)), *self._frames]

    async def dequeue(self, timeout_s: float | None = None) -> bytes | None:
        """Wait for the next frame; return `None` if the outbox is closed and empty.

        Raises:
            TimeoutError: No frame was enqueued in time.
        """
        while not self._frames and self._first is None:
            if self.closed is not None:
                return None
            self._ready.clear()
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()
        first, self._first = self._first, None
        return first if first is not None else self._frames.popleft()

    def record_sent(self, frame: bytes) -> None:
        """Record that a frame was sent, and notify the viewer if the queue is short."""
        self.buffered = max(0, self.buffered - len(frame))  # below 0 if `cut` ran meanwhile
        if self.viewer is not None and self.buffered < LOW_WATER_BYTES:
            self.viewer.drained()
