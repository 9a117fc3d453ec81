"""`VirtualClock`: a clock that a test can advance instead of waiting, for example for a deadline.

Theory of operation. The clock of the event loop and `time.time` get an offset, which `advance`
increases in steps. Each step ends at the time of the next timer, so that timers run in order and
each of them reads its own time. Other processes, and waits of threads, are not affected.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

TURNS_OF_LOOP = 5
"""Number of loop iterations at each stop, so that tasks that a timer wakes can start."""


class VirtualClock:
    """Replacement for the clocks of an event loop and the process during a test."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._real_time = time.time
        self.ahead_s = 0.0
        """Seconds that the virtual clock is ahead of real time."""

    async def advance(self, seconds: float, settled: Callable[[], Awaitable[None]]) -> None:
        """Advance the clock.

        Args:
            seconds: Seconds to advance, more than 0.
            settled: Waits until the facts that a timer caused are written.

        Raises:
            RuntimeError: The clock of the loop cannot be replaced (uvloop).
            ValueError: `seconds` is not more than 0.
        """
        if not seconds > 0:
            raise ValueError(f"advance: expected seconds, more than 0, got {seconds!r}")
        loop = self._install()
        end = loop.time() + seconds
        while True:
            due = min((one.when() for one in _timers(loop)), default=end)
            self.ahead_s += max(0.0, min(due, end) - loop.time())
            for _ in range(TURNS_OF_LOOP):
                await asyncio.sleep(0)
            await settled()
            if due >= end and loop.time() >= end:
                return

    def _install(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return loop
        if not isinstance(loop, asyncio.BaseEventLoop):
            raise RuntimeError(
                f"a virtual clock needs asyncio's own loop, not {type(loop).__module__}'s"
            )
        real_loop_time, real_time = loop.time, self._real_time
        # asyncio has no other way to replace the clock of a loop.
        loop.time = lambda: real_loop_time() + self.ahead_s  # type: ignore[method-assign]
        time.time = lambda: real_time() + self.ahead_s
        self._loop = loop
        return loop

    def remove(self) -> None:
        """Restore the clocks of the loop and the process."""
        if self._loop is not None:
            time.time = self._real_time
            del self._loop.time
            self._loop = None


def _timers(loop: asyncio.AbstractEventLoop) -> list[asyncio.TimerHandle]:
    scheduled: list[asyncio.TimerHandle] = getattr(loop, "_scheduled", [])
    return [one for one in scheduled if not one.cancelled()]
