"""The sections of a pack: facts of one kind, joined by a common id.

Theory of operation. The table `ROWS` defines each section by the types of its facts and by the id
that joins them. A section lists these facts in order, with their sequence numbers. Nothing is
inferred from text or from closeness in time. Facts with a missing or unknown id are listed
separately and reported as a gap.
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
"""Values of an id that mean that it is not known. Source: ledger.md 1."""

MOST_SEQUENCES: Final = 20
"""Maximum number of sequence numbers in a gap; `count` is the number of all facts."""

MOST_LISTED: Final = 1000
"""Maximum number of facts listed for one id; the rest is only counted."""


class SectionRow(Struct, frozen=True):
    """Definition of a section."""

    key: str
    """Name of the id field that joins the facts."""
    families: str
    """Prefixes of the types of its facts, separated by spaces."""
    without: str = ""
    """Types in these families that are only counted, because they are many and say little."""


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
"""Definition of each section, by part name."""

_NAMES: Final = (
    "threadId", "turnId", "stepId", "toolCallId", "actionId", "taskId", "runId", "requestId",
    "processId", "jobId", "jobItemId", "subagentId", "artifactId", "evidenceId", "modelRequestId",
    "parentTaskId", "outputRef", "traceId", "status", "statusReason",
)  # fmt: skip

_values: Final = attrgetter(*[ATTRIBUTES[name] for name in _NAMES])


def ids_of(fact: Fact) -> JsonObject:
    """Return the correlation ids of a fact, spelled as in the profile."""
    values = _values(fact)
    return {name: value for name, value in zip(_NAMES, values, strict=True) if value is not None}


def entry_of(fact: Fact) -> JsonObject:
    """Return a fact as listed in a section. Long values are cut."""
    payload: dict[str, Json] = {name: brief(value) for name, value in fact.payload.items()}
    entry: JsonObject = {"sequence": fact.sequence, "timestamp": fact.timestamp, "type": fact.type}
    return {**entry, **ids_of(fact), "payload": payload}


class PackSection:
    """One section of a pack, built from facts in order."""

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
        """Return whether the section contains facts of a type."""
        return fact_type.startswith(self._families)

    def add(self, fact: Fact) -> None:
        """Process the next fact of the section."""
        key, is_listed = self._key_of(fact), fact.type not in self._without
        if self._totals is not None:
            self._totals.add(fact)
        if key is not None and key not in NOT_KNOWN:
            self._join(key, fact, is_listed)
        elif is_listed:
            self._unjoined_count += 1
            if len(self._unjoined) < MOST_LISTED:
                self._unjoined.append(entry_of(fact))

    def _join(self, key: str, fact: Fact, is_listed: bool) -> None:
        item = self._items.get(key)
        if item is None:
            item = {"firstSequence": fact.sequence, "lastSequence": 0, "outcome": ""}
            item = self._items[key] = {self._row.key: key, **item, "counts": {}, "facts": []}
        item["lastSequence"] = fact.sequence
        counts = item["counts"]
        counts[fact.type] = counts.get(fact.type, 0) + 1
        if is_listed:
            item["outcome"] = fact.type
            if len(item["facts"]) < MOST_LISTED:
                item["facts"].append(entry_of(fact))

    @property
    def state(self) -> Export:
        """State of the section: `missing_correlation` if facts could not be joined."""
        if self._unjoined_count:
            return "missing_correlation"
        return "exported" if self._items else "not_applicable"

    def gaps(self) -> list[Gap]:
        """Return the gap of the facts that could not be joined, if there are any."""
        if not self._unjoined_count:
            return []
        first = tuple(one["sequence"] for one in self._unjoined[:MOST_SEQUENCES])
        reason = f"no {self._row.key} is known of these facts"
        return [Gap(self.part, "missing_correlation", reason, self._unjoined_count, first)]

    def document(self) -> JsonObject:
        """Return the section as JSON."""
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
    """Sums of the recorded costs. Estimates are left out, because a recorded cost may follow."""

    def __init__(self) -> None:
        self._amounts: dict[str, float] = {}
        self._tokens: dict[str, int] = {}

    def add(self, fact: Fact) -> None:
        """Process the next `cost.` fact."""
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
        """Return the amounts by currency and the tokens; empty if nothing was recorded."""
        has_any = self._tokens or self._amounts
        return {"amounts": self._amounts, **self._tokens} if has_any else {}


MANY: Final = frozenset(
    ("model.delta", "reasoning.delta", "tool.progress", "process.output", "process.input")
)
"""Types of facts that share a line with adjacent facts of the same turn and tool call."""

_GIST: Final = (
    "error",
    "reason",
    "message",
    "objective",
    "decision",
    "tool",
    "model",
    "hook",
)
"""Payload fields that may give the text of a line; the first one present is used."""

_encoder = msgspec.json.Encoder()


class Timeline:
    """Builds the lines of a timeline, from facts in order."""

    def __init__(self) -> None:
        self._open: JsonObject | None = None
        """Line that the next fact may still join."""

    def add(self, fact: Fact) -> bytes:
        """Process the next fact and return the line that it completes, or no bytes."""
        held = self._open
        if held is not None and fact.type in MANY and _shares_line(held, fact):
            held["throughSequence"] = fact.sequence
            held["count"] = held.get("count", 1) + 1
            return b""
        done, self._open = self.finish(), _entry(fact)
        return done

    def finish(self) -> bytes:
        """Return the last line, or no bytes if there is none."""
        held, self._open = self._open, None
        return b"" if held is None else _encoder.encode(held) + b"\n"


def _entry(fact: Fact) -> JsonObject:
    entry: JsonObject = {"sequence": fact.sequence, "timestamp": fact.timestamp, "type": fact.type}
    value = text(fact.payload, *_GIST)
    return {**entry, **ids_of(fact), **({"said": value} if value is not None else {})}


def _shares_line(held: JsonObject, fact: Fact) -> bool:
    return (held["type"], held.get("turnId"), held.get("toolCallId")) == (
        fact.type,
        fact.turn_id,
        fact.tool_call_id,
    )


SPINE: Final = (
    "runtimeId", "sessionId", "threadId", "turnId", "taskId", "runId", "traceId",
)  # fmt: skip
"""Names of the seven correlation ids, spelled as in the profile. Source: evidence.md 1."""

MOST_IDS: Final = 1000
"""Maximum number of ids listed for one name."""


class CorrelationIds:
    """Collects the correlation ids of the exported facts."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, None]] = {name: {} for name in SPINE}
        self._not_known: set[str] = set()
        self._newest_runtime = ""

    def add(self, fact: Fact) -> None:
        """Process the next fact."""
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
        """Return the collected ids: `turnId` for a single turn id, `turnIds` for several.

        If several runtimes wrote the session, `runtimeId` is added with the newest one: that
        runtime has the session now, and the profile requires a `runtimeId`.
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
        """Return the state of each of the seven ids, by name."""
        return {name: self._state(name) for name in SPINE}

    def _state(self, name: str) -> Export:
        if self._seen[name]:
            return "exported"
        return "missing_correlation" if name in self._not_known else "not_applicable"


_REPORTED_GAPS: Final[dict[str, tuple[str, Export, str]]] = {
    "output.truncated": ("outputs", "exported", "only a part of these outputs was kept"),
    "output.redacted": (FACTS, "exported", "secrets were taken out before this was recorded"),
    "runtime.warning": ("timeline.jsonl", "exported", "the runtime warned"),
    "snapshot.repaired": (FACTS, "exported", "the server was interrupted and mended the session"),
}
"""Gap that a fact of a type reports: part, state and reason."""


class Gaps:
    """Collects the gaps that the exported facts report."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Export, str], tuple[int, tuple[int, ...]]] = {}
        self._running: dict[str, int] = {}

    def add(self, fact: Fact) -> None:
        """Process the next fact."""
        if fact.type in _REPORTED_GAPS:
            self._add(_REPORTED_GAPS[fact.type], fact.sequence)
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
        """Return the gaps in the order of their first facts; turns that had not ended come last."""
        found = [Gap(*gap, count, sequences) for gap, (count, sequences) in self._found.items()]
        if self._running:
            begun = tuple(self._running.values())
            reason = "turns had not ended when this was exported"
            found.append(Gap(FACTS, "exported", reason, len(begun), begun[:MOST_SEQUENCES]))
        return found
