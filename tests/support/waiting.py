"""Wait for conditions that no event reports: check them again and again, for a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from arp import Turn

MOST_S = 30.0
"""Longest time in seconds to wait for a condition."""
EVERY_S = 0.002
"""Time in seconds between two checks of a condition."""


async def becomes(
    ready: Callable[[], bool], *, within_s: float = MOST_S, every_s: float = EVERY_S
) -> None:
    """Wait until a condition is true.

    Args:
        ready: Returns whether the condition is true.
        within_s: Longest time to wait, in seconds.
        every_s: Time between two checks, in seconds.

    Raises:
        AssertionError: The condition did not become true in time.
    """
    for _ in range(int(within_s / every_s)):
        if ready():
            return
        await asyncio.sleep(every_s)
    raise AssertionError(f"it did not come to hold within {within_s} s")


async def written(turn: Turn) -> None:
    """Wait until all output of a turn is durable; text so far is then in a fact of its own."""
    session, host = turn._session, turn._host
    await becomes(
        lambda: (
            not (host._texts or host.pending or session.has_recorded)
            and host.live.stored == session.sequence
        )
    )
