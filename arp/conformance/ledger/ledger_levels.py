"""Determine which level of the Lime profile a ledger reaches, from its facts and snapshots only.

The profile defines three levels. `public core`: each fact and snapshot is valid under the schemas
of the standard. `profile core`: each is also valid under the schemas of the profile, and the
sequence numbers of each session increase. `extension`: all fields that the standard does not define
are in payloads and `refs`. A ledger reaches a level only if it reaches all levels before it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from arp.conformance.ledger.schema_check import SchemaCheck
from arp.protocol.json_value import Json, JsonObject

Level: TypeAlias = Literal["public core", "profile core", "extension"]

LEVELS: Final[tuple[Level, ...]] = ("public core", "profile core", "extension")

MOST_FAULTS: Final = 1000
"""Largest number of faults in a report; all faults are counted."""

_SCHEMAS: Final[dict[Level, str]] = {
    "public core": "agentruntime",
    "profile core": "agentruntime-lime-profile",
}


class LedgerFault(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A rule that a fact or a snapshot breaks."""

    level: Level
    """Lowest level that the ledger does not reach because of this fault."""
    session_id: str
    sequence: int
    """Sequence number of the fact, or of the newest fact in a snapshot; 0 if it is unknown."""
    about: str
    """Type of the fact, or `snapshot`."""
    where: str
    """Path of the field; empty for the whole document."""
    problem: str


class LedgerReport(Struct, rename="camel"):
    """Level of a ledger, with counts and faults."""

    level: Level | None = None
    """Highest level that the ledger reaches; `None` if it reaches none."""
    facts: int = 0
    snapshots: int = 0
    types: dict[str, int] = field(default_factory=lambda: dict[str, int]())
    """Number of facts by type."""
    fault_counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LEVELS, 0))
    faults: list[LedgerFault] = field(default_factory=lambda: list[LedgerFault]())


class LedgerJudge:
    """Checks facts and snapshots, and reports the level that they reach."""

    def __init__(self) -> None:
        self._report = LedgerReport()
        self._types: Counter[str] = Counter()
        self._sequences: dict[str, int] = {}

    def check(self, document: Json) -> None:
        """Check a document: a snapshot if it has `threads` and no `type`, otherwise a fact."""
        if isinstance(document, dict) and "threads" in document and "type" not in document:
            self._report.snapshots += 1
            self._judge("snapshot", document, "snapshot")
            return
        self._report.facts += 1
        fact: JsonObject = document if isinstance(document, dict) else {}
        name = fact.get("type")
        about = name if isinstance(name, str) else "fact"
        self._types[about] += 1
        self._judge("event", document, about)
        self._follow(fact, about)

    def report(self) -> LedgerReport:
        """Return the report on the documents that were checked so far."""
        report, reached = self._report, None
        for level in LEVELS if report.facts or report.snapshots else ():
            if report.fault_counts[level]:
                break
            reached = level
        report.level, report.types = reached, dict(sorted(self._types.items()))
        return report

    def _judge(self, kind: str, document: Json, about: str) -> None:
        for level in ("public core", "profile core"):
            found = list(_check(level, kind).faults(document))
            for where, problem in found:
                self._add(level, document, about, where, problem)
            # Levels build on each other, so the faults at the first failed level decide.
            if found:
                return

    def _follow(self, fact: JsonObject, about: str) -> None:
        session_id, sequence = fact.get("sessionId"), fact.get("sequence")
        if isinstance(session_id, str) and isinstance(sequence, int):
            before = self._sequences.get(session_id)
            if before is not None and sequence <= before:
                problem = f"not above {before}, the sequence of the previous fact"
                self._add("profile core", fact, about, "sequence", problem)
            self._sequences[session_id] = sequence
        for name in fact.keys() - _known_fields():
            problem = "not in the standard; extensions belong in payload or refs"
            self._add("extension", fact, about, name, problem)

    def _add(self, level: Level, document: Json, about: str, where: str, problem: str) -> None:
        self._report.fault_counts[level] += 1
        if len(self._report.faults) < MOST_FAULTS:
            fields = document if isinstance(document, dict) else {}
            session_id, sequence = fields.get("sessionId"), fields.get("sequence")
            fault = LedgerFault(
                level,
                session_id if isinstance(session_id, str) else "unknown",
                sequence if isinstance(sequence, int) else 0,
                about,
                where,
                problem,
            )
            self._report.faults.append(fault)


def judge_lines(judge: LedgerJudge, lines: Iterator[bytes] | list[bytes]) -> None:
    """Check one JSON document per line; a line that is not JSON counts as an invalid fact."""
    for line in lines:
        if line.strip():
            try:
                document = json.loads(line)
            except (ValueError, RecursionError):
                document = None
            judge.check(document)


@cache
def _check(level: Level, kind: str) -> SchemaCheck:
    return SchemaCheck(_schema(f"{_SCHEMAS[level]}-{kind}"))


@cache
def _known_fields() -> frozenset[str]:
    return frozenset(_schema("agentruntime-event")["properties"])


def _schema(name: str) -> JsonObject:
    data = files("arp.ledger").joinpath(f"schemas/{name}.schema.json").read_bytes()
    schema: JsonObject = json.loads(data)
    return schema
