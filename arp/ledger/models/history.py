"""The context that models read, and what was done to the history that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from arp.ledger.fact import Fact
from arp.ledger.models.reading import text, whole

MOST_MODELS: Final = 20


class Compaction(Struct, rename="camel", omit_defaults=True):
    """A context that was made shorter, or should have been."""

    status: str
    """running, completed or failed."""
    sequence: int
    turn_id: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    through_sequence: int | None = None
    summary: str | None = None
    reason: str | None = None


class Boundary(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where a history was rolled back to, loaded from or reconstructed."""

    type: str
    sequence: int
    from_sequence: int | None = None
    through_sequence: int | None = None
    source: str | None = None
    reason: str | None = None


class History(Struct, rename="camel", omit_defaults=True):
    """Context and history of a session."""

    tokens: int | None = None
    max_tokens: int | None = None
    compactions: int = 0
    compaction: Compaction | None = None
    """The newest."""
    rollbacks: int = 0
    boundary: Boundary | None = None
    """The newest."""
    stored_models: dict[str, int] = {}
    """Read models that were stored, with the sequence that they cover."""


def _context(history: History, fact: Fact) -> None:
    history.tokens = whole(fact.payload, "tokens")
    history.max_tokens = whole(fact.payload, "maxTokens") or history.max_tokens


def _compaction(history: History, fact: Fact) -> None:
    payload, step = fact.payload, fact.type.removeprefix("context.compaction.")
    before = history.compaction if step != "started" else None
    tokens = whole(payload, "tokensBefore")
    if tokens is None and before is not None:
        tokens = before.tokens_before
    history.compaction = Compaction(
        status="running" if step == "started" else step,
        sequence=fact.sequence,
        turn_id=fact.turn_id,
        tokens_before=tokens,
        tokens_after=whole(payload, "tokensAfter"),
        through_sequence=whole(payload, "throughSequence"),
        summary=text(payload, "summary"),
        reason=text(payload, "reason"),
    )
    if step == "completed":
        history.compactions += 1
        history.tokens = history.compaction.tokens_after or history.tokens


def _boundary(history: History, fact: Fact) -> None:
    payload = fact.payload
    through = whole(payload, "throughSequence")
    history.boundary = Boundary(
        fact.type,
        fact.sequence,
        whole(payload, "fromSequence"),
        whole(payload, "toSequence") if through is None else through,
        text(payload, "source"),
        text(payload, "reason"),
    )
    history.rollbacks += fact.type == "history.rollback.completed"


def _stored(history: History, fact: Fact) -> None:
    name, through = text(fact.payload, "readModel"), whole(fact.payload, "throughSequence")
    known = history.stored_models
    if name and through is not None and (name in known or len(known) < MOST_MODELS):
        known[name] = through


RULES: Final[dict[str, Callable[[History, Fact], None]]] = {
    "context.resolved": _context,
    "context.compaction.started": _compaction,
    "context.compaction.completed": _compaction,
    "context.compaction.failed": _compaction,
    "history.window.loaded": _boundary,
    "history.reconstructed": _boundary,
    "history.rollback.started": _boundary,
    "history.rollback.completed": _boundary,
    "snapshot.updated": _stored,
    "snapshot.repaired": _stored,
}
"""Type of a fact → what it changes here."""
