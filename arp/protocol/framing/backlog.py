"""Frames that wait to be sent over one connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class Backlog:
    """Queue of outgoing frames, and one frame that overtakes the others.

    The queue contains the original frames, so that several connections can share them.
    """

    __slots__ = ("_first", "_frames", "size")

    def __init__(self) -> None:
        self._frames: deque[bytes] | None = None
        """Created for the first frame. An empty deque takes 760 bytes; few connections need it."""
        self._first: bytes | None = None
        """Frame that is dequeued before the others."""
        self.size = 0
        """Bytes in the queue."""

    def __bool__(self) -> bool:
        """Return whether the queue has frames."""
        return self._first is not None or bool(self._frames)

    def add(self, frames: Sequence[bytes]) -> None:
        """Enqueue frames."""
        if self._frames is None:
            self._frames = deque()
        self._frames.extend(frames)
        self.size += len(frames[0]) if len(frames) == 1 else sum(map(len, frames))

    def add_first(self, frame: bytes) -> None:
        """Enqueue a frame before the others; it replaces an earlier such frame."""
        self.size += len(frame) - len(self._first or b"")
        self._first = frame

    def frames(self) -> list[bytes]:
        """Return the queued frames in order."""
        return [*(() if self._first is None else (self._first,)), *(self._frames or ())]

    def clear(self) -> None:
        """Drop all frames."""
        self._frames = self._first = None
        self.size = 0

    def dequeue(self) -> bytes:
        """Remove and return the next frame.

        Raises:
            IndexError: The queue is empty.
        """
        frame, self._first = self._first, None
        if frame is None:
            frame = self._waiting().popleft()
        self.size -= len(frame)
        return frame

    def dequeue_most(self, max_bytes: int) -> list[bytes]:
        """Remove and return the next frames that can be sent in one write.

        Args:
            max_bytes: Maximum total size of these frames, in bytes. A larger frame is returned
                alone, and so is a frame that overtakes the others.

        Raises:
            IndexError: The queue is empty.
        """
        if self._first is not None:
            return [self.dequeue()]
        waiting = self._waiting()
        frames = [waiting.popleft()]
        size = len(frames[0])
        while waiting and size + len(waiting[0]) <= max_bytes:
            size += len(waiting[0])
            frames.append(waiting.popleft())
        self.size -= size
        return frames

    def _waiting(self) -> deque[bytes]:
        if self._frames is None:
            raise IndexError("the queue is empty")
        return self._frames
