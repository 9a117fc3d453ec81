"""The sections of a pack: facts of one kind, joined by the id that they share.

Theory of operation. A section is a row of a table: which facts, and the id that joins them. What it
tells is what the facts say, in order and with their sequences; nothing is concluded from prose or
from nearness in time. A fact that has no such id, or says that it is not known, is told apart and
makes a gap.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final

import msgspec
from msgspec import Struct

from arp.audit.evidence.manifest import FACTS, Gap
from arp.audit.models.reading import brief, text
from arp.ledger.fact import ATTRIBUTES, Fact
from arp.ledger.fact_types import REQUIRED_IDS
from arp.ledger.payload_fields import Export
from arp.protocol.json_value import Json, JsonObject

NOT_KNOWN: Final = frozenset(("unknown", "unavailable", "stale"))
"""Stand for a correlation that there is none of (ledger.md 1)."""

MOST_SEQUENCES: Final = 20
"""Named in a gap; `count` says how many there are."""

MOST_TOLD: Final = 1000
"""Facts of one id that are told singly; of a process that writes for days the rest is counted."""


class SectionRow(Struct, frozen=True):
    """What a section is made of."""

    key: str
    """The field of a fact that joins it to others."""
    families: str
    """Beginnings of types."""
    without: str = ""
    """Types of these families that are only counted: there are many, and each says little."""


ROWS: Final[dict[str, SectionRow]] = {
    "tool_calls.json": SectionRow("toolCallId", "tool.", "tool.progress tool.catalog.resolved"),
    "processes.json": SectionRow("processId", "process.", "process.output process.input"),
    "permissions.json": SectionRow("requestId", "permission."),
    "actions.json": SectionRow("actionId", "action."),
    "sandbox.json": SectionRow("turnId", "sandbox."),
    "hooks.json": SectionRow("requestId", "hook."),
    "tasks.json": SectionRow("taskId", "task."),
    "jobs.json": SectionRow("jobId", "job."),
    "subagents.json": SectionRow("subagentId", "subagent."),
    "artifacts.json": SectionRow("artifactId", "artifact."),
    "routing.json": SectionRow("turnId", "routing."),
    "limits.json": SectionRow("turnId", "rate_limit. quota."),
    "cost.json": SectionRow("turnId", "cost."),
    "verification.json": SectionRow("evidenceId", "evidence."),
}
"""Part of the pack → its content."""

_NAMES: Final = (
    "threadId", "turnId", "stepId", "toolCallId", "actionId", "taskId", "runId", "requestId",
    "processId", "jobId", "jobItemId", "subagentId", "artifactId", "evidenceId", "modelRequestId",
    "parentTaskId", "outputRef", "traceId", "status", "statusReason",
)  # fmt: skip

_values: Final = attrgetter(*[ATTRIBUTES[name] for name in _NAMES])


def ids_of(fact: Fact) -> JsonObject:
    """Return the correlations that a fact has, in the profile's spelling."""
    values = _values(fact)
    return {name: value for name, value in zip(_NAMES, values, strict=True) if value is not None}


def told(fact: Fact) -> JsonObject:
    """Return a fact as a section shows it; of long values the beginning."""
    payload: dict[str, Json] = {name: brief(value) for name, value in fact.payload.items()}
    entry: JsonObject = {"sequence": fact.sequence, "timestamp": fact.timestamp, "type": fact.type}
    return {**entry, **ids_of(fact), "payload": payload}


class PackSection:
    """One section of a pack, from facts in order."""

    def __init__(self, part: str, row: SectionRow) -> None:
        self.part = part
        self._row = row
        self._families = tuple(row.families.split())
        self._without = frozenset(row.without.split())
        self._key_of: Callable[[Fact], str | None] = attrgetter(ATTRIBUTES[row.key])
        self._items: dict[str, JsonObject] = {}
        self._unjoined: list[JsonObject] = []
        self._unjoined_count = 0
        self._totals = Totals() if part == "cost.json" else None

    def is_about(self, fact_type: str) -> bool:
        """Return whether facts of a type stand in it."""
        return fact_type.startswith(self._families)

    def take(self, fact: Fact) -> None:
        """Take a fact that it is about."""
        key, is_told = self._key_of(fact), fact.type not in self._without
        if self._totals is not None:
            self._totals.take(fact)
        if key is not None and key not in NOT_KNOWN:
            self._join(key, fact, is_told)
        elif is_told:
            self._unjoined_count += 1
            if len(self._unjoined) < MOST_TOLD:
                self._unjoined.append(told(fact))

    def _join(self, key: str, fact: Fact, is_told: bool) -> None:
        item = self._items.get(key)
        if item is None:
            item = {"firstSequence": fact.sequence, "lastSequence": 0, "outcome": ""}
            item = self._items[key] = {self._row.key: key, **item, "counts": {}, "facts": []}
        item["lastSequence"] = fact.sequence
        counts = item["counts"]
        counts[fact.type] = counts.get(fact.type, 0) + 1
        if is_told:
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
        reason = f"no {self._row.key} is known of these facts"
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
        has_any = self._tokens or self._amounts
        return {"amounts": self._amounts, **self._tokens} if has_any else {}


