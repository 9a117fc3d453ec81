"""`LiveTool`: the scheduler's record of one tool: its lock, its calls, its alerts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from arp.tools.run.runtime import HealthAlert

ALERT_AGAIN_S: Final = 300.0
"""Wait after the first alert before an unhealthy tool raises another one, in seconds."""
MAX_ALERT_WAIT_S: Final = 86_400.0
"""Longest wait between two alerts: a day, in seconds. Each wait is twice as long as the one before,
because each alert may start a repair, which costs money."""


class LiveTool:
    """Scheduler's record of one tool.

    Args:
        now: Time of the monotonic clock.
        calls_at_once: Maximum number of simultaneous calls.
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
        """Limits simultaneous calls, because small servers reject a burst."""
        self.calls = 0
        self._idle = asyncio.Event()
        """Event that is set while no call uses the tool."""
        self._held_back = 0
        """Number of commands that hold back new calls."""
        self._open = asyncio.Event()
        """Event that is set while no command holds back calls."""
        self.running = False
        """Whether the tool was started and neither put to sleep nor stopped since."""
        self.last_used = now
        self.last_healthy: datetime | None = None
        self.alert: HealthAlert | None = None
        """Alert to raise when the lock is released."""
        self.alerts = 0
        """Number of alerts since the tool was last healthy."""
        self.alert_at = now
        """Earliest time of the next alert."""
        self._idle.set()
        self._open.set()

    async def enter(self) -> None:
        """Wait while a command holds back calls, then count a new call.

        Cancel: Safe; nothing is counted.
        """
        # A loop: another command may hold calls back before this task continues.
        while self._held_back:
            await self._open.wait()
        self.calls += 1
        self._idle.clear()

    def leave(self, now: float) -> None:
        """Record the end of a call."""
        self.calls -= 1
        self.last_used = now
        if not self.calls:
            self._idle.set()

    @asynccontextmanager
    async def without_calls(self) -> AsyncIterator[None]:
        """Wait until all calls have ended, and hold the lock within the block; new calls wait.

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

    def record_healthy(self, at: datetime) -> None:
        """Record that the tool is healthy; its next failure raises an alert at once."""
        self.last_healthy, self.alerts = at, 0

    def put_off(self, now: float) -> None:
        """Delay the next alert; each alert in a row doubles the delay."""
        wait_s = ALERT_AGAIN_S * 2 ** min(max(self.alerts - 1, 0), 16)
        self.alert_at = now + min(wait_s, MAX_ALERT_WAIT_S)
