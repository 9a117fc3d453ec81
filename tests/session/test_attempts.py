"""The attempt that a turn was started for ends with the turn, and nobody else's does."""

from __future__ import annotations

from typing import Any

import pytest

from arp.ledger.fact import Fact
from arp.protocol.limits import Limits
from arp.protocol.messages import Input
from arp.session.asking import ask_question
from arp.session.attempts import TurnAttempt, TurnAttempts
from arp.session.input.receive import NewTurnOptions, submit
from arp.session.recording.recorded import RecordedFact
from arp.session.recovery import recover
from arp.session.session import FACT_HANDLERS, Head, Session
from arp.session.session_settings import Rules
from arp.session.state import decode_state, encode_state
from arp.session.turn_end import end_turn
from tests.session.conversation import confirm, facts, new, send
from tests.support.restoring import restore

RUN = {"task_id": "k", "run_id": "k.1"}

OF_ITEM = {**RUN, "job_id": "j", "job_item_id": "i", "root_task_id": "top"}

ENDS = frozenset(
    ("task.attempt.completed", "task.attempt.failed", "job.item.completed", "job.item.failed")
)


def begin(session: Session, ids: dict[str, str] = RUN, turn_id: str = "one") -> None:
    """Submit a turn for a run, and begin the attempt, as the control plane does."""
    message = Input(input_type="text", data={"text": "go"})
    submit(session, message, NewTurnOptions(turn_id, RUN))
    of_turn = {"thread_id": session.threads.of(turn_id), "turn_id": turn_id}
    session.record("task.attempt.started", {"attempt": 2}, **ids, **of_turn)


def ends(session: Session) -> list[tuple[str, dict[str, Any]]]:
    """Return the facts that end attempts and items, of those recorded since the last time."""
    return [(one.type, one.payload) for one in facts(session) if one.type in ENDS]


@pytest.mark.parametrize(
    ("status", "reason", "end"),
    [
        ("completed", None, ("task.attempt.completed", {"attempt": 2})),
        ("failed", None, ("task.attempt.failed", {"attempt": 2, "reason": "failed"})),
        ("cancelled", None, ("task.attempt.failed", {"attempt": 2, "reason": "cancelled"})),
        ("failed", "interrupted", ("task.attempt.failed", {"attempt": 2, "reason": "interrupted"})),
    ],
)
def test_attempt_ends_as_its_turn(status: Any, reason: str | None, end: Any) -> None:
    session = new()
    begin(session)
    end_turn(session, "one", status, reason=reason)
    found = facts(session)
    assert (found[-1].type, found[-1].payload) == end
    assert found[-2].type.startswith("turn.")
    assert (found[-1].turn_id, found[-1].task_id, found[-1].run_id) == ("one", "k", "k.1")
    assert session.attempts == {}


def test_item_of_a_job_ends_with_its_attempt() -> None:
    session = new()
    begin(session, OF_ITEM)
    end_turn(session, "one", "completed")
    attempt, item = facts(session)[-2:]
    assert (attempt.type, item.type) == ("task.attempt.completed", "job.item.completed")
    assert (item.job_id, item.job_item_id, item.root_task_id) == ("j", "i", "top")


def test_attempt_that_had_begun_before_or_was_ended_is_left() -> None:
    session = new()
    session.record("task.attempt.started", {"attempt": 1}, **RUN)
    message = Input(input_type="text", data={"text": "go"})
    submit(session, message, NewTurnOptions("one", RUN))
    end_turn(session, "one", "completed")
    begin(session, turn_id="two")
    session.record("task.attempt.failed", {"attempt": 2, "reason": "no luck"}, **RUN)
    session.record("task.attempt.completed", {"attempt": 1}, task_id="k", run_id="other")
    end_turn(session, "two", "completed")
    assert [payload.get("reason") for _, payload in ends(session)] == ["no luck", None]
    assert session.attempts == {}


def test_attempt_goes_on_with_another_turn_of_its_run() -> None:
    session = new()
    begin(session)
    for turn_id, run_id in (("two", "k.9"), ("three", "k.1"), ("four", "k.1")):
        ids = {"task_id": "k", "run_id": run_id}
        message = Input(input_type="text", data={"text": "more"})
        submit(session, message, NewTurnOptions(turn_id, ids))
    for turn_id in ("one", "two", "three"):
        end_turn(session, turn_id, "completed")
    assert ends(session) == []
    end_turn(session, "four", "cancelled")
    assert ends(session) == [("task.attempt.failed", {"attempt": 2, "reason": "cancelled"})]


def test_number_of_an_attempt_that_is_none_counts_as_the_first() -> None:
    attempts = TurnAttempts()
    attempts.add_turn("one", RUN)
    attempts.apply_attempt("task.attempt.started", "one", {"attempt": "x"}, RUN)
    assert attempts == {"one": TurnAttempt(RUN, 1)}


def test_a_turn_that_is_shown_as_waiting_keeps_its_attempt() -> None:
    session = new()
    begin(session)
    for ended in ({"status": "waiting"}, {"decision": "expired"}):
        type_name = "turn.failed" if "status" in ended else "action.resolved"
        fact = RecordedFact(type_name, ended, {"action_id": "a"}, turn_id="one")
        FACT_HANDLERS[type_name](session, fact)
        assert "one" in session.attempts
    ended = {"decision": "expired", "ends": "completed"}
    fact = RecordedFact("action.resolved", ended, {"action_id": "a"}, turn_id="one")
    FACT_HANDLERS[fact.type](session, fact)
    assert session.attempts == {}


def test_a_turn_that_names_no_run_has_no_attempt() -> None:
    attempts = TurnAttempts()
    attempts.add_turn("two", {"task_id": "k"})
    attempts.apply_attempt("task.attempt.started", "two", {"attempt": 1}, {"task_id": "k"})
    assert attempts == {}


def asking() -> Session:
    """A session whose turn of an attempt waits for an answer."""
    session = new()
    begin(session)
    ask_question(session, "one", confirm())
    return session


def stored(session: Session) -> Session:
    return decode_state(encode_state(session), Head("s", "e"), Rules(), None)


def replayed(session: Session) -> Session:
    log: list[Fact] = facts(session)
    return restore(Head("s", "e"), log, Limits())


@pytest.mark.parametrize("again", [stored, replayed])
@pytest.mark.parametrize(
    ("action", "end"),
    [
        ("confirm", ("task.attempt.completed", {"attempt": 2})),
        ("arp.cancel", ("task.attempt.failed", {"attempt": 2, "reason": "cancelled"})),
    ],
)
def test_attempt_of_a_turn_that_waits_over_a_crash_ends_with_the_question(
    again: Any, action: str, end: Any
) -> None:
    session = again(asking())
    facts(session)
    recover(session)
    assert ends(session) == []
    if action == "arp.cancel":
        send(session, "action", {"action": action, "payload": {"turn_id": "one"}})
    else:
        send(session, "action", {"action": action}, source_component="q")
    assert ends(session) == [end]
