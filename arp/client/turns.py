"""When a turn is over, as a screen tells it."""

from __future__ import annotations

from collections.abc import Callable

from arp.protocol.errors import UnknownObject
from arp.protocol.messages import FINAL_STATUSES
from arp.protocol.screen import Screen, TurnScreen


def latest_turn(screen: Screen) -> str | None:
    """Return the id of the newest turn; `None` on an empty screen."""
    return next(reversed(screen.turns), None)


def is_over(turn: TurnScreen) -> bool:
    """Return whether a turn has ended and all of its output shows.

    Every turn ends with one final commit; its status is told too, before or after it, but not by a
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
