"""Known gaps of an export: only those that its facts show, none that is told of every session."""

from __future__ import annotations

from typing import Final

from arp.ledger.exports.manifest import FACTS, Gap
from arp.ledger.exports.sections import MOST_SEQUENCES
from arp.ledger.fact import Fact
from arp.ledger.fact_types import REQUIRED_IDS
from arp.ledger.payload_fields import Export

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
