"""How long to wait between two facts of a recording when it is played again."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from arp.ledger.fact import Fact

LONGEST_S: Final = 3.0
"""A pause in the recording counts as at most this long: people go for lunch, and clocks jump."""


class Pacing:
    """Tells the pauses of a recording.

    Args:
        speed: Times as fast as it was; 0 does not wait at all.
    """

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._before: datetime | None = None

    def pause(self, fact: Fact) -> float:
        """Return how many seconds to wait before a fact is shown; facts come in order."""
        at, before = _time(fact), self._before
        self._before = at or before
        if not self._speed or at is None or before is None:
            return 0.0
        return min(max((at - before).total_seconds(), 0.0), LONGEST_S) / self._speed


def _time(fact: Fact) -> datetime | None:
    """Return when a fact was; `None` if it does not say so in a way that can be compared."""
    try:
        at = datetime.fromisoformat(fact.timestamp)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
