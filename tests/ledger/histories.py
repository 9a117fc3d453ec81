"""Lawful histories over every event family, from random numbers: each fact is as its type must be.

A history is a list of steps; a step is the name of an action (`history_actions`) and a number from
which all its choices come, so that a failing history is as short as it can be and says what
happened. `histories()` is for hypothesis, `long_history` for tests of size and speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

from arp.ledger.fact import Fact
from tests.ledger.historian import Historian
from tests.ledger.history_work import ACTIONS

Step = tuple[str, int]


def written(steps: Sequence[Step]) -> list[Fact]:
    """Return the facts of a history."""
    historian = Historian()
    for name, number in steps:
        historian.chance = Random(number)
        ACTIONS[name](historian)
    return historian.facts


def histories(most: int = 60) -> st.SearchStrategy[list[Fact]]:
    """Gives histories of up to so many steps."""
    step = st.tuples(st.sampled_from(sorted(ACTIONS)), st.integers(0, 2**32))
    return st.lists(step, max_size=most).map(written)


def long_history(steps: int, seed: int = 1) -> list[Fact]:
    """Return the same long history each time."""
    chance, names = Random(seed), sorted(ACTIONS)
    return written([(chance.choice(names), chance.randrange(2**32)) for _ in range(steps)])
