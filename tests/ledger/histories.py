"""Lawful histories over every event family, from random numbers: each fact is as its type must be.

A history is a list of steps; a step is the name of an action (`history_actions`) and a number from
which all its choices come, so that a failing history is as short as it can be and says what
happened. `histories()` is for hypothesis, `long_history` for tests of size and speed.

A type that no action writes is written from its row (`sample_payloads`). Only `histories()` does
so: the golden documents are made of `long_history`, which a new type must not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random

from hypothesis import strategies as st

from arp.ledger.fact import Fact
from arp.ledger.fact_types import FACT_TYPES
from tests.ledger.historian import Historian
from tests.ledger.history_work import ACTIONS
from tests.ledger.sample_payloads import ids_of, payload_of

Step = tuple[str, int]


Action = Callable[[Historian], object]


def written(steps: Sequence[Step], actions: Mapping[str, Action] = ACTIONS) -> list[Fact]:
    """Return the facts of a history."""
    historian = Historian()
    for name, number in steps:
        historian.chance = Random(number)
        actions[name](historian)
    return historian.facts


def sample(fact_type: str) -> Action:
    """Return the action that writes a fact of a type from its row."""
    return lambda h: h.add(fact_type, payload_of(fact_type, h.chance), **ids_of(fact_type))


@cache
def all_actions() -> dict[str, Action]:
    """Return all actions, and one for each fact type that none of them writes."""
    types = {fact.type for fact in long_history(3_000)}
    return {**ACTIONS, **{name: sample(name) for name in FACT_TYPES if name not in types}}


def histories(most: int = 60) -> st.SearchStrategy[list[Fact]]:
    """Return a strategy for histories with at most `most` steps."""
    actions = all_actions()
    step = st.tuples(st.sampled_from(sorted(actions)), st.integers(0, 2**32))
    return st.lists(step, max_size=most).map(lambda steps: written(steps, actions))


def long_history(steps: int, seed: int = 1) -> list[Fact]:
    """Return the same long history each time."""
    chance, names = Random(seed), sorted(ACTIONS)
    return written([(chance.choice(names), chance.randrange(2**32)) for _ in range(steps)])
