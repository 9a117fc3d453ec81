"""Waiting for what no event tells: looked at again and again, for a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from arp import Turn

MOST_S = 30.0
EVERY_S = 0.002


async def becomes(
    ready: Callable[[], bool], *, within_s: float = MOST_S, every_s: float = EVERY_S
) -> None:
    """Waits until something holds."""
    for _ in range(int(within_s / every_s)):
        if ready():
            return
        await asyncio.sleep(every_s)
    raise AssertionError(f"it did not come to hold within {within_s} s")


async def written(turn: Turn) -> None:
    """Waits until all that a turn has shown is durable; its open text is a fact of its own then."""
    session, host = turn._session, turn._host
    await becomes(
        lambda: (
            not (host._texts or host.pending or session.has_recorded)
            and host.live.stored == session.sequence
        )
    )
