"""How long to wait before coming back: exponential, with full jitter."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from msgspec import Struct


class Backoff(Struct, frozen=True):
    """Waits between attempts to connect.

    The wait before attempt `n` is drawn evenly between 0 and `min(most_s, first_s · 2ⁿ)`, so that
    clients of a server that went away do not all come back at once.
    """

    first_s: float = 1.0
    """Ceiling of the first wait, in seconds."""
    most_s: float = 16.0
    """Ceiling of every wait, in seconds."""
    draw: Callable[[], float] = random.random
    """Gives numbers from 0 to 1."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits that many seconds; cancelled when the client closes."""

    def delay_s(self, attempt: int) -> float:
        """Return the wait after `attempt` failures in a row, which counts from 0."""
        ceiling: float = min(self.most_s, self.first_s * 2.0 ** min(attempt, 64))
        return ceiling * self.draw()
