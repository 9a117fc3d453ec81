"""An outbox that one task empties, for transports whose writing side is a loop."""

from __future__ import annotations

import asyncio
from collections import deque

from arp.live.outbox import LOW_WATER_BYTES, Drained


class QueueOutbox:
    """Holds frames until `take` returns them."""

    def __init__(self) -> None:
        self.buffered = 0
        self.viewer: Drained | None = None
        self.closed: tuple[int, str] | None = None
        """Close code and reason, once either side ended it."""
        self._frames: deque[bytes] = deque()
        self._first: bytes | None = None
        """Is taken before the others."""
        self._ready = asyncio.Event()

    def send(self, frames: list[bytes]) -> None:
        """Append frames."""
        if self.closed is None:
            self._frames.extend(frames)
            self.buffered += sum(map(len, frames))
            self._ready.set()

    def send_first(self, frame: bytes) -> None:
        """Put a frame before the others, in place of one that was put there before."""
        if self.closed is None:
            self.buffered += len(frame) - len(self._first or b"")
            self._first = frame
            self._ready.set()

    def close(self, code: int, reason: str) -> None:
        """Close the outbox; what waits may still be taken."""
        if self.closed is None:
            self.closed = (code, reason)
            self._ready.set()

    def cut(self, code: int, reason: str) -> None:
        """Close the outbox, and drop what waits: who reads it may not see it any more."""
        self.buffered = 0
        self._first = None
        self._frames.clear()
        self.close(code, reason)

    def waiting(self) -> list[bytes]:
        """Return the frames that wait."""
        return [*(() if self._first is None else (self._first,)), *self._frames]

    async def take(self, timeout_s: float | None = None) -> bytes | None:
        """Return the next frame; `None` when the outbox is closed and empty.

        Raises:
            TimeoutError: Nothing came in time.
        """
        while not self._frames and self._first is None:
            if self.closed is not None:
                return None
            self._ready.clear()
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()
        first, self._first = self._first, None
        return first if first is not None else self._frames.popleft()

    def sent(self, frame: bytes) -> None:
        """Note that a frame has left."""
        self.buffered = max(0, self.buffered - len(frame))  # it was cut meanwhile
        if self.viewer is not None and self.buffered < LOW_WATER_BYTES:
            self.viewer.drained()
