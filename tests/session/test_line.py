"""A line waits behind an agent that failed, where somebody can let it go on (protocol.md 2.4)."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from arp.ledger.fact import Fact
from arp.protocol.errors import AgentFailed, SessionBusy, UnknownObject
from arp.protocol.limits import Limits
from arp.protocol.messages import Input, RendererCapabilities
from arp.session.effects import Acknowledge, RunTurn
from arp.session.input.branching import check_branch_change
from arp.session.recovery import recover
from arp.session.session import Head, Session
from arp.session.session_settings import Rules
from arp.session.state import decode_state, encode_state
from arp.session.turn_end import end_turn
from arp.session.turn_queue import begin_next, edit_queued, promote
from arp.view.profile import profile_of
from tests.session.conversation import AT, begun, facts, new, send, user, watched
from tests.support.restoring import restore

LETS_GO_ON = profile_of(RendererCapabilities(["text"], ["line-pause"]))


def failed(*said: str) -> Session:
    """A session whose turn `t1` failed while others waited, before a renderer that shows it."""
    session = begun()
    watched(session, LETS_GO_ON)
    for words in said:
        user(session, words)
    session.drain(AT)
    assert end_turn(session, "t1", "failed", AgentFailed("no")) == []
    return session


def line(session: Session) -> dict[str, tuple[Any, Any, bool]]:
    turns = session.screen.turns.values()
    return {turn.id: (turn.status, turn.position, turn.paused) for turn in turns}


def on(session: Session, **more: Any) -> list[Any]:
    return send(session, "action", {"action": "arp.continue"}, **more)


def test_line_waits_behind_an_agent_that_failed() -> None:
    session = failed("two", "three")
    assert line(session) == {
        "t1": ("failed", None, False),
        "t2": ("queued", 1, True),
        "t3": ("queued", 2, True),
    }
    last = facts(session)[-1]
    assert (last.type, last.payload) == ("queue.changed", {"queued": ["t2", "t3"], "paused": True})
    assert (session.running, session.turns.is_active, begin_next(session)) == (None, False, [])


def test_nothing_waits_where_nobody_shows_it() -> None:
    session = begun()
    user(session, "two")
    assert end_turn(session, "t1", "failed", AgentFailed("no")) == [RunTurn("t2")]


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_line_goes_on_behind_a_turn_that_did_not_fail(status: Any) -> None:
    session = begun()
    watched(session, LETS_GO_ON)
    user(session, "two")
    assert end_turn(session, "t1", status) == [RunTurn("t2")]


def test_server_that_stops_makes_no_line_wait() -> None:
    session = begun()
    watched(session, LETS_GO_ON)
    user(session, "two")
    error = AgentFailed("stopped")
    assert end_turn(session, "t1", "failed", error, "interrupted") == [RunTurn("t2")]


def test_failure_with_nothing_in_line_is_the_end_of_it() -> None:
    session = begun()
    watched(session, LETS_GO_ON)
    assert end_turn(session, "t1", "failed", AgentFailed("no")) == []
    assert user(session, "two") == [RunTurn("t2")]


def test_somebody_lets_it_go_on() -> None:
    session = failed("two", "three")
    session.drain(AT)
    assert on(session, id="i") == [Acknowledge("i", None), RunTurn("t2")]
    assert line(session)["t2"] == ("running", None, False)
    assert line(session)["t3"] == ("queued", 1, False)
    told = [(fact.type, fact.payload) for fact in facts(session)]
    assert told == [
        ("run.status", {"inputId": "i"}),
        ("turn.started", {}),
        ("queue.changed", {"queued": ["t3"]}),
    ]
    assert end_turn(session, "t2", "completed") == [RunTurn("t3")]


def test_continue_twice_or_of_nothing_does_nothing() -> None:
    session = failed("two")
    on(session, id="i")
    assert on(session, id="i") == [Acknowledge("i", None)]
    assert on(session) == []
    assert on(new()) == []


def test_whoever_says_something_more_lets_it_go_on_in_order() -> None:
    """So a renderer that knows nothing of it never waits for ever."""
    session = failed("two")
    assert user(session, "three") == [RunTurn("t2")]
    assert line(session)["t3"] == ("queued", 1, False)


def test_line_that_waits_can_be_put_in_order_changed_and_taken_out() -> None:
    session = failed("two", "three", "four")
    promote(session, "t4")
    edit_queued(session, "t4", {"input_type": "text", "data": {"text": "other"}})
    assert end_turn(session, "t2", "cancelled") == []
    assert {name: place for name, place in line(session).items() if place[0] == "queued"} == {
        "t4": ("queued", 1, True),
        "t3": ("queued", 2, True),
    }
    end_turn(session, "t4", "cancelled")
    end_turn(session, "t3", "cancelled")
    assert session.turns.is_paused is False
    assert user(session, "five") == [RunTurn("t5")]


def test_user_puts_a_turn_first_that_waits_and_is_told_which_one() -> None:
    session = failed("two", "three")
    session.drain(AT)
    data = {"action": "arp.promote", "payload": {"turn_id": "t3"}}
    assert send(session, "action", data, id="i") == [Acknowledge("i", "t3")]
    assert line(session)["t3"] == ("queued", 1, True)
    assert [fact.type for fact in facts(session)] == ["queue.changed", "run.status"]
    send(session, "action", data)
    assert session.queue == ["t3", "t2"]


@pytest.mark.parametrize("payload", [None, {}, {"turn_id": "t1"}, {"turn_id": 3}, "t2"])
def test_turn_that_does_not_wait_is_neither_put_first_nor_changed(payload: Any) -> None:
    session = failed("two", "three")
    with pytest.raises(UnknownObject, match="is queued"):
        send(session, "action", {"action": "arp.promote", "payload": payload})
    with pytest.raises(UnknownObject, match="no turn 't1' is queued"):
        send(session, "text", {"text": "x"}, edits="t1")
    assert session.queue == ["t2", "t3"]


def test_session_that_leaves_the_memory_runs_no_turn_and_keeps_its_line() -> None:
    session = begun()
    user(session, "two")
    session.turns.leave()
    assert (session.running, session.queue) == (None, ["t2"])


def test_session_in_which_a_recording_is_played_takes_no_input() -> None:
    session = new()
    session.begin_recording()
    with pytest.raises(SessionBusy):
        user(session, "hi")
    assert session.turns.is_active


def test_another_branch_is_refused_while_turns_wait() -> None:
    """It has its own turns behind it; another version of a turn has none, and takes them along."""
    for action, is_refused in (("arp.branch", True), ("arp.regenerate", False)):
        again = Input(input_type="action", data={"action": action, "payload": {"turn_id": "t1"}})
        with pytest.raises(SessionBusy) if is_refused else nullcontext():
            check_branch_change(failed("two"), again)


def test_line_waits_over_a_restart_and_in_a_stored_state() -> None:
    session = new()
    watched(session, LETS_GO_ON)
    for words in ("one", "two"):
        user(session, words)
    end_turn(session, "t1", "failed", AgentFailed("no"))
    log: list[Fact] = facts(session)
    head = Head("s", "e")
    for again in (
        restore(head, log, Limits()),
        decode_state(encode_state(session), head, Rules(), None),
    ):
        assert line(again) == line(session)
        assert recover(again) == []
        assert on(again) == [RunTurn("t2")]
