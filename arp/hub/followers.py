"""Those who read a session's log as it grows: they are told when more of it is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Followers:
    """Wakes whoever waits for the log of one session to grow."""

    __slots__ = ("_risen", "count")

    def __init__(self) -> None:
        self.count = 0
        """How many there are; while there is one, the session stays in memory."""
        self._risen: asyncio.Future[None] | None = None

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Count one more follower for a block: so long the session stays in memory."""
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1

    def rise(self) -> None:
        """Wake all who wait."""
        risen, self._risen = self._risen, None
        if risen is not None:
            risen.set_result(None)

    @property
    def risen(self) -> asyncio.Future[None]:
        """Is done when the log has grown the next time. Shared: do not cancel it."""
        if self._risen is None:
            self._risen = asyncio.get_running_loop().create_future()
        return self._risen
