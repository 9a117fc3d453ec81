"""The newest inputs are remembered, the same ones after a replay; what was named is read safely."""

from __future__ import annotations

from typing import Any

import pytest

from arp.ledger.fact import decode
from arp.protocol.limits import Limits
from arp.protocol.messages import Input
from arp.session.effects import Acknowledge
from arp.session.input.receive import receive
from arp.session.session import Head, Session
from arp.session.tracking.input_log import REMEMBERED, InputLog, files_named
from arp.session.turn_end import end_turn
from arp.surface.draft_answer import understand_draft
from tests.support.restoring import restore

AT = "2026-11-21T08:00:00.000000Z"
HEAD = Head("s", "epoch")


def test_the_oldest_of_too_many_is_forgotten() -> None:
    seen = InputLog()
    for number in range(REMEMBERED + 2):
        seen.remember(f"i{number}", f"t{number}")
    assert len(seen) == REMEMBERED == 4096
    assert [name for name in ("i0", "i1", "i2", "i4097") if name in seen] == ["i2", "i4097"]
    assert seen["i4097"] == "t4097"


def test_file_that_comes_again_is_the_newest() -> None:
    seen = InputLog()
    seen.remember_files(["first", "second"])
    seen.remember_files(f"f{number}" for number in range(REMEMBERED - 2))
    seen.remember_files(["first", "one more"])
    assert len(seen.files) == REMEMBERED
    assert [name for name in ("first", "second", "f0") if name in seen.files] == ["first", "f0"]


def with_many_cancels(count: int) -> tuple[Session, list[bytes]]:
    """A session that had a first input, then many that began no turn."""
    session = Session(HEAD, Limits())
    session.record("session.created", {"epoch": "epoch", "workflow": ""})
    receive(session, said("first"), understand_draft)
    end_turn(session, "t1", "completed")
    for number in range(count):
        receive(session, cancel(f"c{number}"), understand_draft)
    return session, list(session.drain(AT).facts)


def said(input_id: str) -> Input:
    return Input(input_type="text", data={"text": "once"}, id=input_id)


def cancel(input_id: str) -> Input:
    return Input(input_type="action", data={"action": "arp.cancel"}, id=input_id)


@pytest.mark.parametrize("restored", [False, True], ids=["live", "restored"])
def test_id_counts_as_the_same_input_while_4095_others_came_since(restored: bool) -> None:
    """The bound is the same before and after a restart, to the very input."""
    session, facts = with_many_cancels(REMEMBERED - 1)
    if restored:
        session = restore(HEAD, map(decode, facts), Limits())
    assert receive(session, said("first"), understand_draft) == [Acknowledge("first", "t1")]
    assert session.queue == []
    assert session.running is None


@pytest.mark.parametrize("restored", [False, True], ids=["live", "restored"])
def test_id_that_was_forgotten_is_a_new_input(restored: bool) -> None:
    """Nothing tells it from one: what it does is told like any other."""
    session, facts = with_many_cancels(REMEMBERED)
    if restored:
        session = restore(HEAD, map(decode, facts), Limits())
    (acknowledged, _) = receive(session, said("first"), understand_draft)
    assert acknowledged == Acknowledge("first", "t2")


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({}, []),
        ({"files": [{"sha256": "a"}, {"name": "b"}, 3]}, ["a"]),
        ({"files": None, "fields": None}, []),
        ({"files": 5, "fields": 5}, []),
        ({"files": {"sha256": "a"}, "fields": ["sha256"]}, []),
        ({"fields": {"cv": {"sha256": "a"}, "name": "Ada"}}, ["a"]),
        ({"fields": {"cv": {"sha256": ["a"]}}}, [""]),
    ],
)
def test_files_are_found_in_whatever_an_input_holds(data: Any, named: list[str]) -> None:
    assert list(files_named(data)) == named


@pytest.mark.parametrize("data", [{"files": None}, {"files": 5}, {"fields": 5}])
def test_log_that_holds_strange_data_can_be_replayed(data: Any) -> None:
    """An earlier version took it, and what is in the log must be readable for ever."""
    session = Session(HEAD, Limits())
    told = {"input_type": "text", "data": {"text": "x", **data}}
    session.in_turn("turn.submitted", "t1", {"input": told})
    again = restore(HEAD, map(decode, session.drain(AT).facts), Limits())
    assert again.queue == ["t1"]
