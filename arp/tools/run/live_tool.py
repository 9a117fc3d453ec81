"""`LiveTool`: the scheduler's record of one tool: its lock, its calls, its alerts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from arp.tools.run.runtime import HealthAlert

ALERT_AGAIN_S: Final = 300.0
"""So long after its first alert a tool that is still not healthy raises another one."""
MAX_ALERT_WAIT_S: Final = 86_400.0
"""The longest wait between two alerts: a day. Waits double: each alert may start a repair, which
costs money."""


class LiveTool:
    """The scheduler's record of one tool.

    Args:
        now: The time of the monotonic clock.
        calls_at_once: Calls that may work at the same time.
    """

    __slots__ = (
        "_held_back",
        "_idle",
        "_open",
        "alert",
        "alert_at",
        "alerts",
        "calls",
        "last_healthy",
        "last_used",
        "lock",
        "running",
        "slots",
    )

    def __init__(self, now: float, calls_at_once: int) -> None:
        self.lock = asyncio.Lock()
        self.slots = asyncio.Semaphore(calls_at_once)
        """Small servers refuse what comes all at once."""
        self.calls = 0
        self._idle = asyncio.Event()
        """Set while no call uses the tool."""
        self._held_back = 0
        """Commands that hold back further calls."""
        self._open = asyncio.Event()
        """Set while no command does."""
        self.running = False
        """It was started, and neither put away nor stopped since."""
        self.last_used = now
        self.last_healthy: datetime | None = None
        self.alert: HealthAlert | None = None
        """To be raised as soon as the lock is free."""
        self.alerts = 0
        """Since it was last healthy."""
        self.alert_at = now
        """When the next one may come."""
        self._idle.set()
        self._open.set()

    async def enter(self) -> None:
        """Count a call, after the commands that hold calls back.

        Cancel: Safe; nothing is counted.
        """
        while self._held_back:
            await self._open.wait()
        self.calls += 1
        self._idle.clear()

    def leave(self, now: float) -> None:
        """Note that a call has ended."""
        self.calls -= 1
        self.last_used = now
        if not self.calls:
            self._idle.set()

    @asynccontextmanager
    async def without_calls(self) -> AsyncIterator[None]:
        """Hold the lock within a block, once all calls have ended; further ones wait for its end.

        Cancel: Safe.
        """
        self._held_back += 1
        self._open.clear()
        try:
            await self._idle.wait()
            async with self.lock:
                yield
        finally:
            self._held_back -= 1
            if not self._held_back:
                self._open.set()

    def is_well(self, at: datetime) -> None:
        """Note that it is healthy: if it is not any more, that is news."""
        self.last_healthy, self.alerts = at, 0

    def put_off(self, now: float) -> None:
        """Let no alert come until the next wait is over."""
        wait_s = ALERT_AGAIN_S * 2 ** min(max(self.alerts - 1, 0), 16)
        self.alert_at = now + min(wait_s, MAX_ALERT_WAIT_S)
