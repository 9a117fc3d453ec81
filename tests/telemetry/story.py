"""Facts told by hand, a second apart, and what the fold makes of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from arp.ledger.fact import SCHEMA_VERSION, Fact, decode, encode
from arp.ledger.fact_types import check
from arp.telemetry.fold import Figure, Measured, MeasuredSpan, SpanFold

BEGAN = datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC)

BEGAN_NS = 1_767_322_800 * 10**9
"""The same moment, by a calculator."""

IN_TURN = {"thread_id": "main", "turn_id": "t1"}
IN_TOOL = {**IN_TURN, "step_id": "t1.1", "tool_call_id": "t1.1"}


class Story:
    """Folds each fact as it is told."""

    def __init__(self) -> None:
        self.fold = SpanFold("s", "e1", "sales")
        self.facts: list[Fact] = []
        self.given: list[Measured] = []

    def tell(self, type_name: str, ids: dict[str, Any] | None = None, /, **payload: Any) -> Fact:
        """Tells a lawful fact, by its payload and the ids that it carries."""
        sequence = len(self.facts) + 1
        at = (BEGAN + timedelta(seconds=sequence - 1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        known = (SCHEMA_VERSION, "arp", "s", f"s-{sequence}", at, sequence, type_name, payload)
        fact = decode(encode(Fact(*known, **(ids or {}))))
        check(fact)
        self.facts.append(fact)
        self.given += self.fold.fold(fact)
        return fact

    def start(self, **ids: Any) -> None:
        """Tells that a turn was submitted (at 0 s) and runs (at 1 s)."""
        said = {"input_type": "text", "data": {"text": "Show the secret sales"}}
        self.tell("turn.submitted", IN_TURN | ids, input=said)
        self.tell("turn.started", IN_TURN)

    def end(self, reason: str | None = None) -> None:
        """Tells that it ended."""
        if reason is None:
            self.tell("turn.completed", IN_TURN | {"status": "completed"}, status="completed")
            return
        status = "cancelled" if reason == "cancelled" else "failed"
        self.tell("turn.failed", IN_TURN | {"status": status, "status_reason": reason})

    @property
    def spans(self) -> list[MeasuredSpan]:
        """Given out so far."""
        return [one for one in self.given if isinstance(one, MeasuredSpan)]

    def span(self, name: str) -> MeasuredSpan:
        """The one of that name."""
        (found,) = [one for one in self.spans if one.name == name]
        return found

    def figures(self, metric: str) -> list[tuple[float, dict[str, Any]]]:
        """Values and attributes of a metric."""
        return [
            (one.value, one.attributes)
            for one in self.given
            if isinstance(one, Figure) and one.metric == metric
        ]
