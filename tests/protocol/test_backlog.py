"""Frames that wait for a connection: order, what overtakes, and what is sent together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.framing.backlog import Backlog

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.binary(max_size=6), max_size=4)),
        st.tuples(st.just("add_first"), st.binary(min_size=1, max_size=6)),
        st.tuples(st.just("dequeue"), st.none()),
        st.tuples(st.just("dequeue_most"), st.integers(1, 12)),
        st.tuples(st.just("clear"), st.none()),
    )
)


def test_new_backlog_is_empty() -> None:
    backlog = Backlog()
    assert (bool(backlog), backlog.size, backlog.frames()) == (False, 0, [])
    for dequeue in (backlog.dequeue, lambda: backlog.dequeue_most(9)):
        with pytest.raises(IndexError):
            dequeue()
    assert backlog.size == 0


def test_frames_of_one_write_fit_in_its_limit() -> None:
    """A frame that is longer than the limit is returned alone."""
    backlog = Backlog()
    backlog.add([b"ab", b"cd", b"e", b"0123456789", b"f"])
    writes = []
    while backlog:
        writes.append(backlog.dequeue_most(4))
    assert writes == [[b"ab", b"cd"], [b"e"], [b"0123456789"], [b"f"]]


def test_frame_that_goes_first_is_sent_alone() -> None:
    backlog = Backlog()
    backlog.add([b"a", b"b"])
    backlog.add_first(b"old")
    backlog.add_first(b"pong")
    assert backlog.frames() == [b"pong", b"a", b"b"]
    assert backlog.dequeue_most(100) == [b"pong"]
    assert backlog.dequeue_most(100) == [b"a", b"b"]


@given(STEPS)
def test_size_is_that_of_the_frames_and_the_order_is_that_of_adding(
    steps: list[tuple[str, Any]],
) -> None:
    """Frames leave in the order in which they came, except for the newest `add_first`."""
    backlog = Backlog()
    first: list[bytes] = []
    rest: list[bytes] = []
    for name, argument in steps:
        if name.startswith("dequeue"):
            if not backlog:
                continue
            out = backlog.dequeue_most(argument) if argument else [backlog.dequeue()]
            expected = [*first, *rest][: len(out)]
            first, rest = [], [*first, *rest][len(out) :]
            assert out == expected
        elif name == "add":
            backlog.add(argument)
            rest += argument
        elif name == "add_first":
            backlog.add_first(argument)
            first = [argument]
        else:
            backlog.clear()
            first, rest = [], []
        assert backlog.frames() == [*first, *rest]
        assert backlog.size == sum(map(len, backlog.frames()))
        assert bool(backlog) == bool(first or rest)
