"""An export of a part of a session is about its facts and what lies between them."""

from __future__ import annotations

from arp.ledger.exports.manifest import Scope
from arp.ledger.exports.scope import Range
from arp.ledger.fact import encode
from tests.ledger.exports.test_evidence import story


def range_of(scope: Scope) -> tuple[int, int]:
    found = Range(scope)
    found.take((fact.sequence, encode(fact)) for fact in story().facts)
    return found.first, found.last


def test_a_range_is_from_the_first_to_the_last_fact_that_carries_the_ids() -> None:
    assert range_of(Scope(turn_id="t1")) == (2, 17)
    assert range_of(Scope(task_id="k1")) == (2, 12)
    assert range_of(Scope(turn_id="t1", task_id="k1")) == (2, 2)


def test_ids_that_no_fact_carries_have_no_range() -> None:
    assert range_of(Scope(turn_id="shell")) == (0, 0)
