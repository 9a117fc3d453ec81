"""The generator itself: what it writes is lawful, and it leaves no type out."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from arp.ledger.fact import Fact
from arp.ledger.fact_types import FACT_TYPES, PROFILE_TYPES, check
from arp.ledger.payloads import check_payload
from tests.ledger.histories import histories, long_history, sample, written


def assert_lawful(facts: list[Fact]) -> None:
    for place, fact in enumerate(facts, 1):
        check(fact)
        written = {name: value for name in fact.__struct_fields__ if (value := getattr(fact, name))}
        check_payload(fact.type, fact.payload, written)
        assert fact.sequence == place


@given(histories())
def test_a_history_is_lawful_and_has_no_holes(facts: list[Fact]) -> None:
    assert_lawful(facts)


def test_a_long_history_has_facts_of_every_type() -> None:
    """ledger.md 1: the closed list."""
    types = Counter(fact.type for fact in long_history(6_000))
    assert not set(PROFILE_TYPES) - types.keys()


@pytest.mark.parametrize("fact_type", FACT_TYPES)
def test_a_fact_that_is_written_from_its_row_is_lawful(fact_type: str) -> None:
    steps = [("sample", number) for number in range(4)]
    facts = written(steps, {"sample": sample(fact_type)})
    assert_lawful(facts)
    assert [fact.type for fact in facts[1:]] == [fact_type] * 4


def test_the_same_seed_gives_the_same_history() -> None:
    assert long_history(200, seed=7) == long_history(200, seed=7)
    assert long_history(200, seed=7) != long_history(200, seed=8)
