"""What an agent keeps for a session: recorded, restored, and one for each branch."""

from __future__ import annotations

from typing import Any

import pytest

from arp.ledger.fact import Fact
from arp.protocol.errors import ResourceLimit
from arp.protocol.limits import Limits
from arp.redact.redactor import Redactor
from arp.redact.settings import Redaction
from arp.session.recovery import apply_stored, end_plan
from arp.session.session import Head, Session
from arp.session.session_settings import MAX_STATE_BYTES, Rules
from arp.session.session_values import update_state
from arp.session.state import decode_state, encode_state
from arp.session.tracking.branches import Branches
from arp.session.turn_end import end_turn
from tests.session.conversation import AT, begun, facts, new, user
from tests.support.restoring import restore

HEAD = Head("s", "e")


def updates(log: list[Fact]) -> list[tuple[str | None, dict[str, Any]]]:
    """Return the turn and the payload of each `session.updated`."""
    return [(fact.turn_id, fact.payload) for fact in log if fact.type == "session.updated"]


def test_changed_state_is_one_fact_of_its_turn() -> None:
    session = begun()
    update_state(session, "t1", {"page": 2})
    assert session.settings.state == {"page": 2}
    assert updates(facts(session)) == [("t1", {"state": {"page": 2}})]


def test_state_that_did_not_change_is_not_recorded_again() -> None:
    session = begun()
    update_state(session, "t1", {})
    update_state(session, "t1", {"a": 1})
    update_state(session, "t1", {"a": 1})
    assert updates(facts(session)) == [("t1", {"state": {"a": 1}})]


def test_true_is_not_the_number_1() -> None:
    """They are equal in Python, and differ in JSON."""
    session = begun()
    update_state(session, "t1", {"a": 1})
    update_state(session, "t1", {"a": True})
    kinds = [type(payload["state"]["a"]) for _, payload in updates(facts(session))]
    assert kinds == [int, bool]


def test_state_of_65536_bytes_is_recorded_and_of_one_more_refused() -> None:
    fits = {"x": "a" * (MAX_STATE_BYTES - len('{"x":""}'))}
    session = begun()
    update_state(session, "t1", fits)
    with pytest.raises(ResourceLimit, match=r"^turn\.state: 65537 bytes as JSON; at most 65536\."):
        update_state(session, "t1", {"x": fits["x"] + "a"})
    assert session.settings.state == fits
    assert updates(facts(session)) == [("t1", {"state": fits})]


@pytest.mark.parametrize(
    ("state", "where"),
    [
        ({"a": 1, "github": {"auth": "ghp_" + "Q7" * 18}}, r"turn\.state\['github'\]"),
        ({"password": "hunter2-and-more"}, r"turn\.state\['password'\]"),
        ({"note": "use the-one-of-the-process here"}, r"turn\.state\['note'\]"),
        ({"ghp_" + "Q7" * 18: 1}, r"turn\.state: a key"),
    ],
)
def test_secret_in_the_state_is_refused_and_not_quoted(state: dict[str, Any], where: str) -> None:
    """Redaction would put a mark in its place, which the agent would read back as the value."""
    redactor = Redactor(Redaction(secrets=("the-one-of-the-process",)))
    session = Session(HEAD, Limits(), redactor=redactor)
    user(session, "hi")
    session.drain(AT)
    with pytest.raises(
        ValueError, match=rf"^{where} holds a secret|^{where} is a secret"
    ) as raised:
        update_state(session, "t1", state)
    for secret in ("Q7Q7", "hunter2", "the-one-of"):
        assert secret not in str(raised.value)
    assert session.settings.state == {}
    assert updates(facts(session)) == []


def test_restored_session_has_the_state() -> None:
    session = new()
    user(session, "hi")
    update_state(session, "t1", {"a": 1})
    end_turn(session, "t1", "completed")
    user(session, "on")
    update_state(session, "t2", {"a": 2})
    assert restore(HEAD, facts(session), Limits()).settings.state == {"a": 2}


def test_state_that_is_no_object_in_a_log_of_others_is_passed_over() -> None:
    session = begun()
    session.record("session.updated", {"state": "x", "title": "Sales"})
    assert (session.settings.state, session.title) == ({}, "Sales")


def test_stored_session_has_the_state() -> None:
    session = begun()
    update_state(session, "t1", {"a": [1, None, "x"]})
    session.drain(AT)
    again = decode_state(encode_state(session), HEAD, Rules(), None)
    assert again.settings.state == {"a": [1, None, "x"]}


def test_each_branch_has_the_state_of_its_own_turns() -> None:
    """`edits` goes on from what stood before the old version; the old one has its own again."""
    session = new()
    session.settings.branches = Branches()
    log: list[Fact] = []
    for number, edits in enumerate([None, None, "t2"], 1):
        _submit(session, f"t{number}", edits)
        update_state(session, f"t{number}", {"turn": number})
        end_turn(session, f"t{number}", "completed")
        log += facts(session)
    assert [turn for turn, _ in updates(log)] == ["t1", "t2", "t3"]
    for shown, state in [(["t1"], 1), (["t1", "t2"], 2), (["t1", "t3"], 3)]:
        assert _made_of(log, shown).settings.state == {"turn": state}
    assert restore(HEAD, log, Limits()).settings.state == {"turn": 3}


def _submit(session: Session, turn_id: str, edits: str | None) -> None:
    """Records a turn that runs, as another version of a turn if it is one."""
    told = {"input": {"input_type": "text", "data": {"text": "x"}}}
    session.in_turn("turn.submitted", turn_id, {**told, "edits": edits} if edits else told)
    session.in_turn("turn.started", turn_id, {})


def _made_of(log: list[Fact], shown: list[str]) -> Session:
    session = new()
    session.settings.begin_plan(shown)
    apply_stored(session, log)
    end_plan(session)
    return session
