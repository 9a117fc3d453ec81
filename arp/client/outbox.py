"""Frames that wait for the link: inputs in order, and how far this renderer has displayed."""

from __future__ import annotations

import asyncio


class Outbox:
    """A queue with one reader.

    Whoever makes the inputs bounds their number; of acknowledgements it keeps the newest.
    """

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._ack: bytes | None = None
        self._news = asyncio.Event()

    def put(self, frame: bytes) -> None:
        """Add a frame at the end."""
        self._frames.append(frame)
        self._news.set()

    def put_ack(self, frame: bytes) -> None:
        """Add an acknowledgement in place of one that has not left yet."""
        self._ack = frame
        self._news.set()

    def clear(self) -> None:
        """Forget everything: it was for another connection."""
        self._frames.clear()
        self._ack = None
        self._news.clear()

    async def take(self) -> list[bytes]:
        """Return all that waits, the acknowledgement last, as soon as there is anything.

        Cancel: safe; nothing is taken.
        """
        await self._news.wait()
        self._news.clear()
        frames, self._frames = self._frames, []
        if self._ack is not None:
            frames.append(self._ack)
            self._ack = None
        return frames
