"""The questions of a session: which are open, which were closed last, and how one is closed.

Theory of operation. A question is open from its `action.required` to its `action.resolved`.
`Questions` changes only when one of these facts is applied, so a replay of the log gives the same
questions. `Session` records the facts; what the closing fact says about the turn is decided here
(`closing`), before it is recorded.
"""

from __future__ import annotations

from msgspec import Struct

from arp.protocol.errors import InvalidComponent
from arp.protocol.json_value import JsonObject
from arp.session.approval import ApprovalTerms

MAX_CLOSED = 16
"""Number of closed questions that a session remembers; more than a screen lags behind."""


class Question(Struct, frozen=True):
    """A component that waits for an answer."""

    action_id: str
    component_id: str
    surface: str
    turn_id: str
    terms: ApprovalTerms | None = None
    """Terms of a permission; `None` if the question asks for no permission."""
    name: str = ""
    """Name of the `@app.on_answer` handler that receives the answer if the turn has ended."""
    expires_at: str | None = None
    """Deadline (RFC 3339); later answers are refused."""

    @property
    def asked_at(self) -> int:
        """Sequence number of the fact that asked the question."""
        return int(self.action_id.rpartition(".")[2])


class ClosedQuestion(Struct, frozen=True):
    """A question that no longer accepts an answer."""

    question: Question
    sequence: int
    """Sequence number of the fact that closed it."""


class Questions(dict[tuple[str, str], Question]):
    """Open questions by surface and component id, oldest first."""

    __slots__ = ("closed", "unclear_turn")

    def __init__(self) -> None:
        super().__init__()
        self.closed: list[ClosedQuestion] = []
        """The last `MAX_CLOSED` questions that were answered, declined or expired, oldest first. A
        lagging renderer may still show them as open. It is a list, because an empty deque takes
        760 bytes."""
        self.unclear_turn: str | None = None
        """Turn in which a yes without a question's name is ambiguous: several permissions were
        open at once, or one ended without an answer."""

    def of_turn(self, turn_id: str) -> list[Question]:
        """Return the open questions of a turn, oldest first."""
        return [question for question in self.values() if question.turn_id == turn_id]

    def on_surface(self, surface: str) -> list[Question]:
        """Return the open questions on a surface, oldest first."""
        return [question for question in self.values() if question.surface == surface]

    def is_open(self, question: Question) -> bool:
        """Return whether a question still waits for its answer."""
        return self.get((question.surface, question.component_id)) == question

    def is_unclear(self, question: Question) -> bool:
        """Return whether a yes to this permission is ambiguous if it does not name the question.

        It is ambiguous if the turn has asked for another permission too, because the yes could be
        meant for that one.
        """
        return question.terms is not None and question.turn_id == self.unclear_turn

    def replaced_by(self, turn_id: str, surface: str, component_id: str) -> Question | None:
        """Return the open question that a new one with the same id replaces; `None` if none.

        Raises:
            InvalidComponent: The turn itself has an open question with this id.
        """
        before = self.get((surface, component_id))
        if before is not None and before.turn_id == turn_id:
            raise InvalidComponent(
                f"question {component_id!r} is still open: ask another one under another id",
                detail=component_id,
            )
        return before

    def note_permission(self, turn_id: str) -> None:
        """Record that a turn is about to ask for a permission.

        From the second open permission on, a yes that names no question may be meant for the other
        one.
        """
        if any(question.terms is not None for question in self.of_turn(turn_id)):
            self.unclear_turn = turn_id

    def note_unanswered(self, question: Question) -> None:
        """Record that a question is about to be closed without an answer.

        A late yes to this permission must not count for the next one of the turn.
        """
        if question.terms is not None:
            self.unclear_turn = question.turn_id

    def closing(
        self,
        question: Question,
        payload: JsonObject,
        running: str | None,
        status: str | None,
        is_continued: bool = False,
    ) -> JsonObject:
        """Return the payload of the `action.resolved` that closes a question.

        Args:
            question: An open question.
            payload: The payload so far, with its `decision`.
            running: Id of the running turn.
            status: Status of the question's turn on the screen.
            is_continued: Whether another turn continues the work of the question's turn.
        """
        turn_id = question.turn_id
        others = [one for one in self.of_turn(turn_id) if one.action_id != question.action_id]
        is_last = not others
        closing: JsonObject = {**payload, "resumes": turn_id == running and is_last}
        # A crash ended this turn earlier, and its open questions kept it waiting. With the last one
        # closed it needs a final status, or it would be shown as waiting for ever.
        if is_last and turn_id != running and status == "waiting":
            is_done = is_continued or payload["decision"] in ("answered", "declined")
            closing["ends"] = "completed" if is_done else "cancelled"
        return closing

    def open(self, turn_id: str, action_id: str, payload: JsonObject) -> None:
        """Apply an `action.required` fact: add its question to the open questions."""
        component_id, surface = payload["component"]["id"], payload["surface"]
        self[surface, component_id] = Question(
            action_id,
            component_id,
            surface,
            turn_id,
            ApprovalTerms.of(payload),
            payload.get("name", ""),
            payload.get("expiresAt"),
        )

    def close(self, action_id: str, payload: JsonObject, sequence: int) -> None:
        """Apply an `action.resolved`: close its question, if it is open."""
        for key, question in list(self.items()):
            if question.action_id == action_id:
                del self[key]
                # `closed` catches answers from screens that still show the question. A user who
                # cancelled the turn knows that its question is gone.
                if payload.get("decision") != "cancelled":
                    self.closed.append(ClosedQuestion(question, sequence))
                    del self.closed[:-MAX_CLOSED]

    def adopt(self, other: Questions) -> None:
        """Replace the open questions by those of another branch."""
        self.clear()
        self.update(other)
