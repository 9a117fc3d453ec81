"""A session told by hand, fact by fact, for tests that say what its read model must be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from arp.audit.models.read_model import ReadModel
from arp.audit.models.state import State
from arp.ledger.fact import SCHEMA_VERSION, Fact, decode, encode
from arp.ledger.fact_types import check

BEGAN = datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC)

IN_TURN = {"thread_id": "main", "turn_id": "t1"}


class Story:
    """Folds each fact as it is told; a second goes by between two facts."""

    def __init__(self, *, created: bool = True) -> None:
        self.model = ReadModel()
        self.at = BEGAN
        if created:
            self.tell("session.created", epoch="e1", workflow="agent")

    def tell(self, type_name: str, ids: dict[str, Any] | None = None, /, **payload: Any) -> Fact:
        """Tells a lawful fact, by its payload and the ids that it carries."""
        sequence = self.model.sequence + 1
        at, event = self.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), f"s-{sequence}"
        fact = Fact(
            SCHEMA_VERSION, "arp", "s", event, at, sequence, type_name, payload, **(ids or {})
        )
        check(fact)
        self.model.fold(decode(encode(fact)))
        self.at += timedelta(seconds=1)
        return fact

    def in_turn(self, type_name: str, ids: dict[str, Any] | None = None, /, **payload: Any) -> Fact:
        """Tells a fact of turn `t1`."""
        return self.tell(type_name, IN_TURN | (ids or {}), **payload)

    def submit(self, turn_id: str = "t1", text: str = "Hi") -> None:
        """Tells that a turn was submitted."""
        said = {"input_type": "text", "data": {"text": text}}
        self.tell("turn.submitted", IN_TURN | {"turn_id": turn_id}, input=said)

    def start(self, turn_id: str = "t1") -> None:
        """Tells that a turn was submitted and runs."""
        self.submit(turn_id)
        self.tell("turn.started", IN_TURN | {"turn_id": turn_id})

    def end(self, turn_id: str = "t1", reason: str | None = None) -> None:
        """Tells that a turn ended: completed, or for this reason."""
        ids: dict[str, Any] = IN_TURN | {"turn_id": turn_id}
        if reason is None:
            self.tell("turn.completed", ids | {"status": "completed"}, status="completed")
        else:
            status = "cancelled" if reason == "cancelled" else "failed"
            self.tell(
                "turn.failed", ids | {"status": status, "status_reason": reason}, status=status
            )

    @property
    def state(self) -> State:
        """What is remembered."""
        return self.model.state

    @property
    def thread(self) -> dict[str, Any]:
        """The document of thread `main`."""
        thread = self.model.thread("main")
        assert thread is not None
        return thread

    @property
    def snapshot(self) -> dict[str, Any]:
        """The document of the session."""
        return self.model.snapshot()


def seconds(number: float) -> str:
    """Return the time so long after the beginning of a story."""
    return (BEGAN + timedelta(seconds=number)).isoformat()
