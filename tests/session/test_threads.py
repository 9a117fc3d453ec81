"""Threads of a session: begun on purpose, with turns of their own, in one line."""

from __future__ import annotations

import pytest

from arp.audit.models.read_model import ReadModel
from arp.protocol.errors import ResourceLimit, UnknownObject
from arp.protocol.limits import Limits
from arp.protocol.messages import Input
from arp.session.asking import ask_question
from arp.session.input.receive import NewTurnOptions, submit
from arp.session.session import Session
from arp.session.state import decode_state, encode_state
from arp.session.tracking.threads import MOST_THREADS, THREAD, Threads
from arp.session.turn_end import end_turn
from arp.surface.change import RenderChange
from tests.session.conversation import AT, confirm, facts, new, send, user
from tests.support.restoring import restore


def asked(session: Session, words: str, thread: str | None = None) -> str:
    """Begins a turn in a thread; gives its id."""
    message = Input(input_type="text", data={"text": words})
    submit(session, message, NewTurnOptions(thread=thread))
    return next(reversed(session.screen.turns))


def side(session: Session | None = None) -> Session:
    """A session with a thread besides the first."""
    session = session or new()
    session.begin_thread("side", "Beside")
    return session


def test_a_thread_is_begun_with_a_fact() -> None:
    session = side()
    (fact,) = facts(session)
    assert (fact.type, fact.thread_id, fact.payload) == (
        "thread.started",
        "side",
        {"title": "Beside"},
    )
    session.begin_thread("plain")
    (fact,) = facts(session)
    assert fact.payload == {}
    assert "side" in session.threads
    assert THREAD in session.threads
    assert "other" not in session.threads


def test_everything_of_a_turn_carries_its_thread() -> None:
    session = side()
    turn = asked(session, "here", "side")
    session.say(turn, "text")
    session.say(turn, "thought", "reasoning.delta")
    session.commit(turn, "main", [])
    ask_question(session, turn, confirm())
    session.say(turn, "ghp_")
    end_turn(session, turn, "completed")
    told = facts(session)[1:]
    assert {fact.thread_id for fact in told} == {"side"}
    assert {"turn.submitted", "model.delta", "reasoning.delta", "action.required"} <= {
        fact.type for fact in told
    }
    first = asked(session, "there")
    assert {fact.thread_id for fact in facts(session)} == {THREAD}
    assert session.threads.of(first) == THREAD


def test_turns_of_all_threads_stand_in_one_line_and_each_thread_has_its_own() -> None:
    session = side()
    running = asked(session, "one")
    waiting = [
        asked(session, "two", "side"),
        asked(session, "three"),
        asked(session, "four", "side"),
    ]
    assert (session.running, session.queue) == (running, waiting)
    log = facts(session)
    assert log[-1].thread_id == "side"  # that of the first in line
    model = ReadModel()
    model.fold_all(log)
    main, beside = (model.thread(name) for name in (THREAD, "side"))
    assert main is not None
    assert beside is not None
    assert [one["turnId"] for one in main["queuedTurns"]] == [waiting[1]]
    assert [one["turnId"] for one in beside["queuedTurns"]] == [waiting[0], waiting[2]]
    assert (main["status"], beside["status"]) == ("running", "queued")
    assert [one["threadId"] for one in model.snapshot()["threads"]] == ["side", THREAD]


def test_a_turn_of_a_thread_that_there_is_not_is_refused() -> None:
    session = new()
    with pytest.raises(UnknownObject, match="no thread 'side' in this session; begin it with"):
        asked(session, "here", "side")
    assert not session.has_recorded


def test_what_answers_a_turn_that_is_over_begins_one_in_its_thread() -> None:
    session = side()
    turn = asked(session, "here", "side")
    ask_question(session, turn, confirm())
    end_turn(session, turn, "failed", reason="interrupted")
    facts(session)
    send(session, "action", {"action": "confirm"}, source_component="q")
    assert {fact.thread_id for fact in facts(session)} == {"side"}


def test_a_component_that_is_no_question_is_answered_in_the_thread_of_its_turn() -> None:
    session = side()
    turn = asked(session, "here", "side")
    session.commit(turn, "main", [RenderChange([confirm("menu")])])
    end_turn(session, turn, "completed")
    facts(session)
    send(session, "action", {"action": "confirm"}, source_component="menu")
    begun = [fact for fact in facts(session) if fact.type == "turn.submitted"]
    assert [fact.thread_id for fact in begun] == ["side"]


def test_more_threads_than_a_snapshot_tells_are_refused() -> None:
    session = new()
    for number in range(MOST_THREADS - 1):
        session.begin_thread(f"thread-{number}")
    facts(session)
    with pytest.raises(ResourceLimit, match="a session has 20 threads at most"):
        session.begin_thread("one-more")
    assert not session.has_recorded
    session.record("thread.started", {}, thread_id="noted")
    assert "noted" not in session.threads


def test_a_name_that_is_made_is_one_that_nobody_has() -> None:
    threads = Threads()
    assert threads.new_name() == "thread-2"
    threads.begin("thread-3")
    assert threads.new_name() == "thread-4"
    threads.begin("main")
    assert list(threads.begun) == ["thread-3"]


def test_threads_are_there_again_from_the_log_and_from_a_stored_state() -> None:
    session = side()
    turn = asked(session, "here", "side")
    session.say(turn, "text")
    log = facts(session)
    restored = restore(session.head, log, Limits())
    decoded = decode_state(encode_state(session), session.head, session.rules, None)
    for other in (restored, decoded):
        assert other.threads.kept == session.threads.kept
        end_turn(other, turn, "completed")
        assert {fact.thread_id for fact in facts(other)} == {"side"}


def test_turns_that_left_the_memory_are_forgotten() -> None:
    session = side()
    for number in range(60):
        end_turn(session, asked(session, f"turn {number}", "side"), "completed")
        session.drain(AT)
    assert set(session.threads.turns) == set(session.screen.turns)
    assert len(session.threads.turns) == 50


def test_a_text_that_a_user_types_belongs_to_the_first_thread() -> None:
    session = side()
    user(session, "typed")
    assert facts(session)[-1].thread_id == THREAD


def test_a_session_that_shows_another_branch_knows_the_threads_of_its_turns() -> None:
    session, other = side(), side()
    asked(session, "here", "side")
    shown = asked(other, "there", "side")
    end_turn(other, shown, "completed")
    session.threads.follow(other.threads)
    assert session.threads.turns == {shown: "side"}
    assert "side" in session.threads
