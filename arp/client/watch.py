"""Waits of callers for something to become true of a client's state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from arp.protocol.errors import ArpError

T = TypeVar("T")


class Watch:
    """Wakes those who wait whenever the state may have changed."""

    def __init__(self) -> None:
        self.failure: ArpError | None = None
        """Why nothing will change any more."""
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        """Let everyone who waits look again."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: ArpError) -> None:
        """End every wait that is not satisfied, now and later; the first reason stands."""
        if self.failure is None:
            self.failure = error
        self.notify()

    async def until(self, look: Callable[[], T | None]) -> T:
        """Return what `look` gives as soon as that is not `None`.

        Args:
            look: Called at once, and again after every change. What it raises ends the wait.

        Raises:
            ArpError: Why the state will not change any more.

        Cancel: safe.
        """
        while (found := look()) is None:
            if self.failure is not None:
                raise self.failure
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.add(waiter)
            try:
                await waiter
            finally:
                self._waiting.discard(waiter)
        return found
