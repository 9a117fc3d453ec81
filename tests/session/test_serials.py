"""Which input opens a popup: a recent one on the surface that it is about."""

from __future__ import annotations

import pytest

from arp.protocol.errors import InvalidSerial
from arp.session.asking import ask_question
from arp.session.input.receive import push
from arp.session.tracking.serials import Serials
from tests.session.conversation import begun, confirm, facts, send, user
from tests.support.restoring import restore


def test_newest_input_of_a_surface_counts_as_long_as_it_is_recent() -> None:
    serials = Serials()
    for now_s, surface, serial in ((100.0, "main", 3), (102.0, "side", 5), (103.0, "main", 7)):
        serials.stamp(now_s)
        serials.note(surface, serial)
    assert serials.check("main", 108.0, 5) == 7
    assert serials.check("side", 107.0, 5) == 5
    with pytest.raises(InvalidSerial, match=r"6\.0 s old; a popup, .* last 5 s"):
        serials.check("side", 108.0, 5)


def test_without_an_input_there_is_no_serial() -> None:
    serials = Serials()
    serials.stamp(1.0)
    with pytest.raises(InvalidSerial, match="nobody has done anything on surface 'main'"):
        serials.check("main", 1.0, 5)
    serials.note("main", 3)
    assert serials.check("main", 1.0, 5) == 3
    serials.forget("main")
    with pytest.raises(InvalidSerial):
        serials.check("main", 1.0, 5)


def test_inputs_give_serials_and_programs_and_silent_inputs_do_not() -> None:
    session = begun()
    first = session.serials.last
    assert session.log.sequence > first > 0
    push(session, "now", {}, "cron")
    send(session, "focus", {})
    assert session.serials.last == first
    ask_question(session, "t1", confirm("q"))
    send(session, "action", {"action": "confirm"}, source_component="q")
    (resolved,) = [fact for fact in facts(session) if fact.type == "action.resolved"]
    assert session.serials.last == resolved.sequence


def test_a_peer_cannot_fill_the_memory_with_names_of_surfaces() -> None:
    session = begun()
    for number in range(50):
        send(session, "text", {"text": "x"}, surface=f"nothing {number}")
    assert len(session.serials._newest) == 1


def test_inputs_of_the_log_are_not_recent_once_they_are_cleared() -> None:
    session = begun()
    user(session, "more")
    again = restore(session.head, facts(session), session.rules.limits)
    again.serials.clear()
    with pytest.raises(InvalidSerial):
        again.serials.check("main", 1.0, 5)
