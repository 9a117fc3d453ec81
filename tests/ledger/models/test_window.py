"""What is open and what ended lately, bounded."""

from __future__ import annotations

from arp.ledger.models.window import Record, Window, keep


def entry(sequence: int) -> Record:
    return Record(first_sequence=sequence)


def full() -> Window[Record]:
    """Two that are open and two that ended, as many as are kept."""
    window = Window[Record]()
    for place, name in enumerate(["a", "b", "c", "d"], 1):
        window.begin(name, entry(place), 4)
    window.end("b", 2)
    window.end("a", 2)
    return window


def test_entries_come_in_the_order_in_which_they_began() -> None:
    assert [one.first_sequence for one in full().entries()] == [1, 2, 3, 4]


def test_the_one_that_ended_first_leaves_when_another_ends() -> None:
    window = full()
    window.end("c", 2)
    assert list(window.closed) == ["a", "c"]
    assert list(window.open) == ["d"]
    assert window.older == 1


def test_the_oldest_that_is_open_leaves_when_there_are_too_many() -> None:
    window = full()
    window.begin("e", entry(5), 2)
    assert list(window.open) == ["d", "e"]
    assert window.older == 1


def test_what_ended_never_pushes_out_what_is_open() -> None:
    window = Window[Record]()
    window.begin("open", entry(1), 2)
    for number in range(2, 50):
        window.begin(f"n{number}", entry(number), 2)
        window.end(f"n{number}", 3)
    assert list(window.open) == ["open"]
    assert list(window.closed) == ["n47", "n48", "n49"]
    assert window.older == 45


def test_what_begins_again_under_its_id_is_kept_once() -> None:
    window = full()
    again = entry(9)
    window.begin("a", again, 4)
    assert window.get("a") is again
    assert "a" not in window.closed


def test_what_is_not_kept_is_not_there() -> None:
    window = full()
    window.end("nobody", 2)
    window.reopen("nobody", 4)
    assert window.get("nobody") is None
    assert window.get(None) is None
    assert window.older == 0


def test_what_is_opened_again_is_open() -> None:
    window = full()
    window.reopen("a", 4)
    assert list(window.open) == ["c", "d", "a"]
    assert list(window.closed) == ["b"]


def test_a_list_keeps_the_newest_and_tells_what_left() -> None:
    entries = [entry(1)]
    assert keep(entries, entry(2), 2) == 0
    assert keep(entries, entry(3), 2) == 1
    assert [one.first_sequence for one in entries] == [2, 3]
