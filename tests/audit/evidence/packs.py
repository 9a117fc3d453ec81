"""Packs for tests, made of lawful histories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from arp.audit.evidence.export import EvidenceExport, ExportedPack, Order
from arp.audit.evidence.manifest import Scope
from arp.ledger.fact import Fact, encode
from tests.ledger.histories import long_history

CREATED = "2026-02-03T04:05:06.000Z"


def bodies(steps: int, seed: int = 1, session_id: str = "s") -> list[bytes]:
    """Return the facts of a long history as a store holds them."""
    return stored(long_history(steps, seed), session_id)


def stored(facts: Sequence[Fact], session_id: str = "s") -> list[bytes]:
    """Gives facts as a store holds them, as those of a session."""
    return [encode(msgspec.structs.replace(fact, session_id=session_id)) for fact in facts]


def exported(
    facts: Sequence[bytes],
    target: Path,
    *,
    session_id: str = "s",
    scope: Scope | None = None,
    read: Callable[[str], bytes] | None = None,
) -> ExportedPack:
    """Exports facts, in pages of seven."""
    order = Order(
        session_id=session_id,
        epoch="e1",
        evidence_id="evidence-1",
        created_at=CREATED,
        scope=scope or Scope(),
    )
    with EvidenceExport(order, target) as under_way:
        for start in range(0, len(facts), 7):
            under_way.add_page(list(enumerate(facts[start : start + 7], start + 1)))
        return under_way.finish(read)
