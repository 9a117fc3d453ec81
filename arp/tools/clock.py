"""`Clock`: wall time and monotonic time, passed in so that tests can set both."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Clock(NamedTuple):
    """Source of the current time."""

    now: Callable[[], datetime] = _utc_now
    """Wall time in UTC; it may be set back, so no deadline depends on it."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds since an arbitrary moment, for deadlines and durations."""


SYSTEM_CLOCK = Clock()
"""Clock of the machine."""
