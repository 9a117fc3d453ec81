"""The interface of an open question for an agent's author."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from arp.protocol.errors import SurfaceDestroyed
from arp.protocol.json_value import Json
from arp.turn.author_call import must_await
from arp.turn.question_outcome import DECLINED, QuestionExpired, QuestionWithdrawn

if TYPE_CHECKING:
    from arp.session.effects import QuestionOutcome
    from arp.turn.host import PendingQuestion, TurnHost

T = TypeVar("T")


class OpenQuestion(Generic[T]):
    """A shown question; `await question` waits for its answer.

    Several may be open at once. Open questions are withdrawn at the end of the turn.
    """

    def __init__(self, host: TurnHost, asked: PendingQuestion, read: Callable[[Json], T]) -> None:
        self.id = asked.question.component_id
        """Id of its component."""
        self.asked = asked
        """State of the question in its turn."""
        self._host = host
        self._read = read

    @property
    def is_open(self) -> bool:
        """Whether it can be answered."""
        return self._host.session.questions.is_open(self.asked.question)

    def __await__(self) -> Generator[Any, Any, T]:
        """Wait for the answer; see `answer`."""
        return self.answer().__await__()

    @must_await("question.answer")
    async def answer(self) -> T:
        """Wait for the answer and return it like `Turn.ask`.

        Raises:
            QuestionExpired: No user answered in time.
            QuestionWithdrawn: It was withdrawn.
            SurfaceDestroyed: The turn is over.

        Cancel: Safe; the question stays open and may be awaited again.
        """
        return self.taken(await self._host.outcome_of(self.asked, withdraws=False))

    def withdraw(self) -> bool:
        """Close the question on every renderer without an answer; the turn continues.

        Returns:
            Whether it was open. An answer that was accepted first counts.
        """
        return self._host.withdraw(self.asked)

    def taken(self, outcome: QuestionOutcome) -> T:
        """Return the author's value of an outcome, or raise its error."""
        match outcome.kind:
            case "answered":
                return self._read(outcome.value)
            case "declined":
                # `T` includes `Declined` if the question can be declined.
                return cast("T", DECLINED)
            case "expired":
                raise QuestionExpired("Nobody answered in time.", detail=self.id)
            case "withdrawn":
                raise QuestionWithdrawn(f"question {self.id!r} was withdrawn", detail=self.id)
            case "over":
                pass
        raise SurfaceDestroyed(f"turn {self._host.turn_id} is over", detail=self._host.turn_id)
