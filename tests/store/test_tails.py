"""Which facts are sorted when."""

from __future__ import annotations

import pytest

from arp.store import tails as tails_module
from arp.store.tails import Tails


@pytest.fixture
def tails(monkeypatch: pytest.MonkeyPatch) -> Tails:
    monkeypatch.setattr(tails_module, "JOURNAL_BYTES", 100)
    monkeypatch.setattr(tails_module, "SPILL_BYTES", 20)
    return Tails()


def test_a_tail_grows_behind_what_it_has(tails: Tails) -> None:
    tails.add([("a", 5, [b"12", b"3"])], row=1)
    tails.add([("a", 7, [b"4"])], row=2)
    tail = tails.get("a")
    assert tail is not None
    assert (tail.first, tail.last, tail.facts) == (5, 7, [b"12", b"3", b"4"])
    assert (tail.row, tail.size) == (1, 4)
    assert tails.get("b") is None


def test_nothing_is_due_while_there_is_little(tails: Tails) -> None:
    assert tails.due() == {}
    tails.add([("a", 1, [b"x" * 19]), ("b", 1, [b"x" * 19])], row=1)
    assert tails.due() == {}


def test_a_full_tail_is_due_alone(tails: Tails) -> None:
    tails.add([("a", 1, [b"x"])], row=1)
    tails.add([("b", 1, [b"x" * 10, b"x" * 10])], row=2)
    assert list(tails.due()) == ["b"]


def test_the_oldest_tails_are_due_when_the_journal_is_too_long(tails: Tails) -> None:
    for row in range(1, 12):
        tails.add([(f"s{row}", 1, [b"x" * 10])], row=row)
    assert list(tails.due()) == ["s1", "s2"]


def test_one_old_fact_does_not_hold_the_journal_for_ever(tails: Tails) -> None:
    """Its row could not go, nor any behind it, however fast another session is sorted."""
    tails.add([("quiet", 1, [b"x"])], row=1)
    for row in range(2, 8):
        tails.add([("loud", row, [b"x" * 20])], row=row)
        due = tails.due()
        tails.remove(due)
    assert tails.get("quiet") is None


def test_removed_tails_are_no_longer_due_and_can_begin_again(tails: Tails) -> None:
    tails.add([("a", 1, [b"x" * 20])], row=1)
    tails.remove(tails.due())
    assert tails.due() == {}
    tails.add([("a", 2, [b"y"])], row=2)
    tail = tails.get("a")
    assert tail is not None
    assert (tail.first, tail.row, tail.facts) == (2, 2, [b"y"])


def test_rows_are_needed_from_the_oldest_tail_that_stays(tails: Tails) -> None:
    tails.add([("a", 1, [b"x"])], row=3)
    tails.add([("b", 1, [b"x"])], row=4)
    tails.add([("a", 2, [b"x"])], row=5)
    assert tails.oldest_row_without({}, default=9) == 3
    assert tails.oldest_row_without({"a": tails.by_session["a"]}, default=9) == 4
    assert tails.oldest_row_without(dict(tails.by_session), default=9) == 9