MANY: Final = frozenset(
    ("model.delta", "reasoning.delta", "tool.progress", "process.output", "process.input")
)
"""Types of which neighbours of one turn share a line."""

_SAID: Final = ("error", "reason", "message", "objective", "decision", "tool", "model", "hook")
"""What of a payload a line tells: the first of these that there is."""

_encoder = msgspec.json.Encoder()


class Timeline:
    """Lines of a timeline, from facts in order."""

    def __init__(self) -> None:
        self._open: JsonObject | None = None
        """A line to which the next fact may still be added."""

    def take(self, fact: Fact) -> bytes:
        """Return the lines that a fact completes; often none or one."""
        held = self._open
        if held is not None and fact.type in MANY and _goes_on(held, fact):
            held["throughSequence"] = fact.sequence
            held["count"] = held.get("count", 1) + 1
            return b""
        done, self._open = self.finish(), _entry(fact)
        return done

    def finish(self) -> bytes:
        """Return the last line."""
        held, self._open = self._open, None
        return b"" if held is None else _encoder.encode(held) + b"\n"


def _entry(fact: Fact) -> JsonObject:
    entry: JsonObject = {"sequence": fact.sequence, "timestamp": fact.timestamp, "type": fact.type}
    value = text(fact.payload, *_SAID)
    return {**entry, **ids_of(fact), **({"said": value} if value is not None else {})}


def _goes_on(held: JsonObject, fact: Fact) -> bool:
    return (held["type"], held.get("turnId"), held.get("toolCallId")) == (
        fact.type,
        fact.turn_id,
        fact.tool_call_id,
    )


SPINE: Final = (
    "runtimeId", "sessionId", "threadId", "turnId", "taskId", "runId", "traceId",
)  # fmt: skip
"""In the profile's spelling (evidence.md 1)."""

MOST_IDS: Final = 1000
"""Of one kind that are listed."""


class CorrelationIds:
    """Gathers the ids of the facts that are exported."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, None]] = {name: {} for name in SPINE}
        self._not_known: set[str] = set()
        self._newest_runtime = ""

    def take(self, fact: Fact) -> None:
        """Take a fact."""
        self._newest_runtime = fact.runtime_id
        for written in SPINE:
            value: str | None = getattr(fact, ATTRIBUTES[written])
            if value is None:
                continue
            if value in NOT_KNOWN:
                self._not_known.add(written)
            elif len(self._seen[written]) < MOST_IDS:
                self._seen[written][value] = None

    def document(self) -> JsonObject:
        """Return each id that there is: `turnId` if there is one, `turnIds` if there are several.

        Of several runtimes that wrote a session the newest is `runtimeId` besides: it has the
        session now, and the profile wants one.
        """
        spine: JsonObject = {}
        for name, seen in self._seen.items():
            if len(seen) == 1:
                spine[name] = next(iter(seen))
            elif seen:
                spine[f"{name}s"] = list(seen)
                if name == "runtimeId":
                    spine[name] = self._newest_runtime
        return spine

    def states(self) -> dict[str, Export]:
        """Return of each of the seven ids whether it is present, applies, and is known."""
        return {name: self._state(name) for name in SPINE}

    def _state(self, name: str) -> Export:
        if self._seen[name]:
            return "exported"
        return "missing_correlation" if name in self._not_known else "not_applicable"


_TOLD: Final[dict[str, tuple[str, Export, str]]] = {
    "output.truncated": ("outputs", "exported", "only a part of these outputs was kept"),
    "output.redacted": (FACTS, "exported", "secrets were taken out before this was recorded"),
    "runtime.warning": ("timeline.jsonl", "exported", "the runtime warned"),
    "snapshot.repaired": (FACTS, "exported", "the server was interrupted and mended the session"),
}
"""Type of a fact → the part that it is about, how that stands, and what is to be said."""


class Gaps:
    """Gathers what the exported facts say of gaps."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Export, str], tuple[int, tuple[int, ...]]] = {}
        self._running: dict[str, int] = {}

    def take(self, fact: Fact) -> None:
        """Take a fact."""
        if fact.type in _TOLD:
            self._add(_TOLD[fact.type], fact.sequence)
        if fact.type not in REQUIRED_IDS:
            reason = f"this version does not know what {fact.type} means"
            self._add((FACTS, "unsupported", reason), fact.sequence)
        if fact.turn_id is None:
            return
        if fact.type in ("turn.submitted", "turn.started"):
            self._running.setdefault(fact.turn_id, fact.sequence)
        elif fact.type in ("turn.completed", "turn.failed"):
            self._running.pop(fact.turn_id, None)

    def _add(self, gap: tuple[str, Export, str], sequence: int) -> None:
        count, sequences = self._found.get(gap, (0, ()))
        if count < MOST_SEQUENCES:
            sequences = (*sequences, sequence)
        self._found[gap] = (count + 1, sequences)

    def all(self) -> list[Gap]:
        """Return the gaps, in the order in which they were met."""
        found = [Gap(*gap, count, sequences) for gap, (count, sequences) in self._found.items()]
        if self._running:
            begun = tuple(self._running.values())
            reason = "turns had not ended when this was exported"
            found.append(Gap(FACTS, "exported", reason, len(begun), begun[:MOST_SEQUENCES]))
        return found
