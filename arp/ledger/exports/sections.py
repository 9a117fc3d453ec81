"""The sections of a pack: facts of one kind, joined by the id that they share.

Theory of operation. A section is a row of a table: which facts, and the id that joins them. What it
tells is what the facts say, in order and with their sequences; nothing is concluded from prose or
from nearness in time. A fact that has no such id, or says that it is not known, is told apart and
makes a gap.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from msgspec import Struct

from arp.ledger.exports.manifest import Gap
from arp.ledger.fact import Fact
from arp.ledger.models.reading import brief
from arp.ledger.payload_fields import Export
from arp.protocol.json_value import Json, JsonObject

NOT_KNOWN: Final = frozenset(("unknown", "unavailable", "stale"))
"""Stand for a correlation that there is none of (ledger.md 1)."""

MOST_SEQUENCES: Final = 20
"""Named in a gap; `count` says how many there are."""

MOST_TOLD: Final = 1000
"""Facts of one id that are told singly; of a process that writes for days the rest is counted."""


class Row(Struct, frozen=True):
    """What a section is made of."""

    key: str
    """The field of a fact that joins it to others."""
    families: tuple[str, ...]
    """Beginnings of types."""
    without: tuple[str, ...] = ()
    """Types of these families that are only counted: there are many, and each says little."""


ROWS: Final[dict[str, Row]] = {
    "tool_calls.json": Row("tool_call_id", ("tool.",), ("tool.progress", "tool.catalog.resolved")),
    "processes.json": Row("process_id", ("process.",), ("process.output", "process.input")),
    "permissions.json": Row("request_id", ("permission.",)),
    "actions.json": Row("action_id", ("action.",)),
    "sandbox.json": Row("turn_id", ("sandbox.",)),
    "hooks.json": Row("request_id", ("hook.",)),
    "tasks.json": Row("task_id", ("task.",)),
    "jobs.json": Row("job_id", ("job.",)),
    "subagents.json": Row("subagent_id", ("subagent.",)),
    "artifacts.json": Row("artifact_id", ("artifact.",)),
    "routing.json": Row("turn_id", ("routing.",)),
    "limits.json": Row("turn_id", ("rate_limit.", "quota.")),
    "cost.json": Row("turn_id", ("cost.",)),
    "verification.json": Row("evidence_id", ("evidence.",)),
}
"""Part of the pack → what stands in it."""

_NAMES: Final = {
    "threadId": "thread_id",
    "turnId": "turn_id",
    "stepId": "step_id",
    "toolCallId": "tool_call_id",
    "actionId": "action_id",
    "taskId": "task_id",
    "runId": "run_id",
    "requestId": "request_id",
    "processId": "process_id",
    "jobId": "job_id",
    "jobItemId": "job_item_id",
    "subagentId": "subagent_id",
    "artifactId": "artifact_id",
    "evidenceId": "evidence_id",
    "modelRequestId": "model_request_id",
    "parentTaskId": "parent_task_id",
    "outputRef": "output_ref",
    "traceId": "trace_id",
    "status": "status",
    "statusReason": "status_reason",
}

_values: Final = attrgetter(*_NAMES.values())

_CAMEL: Final = {name: written for written, name in _NAMES.items()}


def ids_of(fact: Fact) -> JsonObject:
    """Return the correlations that a fact has, in the profile's spelling."""
    values = _values(fact)
    return {name: value for name, value in zip(_NAMES, values, strict=True) if value is not None}


def told(fact: Fact) -> JsonObject:
    """Return what a section tells of a fact; long values as their beginning."""
    payload: dict[str, Json] = {name: brief(value) for name, value in fact.payload.items()}
    entry: JsonObject = {"sequence": fact.sequence, "timestamp": fact.timestamp, "type": fact.type}
    return {**entry, **ids_of(fact), "payload": payload}


class Section:
    """One section of a pack, from facts in order."""

    def __init__(self, part: str, row: Row) -> None:
        self.part = part
        self._row = row
        self._items: dict[str, JsonObject] = {}
        self._unjoined: list[JsonObject] = []
        self._unjoined_count = 0
        self._totals = Totals() if part == "cost.json" else None

    def is_about(self, fact_type: str) -> bool:
        """Return whether facts of a type stand in it."""
        return fact_type.startswith(self._row.families)

    def take(self, fact: Fact) -> None:
        """Take a fact that it is about."""
        key: str | None = getattr(fact, self._row.key)
        if self._totals is not None:
            self._totals.take(fact)
        if key is None or key in NOT_KNOWN:
            if fact.type not in self._row.without:
                self._unjoined_count += 1
                if len(self._unjoined) < MOST_TOLD:
                    self._unjoined.append(told(fact))
            return
        item = self._items.get(key)
        if item is None:
            item = self._items[key] = {
                _CAMEL[self._row.key]: key,
                "firstSequence": fact.sequence,
                "lastSequence": 0,
                "outcome": "",
                "counts": {},
                "facts": [],
            }
        self._join(item, fact)

    def _join(self, item: JsonObject, fact: Fact) -> None:
        item["lastSequence"] = fact.sequence
        counts = item["counts"]
        counts[fact.type] = counts.get(fact.type, 0) + 1
        if fact.type in self._row.without:
            return
        item["outcome"] = fact.type
        if len(item["facts"]) < MOST_TOLD:
            item["facts"].append(told(fact))

    @property
    def state(self) -> Export:
        """Whether there is something in it, and whether all of it can be joined."""
        if self._unjoined_count:
            return "missing_correlation"
        return "exported" if self._items else "not_applicable"

    def gaps(self) -> list[Gap]:
        """Return what could not be joined."""
        if not self._unjoined_count:
            return []
        first = tuple(one["sequence"] for one in self._unjoined[:MOST_SEQUENCES])
        reason = f"no {_CAMEL[self._row.key]} is known of these facts"
        return [Gap(self.part, "missing_correlation", reason, self._unjoined_count, first)]

    def document(self) -> JsonObject:
        """Return the section."""
        more: JsonObject = {
            "unjoined": self._unjoined,
            "totals": self._totals.document() if self._totals is not None else None,
        }
        return {
            "state": self.state,
            "items": list(self._items.values()),
            **{name: value for name, value in more.items() if value},
        }


class Totals:
    """What was recorded of costs, added up. Estimates are not: a cost may follow each."""

    def __init__(self) -> None:
        self._amounts: dict[str, float] = {}
        self._tokens: dict[str, int] = {}

    def take(self, fact: Fact) -> None:
        """Take a fact of `cost.`."""
        if fact.type != "cost.recorded":
            return
        amount, currency = fact.payload.get("amount"), fact.payload.get("currency")
        if isinstance(amount, int | float) and isinstance(currency, str):
            self._amounts[currency] = self._amounts.get(currency, 0) + amount
        for name in ("inputTokens", "outputTokens", "cachedInputTokens"):
            count = fact.payload.get(name)
            if isinstance(count, int):
                self._tokens[name] = self._tokens.get(name, 0) + count

    def document(self) -> JsonObject:
        """Return amounts by currency, and tokens."""
        return {"amounts": self._amounts, **self._tokens} if self._tokens else {}
