"""What was exported from the facts, what checks of it found, and what the session made.

Only gaps that an export named are told: none is assumed of every session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from arp.ledger.fact import Fact
from arp.ledger.models.reading import brief, part, text, texts, whole
from arp.ledger.models.window import Record, Window
from arp.protocol.json_value import Json

MOST_EXPORTS: Final = 50
MOST_ARTIFACTS: Final = 50


class Export(Record, rename="camel", omit_defaults=True, kw_only=True):
    """A pack of evidence, a replay case, a review or a benchmark pack."""

    evidence_id: str
    kind: str
    """evidence, replay, review or benchmark."""
    state: str
    """exported, not_applicable, unsupported or missing_correlation."""
    reason: str | None = None
    sha256: str | None = None
    through_sequence: int | None = None
    gaps: list[str] = field(default_factory=list)
    verification: Json = None
    refs: Json = None
    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None
    run_id: str | None = None
    at: str


class Artifact(Record, rename="camel", omit_defaults=True, kw_only=True):
    """Something that the session shows or made."""

    artifact_id: str
    name: str | None = None
    mime: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    output_ref: str | None = None
    changes: int = 0
    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None


class Evidence(Struct, rename="camel", omit_defaults=True):
    """Exports and artifacts of a session."""

    exports: Window[Export] = field(default_factory=lambda: Window[Export]())
    artifacts: Window[Artifact] = field(default_factory=lambda: Window[Artifact]())


def _exported(evidence: Evidence, fact: Fact) -> None:
    payload, name = fact.payload, fact.evidence_id or "unknown"
    known = evidence.exports.get(name)
    export = known or Export(
        evidence_id=name,
        kind="unknown",
        state="unknown",
        at=fact.timestamp,
        first_sequence=fact.sequence,
    )
    export.kind = text(payload, "kind") or export.kind
    export.state = text(payload, "state") or export.state
    export.reason = text(payload, "reason")
    export.sha256 = text(payload, "sha256") or export.sha256
    export.through_sequence = whole(payload, "throughSequence") or export.through_sequence
    export.gaps = texts(payload, "gaps") or export.gaps
    export.verification = brief(part(payload, "verification")) or export.verification
    export.refs = brief(fact.refs) if fact.refs is not None else export.refs
    export.thread_id, export.turn_id = fact.thread_id, fact.turn_id
    export.task_id, export.run_id = fact.task_id, fact.run_id
    export.at, export.last_sequence = fact.timestamp, fact.sequence
    if known is None:
        evidence.exports.begin(name, export, MOST_EXPORTS)


def _changed(evidence: Evidence, fact: Fact) -> None:
    payload, name = fact.payload, fact.artifact_id or "unknown"
    artifact = evidence.artifacts.get(name)
    if artifact is None:
        artifact = Artifact(artifact_id=name, first_sequence=fact.sequence)
        evidence.artifacts.begin(name, artifact, MOST_ARTIFACTS)
    artifact.changes += 1
    artifact.last_sequence = fact.sequence
    artifact.name = text(payload, "name") or artifact.name
    artifact.mime = text(payload, "mime") or artifact.mime
    artifact.bytes = whole(payload, "bytes") or artifact.bytes
    artifact.sha256 = text(payload, "sha256") or artifact.sha256
    artifact.output_ref = fact.output_ref or artifact.output_ref
    artifact.thread_id, artifact.turn_id = fact.thread_id, fact.turn_id
    artifact.task_id = fact.task_id or artifact.task_id


RULES: Final[dict[str, Callable[[Evidence, Fact], None]]] = {
    "evidence.changed": _exported,
    "artifact.changed": _changed,
}
"""Type of a fact → what it changes here."""
