"""Waits of callers for something to become true of a client's state: that a turn is over, say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from arp.protocol.errors import ArpError, UnknownObject
from arp.protocol.messages import FINAL_STATUSES
from arp.protocol.screen import Screen, TurnScreen

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


def latest_turn(screen: Screen) -> str | None:
    """Return the id of the newest turn; `None` on an empty screen."""
    return next(reversed(screen.turns), None)


def is_over(turn: TurnScreen) -> bool:
    """Return whether a turn has ended and all of its output shows.

    Every turn ends with one final commit; its status is sent too, before or after it, but not by a
    server that knows the draft alone.
    """
    return turn.final and (turn.status is None or turn.status in FINAL_STATUSES)


def when_over(turn_id: str, screen: Callable[[], Screen]) -> Callable[[], TurnScreen | None]:
    """Return a look at a turn, which finds it once it is over.

    Args:
        turn_id: It may not show yet.
        screen: Gives the screen as it is at each look.

    Returns:
        A function that raises `UnknownObject` when a turn that showed does not show any more.
    """
    seen = False

    def look() -> TurnScreen | None:
        nonlocal seen
        turn = screen().turns.get(turn_id)
        if turn is None and seen:
            raise UnknownObject(
                f"turn {turn_id} shows no more: it ended before the turns of the snapshot; "
                "read it from the session's history"
            )
        seen = turn is not None
        return turn if turn is not None and is_over(turn) else None

    return look
