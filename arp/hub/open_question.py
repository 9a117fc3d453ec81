"""A question that a turn has asked, as its author sees it, and what may come of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

from msgspec import Struct

from arp.hub.author_call import must_await
from arp.protocol.errors import AgentFailed, LocalError, SurfaceDestroyed
from arp.protocol.json_value import Json

if TYPE_CHECKING:
    from arp.hub.turn_host import AskedQuestion, TurnHost

T = TypeVar("T")

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
    """The agent withdrew a question that something of it still waits for."""


class QuestionOutcome(Struct, frozen=True):
    """What came of a question."""

    kind: Literal["answered", "declined", "expired", "withdrawn", "over"]
    value: Json = None
    """The answer; of a permission the data of the input."""


class OpenQuestion(Generic[T]):
    """A question that shows; `await question` waits for its answer.

    Several may be open at once. Those that are still open when the turn ends are withdrawn.
    """

    def __init__(self, host: TurnHost, asked: AskedQuestion, read: Callable[[Json], T]) -> None:
        self.id = asked.question.component_id
        """Of its component."""
        self.asked = asked
        """What the turn has of it."""
        self._host = host
        self._read = read

    @property
    def is_open(self) -> bool:
        """Whether it can be answered."""
        return self._host.session.is_open(self.asked.question)

    def __await__(self) -> Generator[Any, Any, T]:
        """As `answer`."""
        return self.answer().__await__()

    @must_await("question.answer")
    async def answer(self) -> T:
        """Wait for the answer, as `Turn.ask` returns it.

        Raises:
            QuestionExpired: Nobody answered in time.
            QuestionWithdrawn: It was withdrawn.
            SurfaceDestroyed: The turn is over.

        Cancel: Safe; the question stays open, and may be awaited again.
        """
        return self.taken(await self._host.outcome_of(self.asked, withdraws=False))

    def withdraw(self) -> bool:
        """Close the question on every renderer without an answer; the turn goes on.

        Returns:
            Whether it was open: an answer that came before counts.
        """
        return self._host.withdraw(self.asked)

    def taken(self, outcome: QuestionOutcome) -> T:
        """Return what an author gets for an outcome, or raise."""
        match outcome.kind:
            case "answered":
                return self._read(outcome.value)
            case "declined":
                return cast("T", DECLINED)  # a `T` of who asked so is `… | Declined`
            case "expired":
                raise QuestionExpired("Nobody answered in time.", detail=self.id)
            case "withdrawn":
                raise QuestionWithdrawn(f"question {self.id!r} was withdrawn", detail=self.id)
            case "over":
                pass
        raise SurfaceDestroyed(f"turn {self._host.turn_id} is over", detail=self._host.turn_id)


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
