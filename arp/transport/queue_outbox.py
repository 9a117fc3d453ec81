"""An outbox that one task empties: for transports whose writing side is a loop of its own."""

from __future__ import annotations

import asyncio
from collections import deque

from arp.hub.viewer import LOW_WATER_BYTES, Drained


class QueueOutbox:
    """Keeps frames until `take` asks for them."""

    def __init__(self) -> None:
        self.buffered = 0
        self.viewer: Drained | None = None
        self.closed: tuple[int, str] | None = None
        """Close code and reason, once either side ended it."""
        self._frames: deque[bytes] = deque()
        self._first: bytes | None = None
        """Goes before the others."""
        self._ready = asyncio.Event()

    def send(self, frames: list[bytes]) -> None:
        """Keeps frames."""
        if self.closed is None:
            self._frames.extend(frames)
            self.buffered += sum(map(len, frames))
            self._ready.set()

    def send_first(self, frame: bytes) -> None:
        """Keeps a frame to be taken next, in place of one that was to be."""
        if self.closed is None:
            self.buffered += len(frame) - len(self._first or b"")
            self._first = frame
            self._ready.set()

    def close(self, code: int, reason: str) -> None:
        """Ends the outbox behind what waits."""
        if self.closed is None:
            self.closed = (code, reason)
            self._ready.set()

    def waiting(self) -> list[bytes]:
        """Gives the frames that wait."""
        return [*(() if self._first is None else (self._first,)), *self._frames]

    async def take(self, timeout_s: float | None = None) -> bytes | None:
        """Gives the next frame; `None` when the outbox is closed and empty.

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
        """Takes note that a frame has left."""
        self.buffered -= len(frame)
        if self.viewer is not None and self.buffered < LOW_WATER_BYTES:
            self.viewer.drained()
