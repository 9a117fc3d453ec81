"""The generator itself: what it writes is lawful, and it leaves no type out."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from arp.ledger.fact import Fact
from arp.ledger.fact_types import REQUIRED_IDS, check
from arp.ledger.payloads import check_payload
from tests.ledger.histories import histories, long_history


@given(histories())
def test_a_history_is_lawful_and_has_no_holes(facts: list[Fact]) -> None:
    for place, fact in enumerate(facts, 1):
        check(fact)
        written = {name: value for name in fact.__struct_fields__ if (value := getattr(fact, name))}
        check_payload(fact.type, fact.payload, written)
        assert fact.sequence == place


def test_a_long_history_has_facts_of_every_type() -> None:
    """ledger.md 1: the closed list."""
    written = Counter(fact.type for fact in long_history(6_000))
    assert not REQUIRED_IDS.keys() - written.keys()


def test_the_same_seed_gives_the_same_history() -> None:
    assert long_history(200, seed=7) == long_history(200, seed=7)
    assert long_history(200, seed=7) != long_history(200, seed=8)
