"""A program queues a turn that nobody typed: as any other turn, but it pushes nobody aside."""

from __future__ import annotations

import pytest

from arp.protocol.errors import InvalidMessage, ResourceLimit, UnknownObject
from arp.protocol.limits import Limits
from arp.session.effects import RunTurn
from arp.session.input.receive import MAX_QUEUE, push
from arp.session.state import encode_state
from arp.session.turn_end import end_turn
from arp.session.turn_queue import begin_next, edit_queued
from tests.session.conversation import AT, begun, facts, new, user
from tests.session.test_line import failed, line
from tests.session.test_recovery import HEAD
from tests.support.restoring import restore


def test_turn_that_is_pushed_begins_at_once_where_none_runs() -> None:
    session = new()
    turn_id, effects = push(session, "Disk full", {"host": "a"}, "monitor")
    assert (turn_id, effects) == ("t1", [RunTurn("t1")])
    submitted = facts(session)[0]
    assert (submitted.type, submitted.payload) == (
        "turn.submitted",
        {
            "input": {"input_type": "text", "data": {"host": "a", "text": "Disk full"}},
            "origin": "monitor",
        },
    )
    (echo,) = session.screen.turns["t1"].inputs
    assert (echo.origin, echo.data["text"], echo.at) == ("monitor", "Disk full", AT)


def test_turn_without_a_text_has_an_input_that_no_renderer_shows() -> None:
    session = new()
    push(session, "", {"build": 17}, "builds")
    (echo,) = session.screen.turns["t1"].inputs
    assert (echo.input_type, echo.data) == ("event", {"build": 17})
    assert session.title == ""


@pytest.mark.parametrize("policy", ["queue", "reject", "interrupt"])
def test_turn_that_is_pushed_waits_for_the_one_that_runs(policy: str) -> None:
    session = begun(policy)  # type: ignore[arg-type]
    assert push(session, "later", {}, "app") == ("t2", [])
    assert [fact.type for fact in facts(session)] == ["turn.submitted", "queue.changed"]
    assert end_turn(session, "t1", "completed") == [RunTurn("t2")]


def test_turn_that_is_pushed_leaves_a_paused_queue_paused() -> None:
    session = failed("two")
    assert push(session, "three", {}, "app") == ("t3", [])
    assert line(session)["t3"] == ("queued", 2, True)
    session.turns.resume()
    assert begin_next(session) == [RunTurn("t2")]


def test_same_id_is_one_turn_also_behind_a_restart() -> None:
    session = begun()
    log = facts(session) if session.has_recorded else []
    first = push(session, "x", {}, "app", "n1")
    assert first == ("t2", [])
    assert push(session, "y", {}, "other", "n1") == ("t2", [])
    assert push(session, "x", {}, "app", "n2") == ("t3", [])
    log += facts(session)
    session = new()
    push(session, "x", {}, "app", "n1")
    again = restore(HEAD, facts(session), Limits())
    assert push(again, "x", {}, "app", "n1") == ("t1", [])
    assert encode_state(again) == encode_state(session)


def test_renderer_cannot_take_the_place_of_a_push_by_its_id() -> None:
    session = new()
    with pytest.raises(InvalidMessage, match="begin with push:"):
        user(session, "x", "push:n1")
    assert push(session, "x", {}, "app", "n1") == ("t1", [RunTurn("t1")])


def test_full_queue_takes_no_more() -> None:
    session = begun()
    for _ in range(MAX_QUEUE):
        push(session, "x", {}, "app")
    before = session.sequence
    with pytest.raises(ResourceLimit):
        push(session, "x", {}, "app")
    assert session.sequence == before


def test_file_of_another_session_is_refused() -> None:
    ref = {"id": "f", "name": "a", "size": 1, "mime": "text/plain", "sha256": "abc"}
    with pytest.raises(UnknownObject):
        push(new(), "look", {"files": [ref]}, "app")


def test_input_that_takes_its_place_in_the_queue_was_typed() -> None:
    session = begun()
    push(session, "later", {}, "app")
    user(session, "typed", "i9")
    edit_queued(session, "t2", {"input_type": "text", "data": {"text": "other"}})
    (echo,) = session.screen.turns["t2"].inputs
    assert (echo.data, echo.origin) == ({"text": "other"}, None)
