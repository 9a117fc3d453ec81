"""`Clock`: wall time and monotonic time, passed in so that tests can set both."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Clock(NamedTuple):
    """The current time."""

    now: Callable[[], datetime] = _utc_now
    """UTC; it can be set back, so no deadline depends on it."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds since some moment; for deadlines and durations."""


SYSTEM_CLOCK = Clock()
"""The machine's own."""
