"""What may come of a question that a turn has asked, and until when it may be answered."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from enum import Enum
from typing import Final, Literal

from msgspec import Struct

from arp.protocol.errors import AgentFailed, LocalError
from arp.protocol.json_value import Json

MAX_TIMEOUT_S: Final = 30 * 24 * 3600
"""A month: longer than any turn runs, and every clock can hold it."""


class Declined(Enum):
    """What is returned in the place of an answer that somebody does not want to give."""

    DECLINED = "declined"

    def __bool__(self) -> bool:
        """Return `False`: nothing was agreed to."""
        return False


DECLINED: Final = Declined.DECLINED
"""The one value of `Declined`: `if answer is DECLINED`."""


class QuestionExpired(AgentFailed, TimeoutError):
    """Nobody answered a question in time; it is closed on every renderer."""


class QuestionWithdrawn(LocalError):
    """The agent withdrew a question that something of it waits for, or its surface was closed."""


class QuestionOutcome(Struct, frozen=True):
    """What came of a question."""

    kind: Literal["answered", "declined", "expired", "withdrawn", "over"]
    value: Json = None
    """The answer; of a permission the data of the input."""


def expiry(timeout_s: float | None) -> float | None:
    """Return when the time is over, in seconds since 1970; `None`: never.

    Raises:
        TypeError, ValueError: It is no number of seconds, or too many.
    """
    if timeout_s is None:
        return None
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
        raise TypeError(f"timeout_s: expected seconds, got {type(timeout_s).__name__}")
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise ValueError(f"timeout_s: expected more than 0 and at most {MAX_TIMEOUT_S}")
    return time.time() + float(timeout_s)


def rfc3339(seconds: float) -> str:
    """Return seconds since 1970 as facts and messages have them."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
