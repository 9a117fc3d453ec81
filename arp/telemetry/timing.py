"""Times of facts as numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_BEGAN = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

NS = 1_000_000_000


def nanoseconds(timestamp: str) -> int | None:
    """Gives an RFC 3339 time in nanoseconds since 1970; `None` if it is none."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return (moment - _BEGAN) // _MICROSECOND * 1000


def seconds(start_ns: int, end_ns: int) -> float:
    """Gives the time between two moments; a clock that was set back gives 0."""
    return max(0, end_ns - start_ns) / NS
