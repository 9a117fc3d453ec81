"""What facts make of a pack stays the same for the same facts, or its version is raised."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from arp.audit.evidence.derived import TIMELINE, DerivedParts
from arp.audit.evidence.manifest import DERIVATION, Scope, TrialOf
from arp.audit.evidence.scope import FactRange
from arp.audit.evidence.trials import TrialParts
from arp.ledger.fact import decode
from tests.ledger.histories import long_history

FACTS = Path(__file__).parents[1] / "models" / "version_4.ndjson"

MADE = {
    1: "a5e21f3bdd43bac19fe148259f459e40d7dd12a3907bd0dd4c87fedbc6353d5e",
}
"""`DERIVATION` → SHA-256 of all that is made of these facts.

If this differs, packs that were made before cannot be compared with their facts any more: raise
`DERIVATION` in `manifest.py` and add a line. (Until a version is released, change its line.)
"""


def test_what_is_made_of_the_same_facts_changes_only_with_the_version() -> None:
    facts = [decode(line) for line in FACTS.read_bytes().splitlines()]
    derived = DerivedParts(
        facts[0].session_id, Scope(), also=[TrialParts(TrialOf("trial-1", "agent"))]
    )
    timeline = b"".join([*map(derived.fold, facts), derived.rest()])
    made = derived.documents() | {TIMELINE: timeline}
    digest = sha256()
    for name in sorted(made):
        digest.update(name.encode() + made[name])
    assert MADE[DERIVATION] == digest.hexdigest(), f"these facts make {digest.hexdigest()}"


@pytest.mark.parametrize("first", [2, 40, 150])
def test_a_part_of_a_session_is_told_without_what_was_before(first: int) -> None:
    facts = long_history(200)
    one, other = (DerivedParts("s", Scope(), FactRange(first)) for _ in range(2))
    for fact in facts[first - 1 :]:
        one.fold(fact)
        other.fold(fact)
    assert one.documents() == other.documents()
    assert one.model.sequence == len(facts)
