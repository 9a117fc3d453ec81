"""How questions end for an author, and their deadlines."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from arp.protocol.errors import AgentFailed, LocalError

MAX_TIMEOUT_S: Final = 30 * 24 * 3600
"""A month in seconds: longer than any turn runs, and valid for every clock."""


class Declined(Enum):
    """Result of a question that the user declined to answer."""

    DECLINED = "declined"

    def __bool__(self) -> bool:
        """Return `False`, because nothing was agreed to."""
        return False


DECLINED: Final = Declined.DECLINED
"""The only value of `Declined`: `if answer is DECLINED`."""


class QuestionExpired(AgentFailed, TimeoutError):
    """No user answered the question in time; it is closed on every renderer."""


class QuestionWithdrawn(LocalError):
    """The agent withdrew the question while it awaited the answer, or its surface was closed."""


def deadline_of(timeout_s: float | None) -> str | None:
    """Return the deadline of a timeout that begins now (RFC 3339); `None` for no deadline.

    Raises:
        TypeError, ValueError: The timeout is not a number of seconds, or too long.
    """
    if timeout_s is None:
        return None
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
        raise TypeError(f"timeout_s: expected seconds, got {type(timeout_s).__name__}")
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise ValueError(f"timeout_s: expected more than 0 and at most {MAX_TIMEOUT_S}")
    return rfc3339(time.time() + float(timeout_s))


def rfc3339(seconds: float) -> str:
    """Format seconds since the epoch as in facts and messages (RFC 3339)."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
