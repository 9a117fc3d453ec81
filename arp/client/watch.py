"""Waiting until the state of a client meets a condition, such as the end of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from arp.protocol.connection.screen import Screen, TurnScreen
from arp.protocol.errors import ArpError, UnknownObject
from arp.protocol.messages import FINAL_STATUSES

T = TypeVar("T")


class Watch:
    """Checks the conditions of waiting callers whenever the state may have changed."""

    def __init__(self) -> None:
        self.failure: ArpError | None = None
        """Why the state will not change any more; `None` while it may change."""
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        """Wake every waiting caller, so that it checks its condition again."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: ArpError) -> None:
        """Make present and future waits raise `error` if their condition is not met.

        Only the first error counts.
        """
        if self.failure is None:
            self.failure = error
        self.notify()

    async def until(self, look: Callable[[], T | None]) -> T:
        """Wait until `look` returns something other than `None`, and return that.

        Args:
            look: Called immediately, and again after every change. An exception ends the wait.

        Raises:
            ArpError: `failure` is set, because the state will not change any more. `failure` is
                raised.

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
    """Return the id of the newest turn; `None` if the screen is empty."""
    return next(reversed(screen.turns), None)


def is_over(turn: TurnScreen) -> bool:
    """Return whether a turn has ended and all its output is on the screen.

    Every turn ends with one final commit. The server sends the final status too, before or after
    that commit; a server that supports only the draft does not.
    """
    return turn.final and (turn.status is None or turn.status in FINAL_STATUSES)


def find_finished_turn(
    turn_id: str, screen: Callable[[], Screen]
) -> Callable[[], TurnScreen | None]:
    """Return a function for `Watch.until` that returns a turn after it has ended.

    Args:
        turn_id: Id of the turn, which need not be on the screen yet.
        screen: Function that returns the current screen.

    Returns:
        The function. It raises `UnknownObject` if the turn was on the screen and is not any more.
    """
    seen = False

    def look() -> TurnScreen | None:
        nonlocal seen
        turn = screen().turns.get(turn_id)
        if turn is None and seen:
            raise UnknownObject(
                f"turn {turn_id} is no longer on the screen: it ended before the turns of the "
                "snapshot; "
                "read it from the session's history"
            )
        seen = turn is not None
        return turn if turn is not None and is_over(turn) else None

    return look
