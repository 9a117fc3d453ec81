"""Pauses between the facts of a recording during playback."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from arp.ledger.fact import Fact

LONGEST_S: Final = 3.0
"""Longest pause in seconds. Recordings contain long breaks, and clocks may jump."""


class Pacing:
    """Computes the pauses of a playback.

    Args:
        speed: Playback speed relative to the recording; 0 means no pauses.
    """

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._before: datetime | None = None

    def pause(self, fact: Fact) -> float:
        """Return the seconds to wait before showing a fact. Facts must be passed in order."""
        at, before = _time(fact), self._before
        self._before = at or before
        if not self._speed or at is None or before is None:
            return 0.0
        return min(max((at - before).total_seconds(), 0.0), LONGEST_S) / self._speed


def _time(fact: Fact) -> datetime | None:
    """Return the time of a fact, or `None` if its timestamp is invalid or has no time zone."""
    try:
        at = datetime.fromisoformat(fact.timestamp)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
