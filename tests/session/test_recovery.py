"""A session from its log is the one that wrote it; what a crash left is mended (ledger.md 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from arp.ledger.fact import Fact
from arp.protocol.components import Component
from arp.protocol.errors import InternalError, error_payload
from arp.protocol.limits import Limits
from arp.protocol.messages import Delta, DeltaPayload, Input, ToolEnd, ToolEndPayload
from arp.session.asking import answer_question, ask_question, cancel_question, decline_question
from arp.session.effects import Acknowledge, RunTurn
from arp.session.input.branching import check_branch_change
from arp.session.input.receive import receive, submit
from arp.session.questions import Question
from arp.session.recording.log import ReadOnly
from arp.session.recovery import Interrupted, messages_of, recover, seal
from arp.session.session import Head, QuestionOptions, Session
from arp.session.turn_end import cancel_turn, end_turn
from arp.session.turn_queue import edit_queued, promote
from arp.surface.change import RenderChange
from arp.surface.draft_answer import understand_draft
from tests.session.conversation import (
    AT,
    answer_to,
    choices,
    confirm,
    facts,
    form,
    kinds,
    new,
    send,
    user,
)
from tests.support.restoring import restore

HEAD = Head("s", "e")

FILE = {"id": "f1", "name": "a.csv", "size": 3, "mime": "text/csv", "sha256": "abc"}


def again(log: Sequence[Fact]) -> Session:
    """The session that a log makes."""
    return restore(HEAD, log, Limits())


class Recorded:
    """A session and all of its facts."""

    def __init__(self) -> None:
        self.session = new()
        self.facts: list[Fact] = []

    @property
    def restored(self) -> Session:
        self.facts += facts(self.session)
        return again(self.facts)


def talk() -> Recorded:
    """A session in which turn `t1` runs."""
    out = Recorded()
    out.session.record("session.created", {})
    user(out.session, "hi", "i1")
    return out


# -- what comes back -------------------------------------------------------------------------------


def test_restored_session_stands_where_the_log_ends() -> None:
    session = talk().restored
    assert (session.sequence, session.has_recorded) == (3, False)
    assert (session.running, session.queue) == ("t1", [])
    session.record("session.updated", {})
    assert [fact.sequence for fact in facts(session)] == [4]


def test_session_without_facts_is_a_new_one() -> None:
    session = again([])
    assert (session.sequence, session.turns.is_active, recover(session)) == (0, False, [])


def test_line_comes_back_in_its_order() -> None:
    one = talk()
    for words in ("two", "three", "four"):
        user(one.session, words)
    cancel_turn(one.session, "t3")
    assert one.restored.queue == ["t2", "t4"]
    end_turn(one.session, "t1", "completed")
    assert (one.restored.running, one.restored.queue) == ("t2", ["t4"])


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_turn_that_ended_is_over(status: Any) -> None:
    one = talk()
    end_turn(one.session, "t1", status)
    assert one.restored.running is None
    assert one.restored.status_of("t1") == status


def test_open_questions_come_back_with_their_ids() -> None:
    """A pending action is still pending with the same id."""
    one = talk()
    answered = ask_question(one.session, "t1", confirm("a"))
    kept = ask_question(one.session, "t1", choices("b"), "side")
    answer_question(one.session, answered, True, None)
    assert one.restored.questions == {("side", "b"): kept}
    assert kept == Question(kept.action_id, "b", "side", "t1")


def test_inputs_that_were_seen_are_not_taken_twice() -> None:
    """For the whole life of the session: what began a turn, answered, cancelled or turned a tab."""
    one = talk()
    inside = {"id": "x", "type": "text", "props": {"content": "x"}}
    tabs = Component("tabs", "tabs", {"tabs": [{"label": "one", "component": inside}]})
    one.session.commit("t1", "main", [RenderChange([tabs])])
    ask_question(one.session, "t1", confirm())
    send(one.session, "action", {"action": "confirm"}, source_component="q", id="i2")
    turn = {"action": "tab_change", "payload": {"tab": 0}}
    send(one.session, "action", turn, source_component="tabs", id="i3")
    send(one.session, "action", {"action": "arp.cancel"}, id="i4")
    send(one.session, "text", {"text": "without an id"})
    assert one.restored.input_log == {"i1": "t1", "i2": "t1", "i3": None, "i4": "t1"}
    assert user(one.restored, "hi", "i1") == [Acknowledge("i1", "t1")]


def test_files_that_came_may_still_be_named() -> None:
    one = Recorded()
    one.session.input_log.remember_files(["abc"])
    send(one.session, "file", {"files": [FILE], "text": "look"})
    assert one.restored.input_log.files == {"abc": None}


def test_files_that_the_agent_kept_may_still_be_named() -> None:
    one = talk()
    one.session.in_turn("output.spilled", "t1", {"file": FILE}, output_ref="abc")
    assert one.restored.input_log.files == {"abc": None}


def test_what_a_tool_wrote_is_no_file_that_inputs_may_name() -> None:
    one = talk()
    one.session.in_turn("output.spilled", "t1", {"sha256": "abc", "bytes": 3}, output_ref="abc")
    assert one.restored.input_log.files == {}


def test_files_that_came_in_a_form_may_still_be_named() -> None:
    one = talk()
    one.session.input_log.remember_files(["abc"])
    asked = form()
    asked.props["fields"] = [
        {"name": "f", "label": "File", "field_type": "file"},
        {"name": "n", "label": "Name"},
    ]
    ask_question(one.session, "t1", asked)
    fields = {"f": FILE, "n": "a sha256"}
    send(one.session, "form_submit", {"fields": fields}, source_component="q", id="i2")
    assert one.restored.input_log.files == {"abc": None}


def test_screen_comes_back() -> None:
    one = talk()
    one.session.say("t1", "one ")
    one.session.commit("t1", "side", [RenderChange([confirm()])])
    one.session.say("t1", "two")
    assert one.restored.screen.canonical() == {
        "turns": {
            "t1": {
                "status": "running",
                "inputs": [["text", {"text": "hi"}]],
                "tools": [],
                "thinking": "",
                "errors": [],
                "final": False,
                "output": ["one two"],
                "story": ["input 0", "one two"],
            }
        },
        "surfaces": {"side": [{"id": "q", "type": "confirm", "props": {"title": "Sure?"}}]},
    }


def test_restored_session_goes_on() -> None:
    """Also an open question is answered, and the text goes on in its part."""
    one = talk()
    one.session.say("t1", "one ")
    question = ask_question(one.session, "t1", confirm(), "side")
    session = one.restored
    session.say("t1", "two")
    told = send(session, "action", {"action": "confirm"}, source_component="q", surface="side")
    assert told == [answer_to(question, True)]
    assert session.screen.text("t1") == "one two"


def test_rules_are_those_of_now() -> None:
    session = restore(HEAD, [], Limits(max_surfaces=3), "reject")
    assert (session.rules.limits.max_surfaces, session.rules.policy) == (3, "reject")


# -- what is mended --------------------------------------------------------------------------------


def test_turn_that_a_crash_interrupted_is_closed_and_the_line_goes_on() -> None:
    one = talk()
    user(one.session, "two")
    session = one.restored
    assert recover(session) == [RunTurn("t2")]
    made, warning, error, failed, started, line = facts(session)
    assert (warning.type, warning.turn_id, warning.thread_id) == ("runtime.warning", "t1", "main")
    assert warning.payload == {
        "message": "the server stopped while this turn ran; it was closed as interrupted"
    }
    assert (line.type, line.payload) == ("queue.changed", {"queued": []})
    assert (made.type, made.payload["source"]) == ("history.reconstructed", "ledger")
    assert made.payload["throughSequence"] == made.sequence - 1
    assert error.payload == {
        "error": "the server stopped while this turn ran; ask again to go on",
        "code": 19,
        "retryable": True,
    }
    assert (failed.type, failed.status_reason) == ("turn.failed", "interrupted")
    assert (started.type, started.turn_id) == ("turn.started", "t2")


def with_open_tool() -> Recorded:
    """A session in whose turn one tool has ended and one has not."""
    one = talk()
    for call in ("t1.1", "t1.2"):
        ids = {"step_id": call, "tool_call_id": call}
        one.session.in_turn("tool.started", "t1", {"tool": "query"}, **ids)
        one.session.in_turn("tool.args", "t1", {"tool": "query", "args": "{}"}, **ids)
    ended = {"step_id": "t1.1", "tool_call_id": "t1.1"}
    one.session.in_turn("tool.result", "t1", {"tool": "query"}, **ended)
    return one


def test_tools_that_are_open_fail_before_their_turn() -> None:
    """A tool that is seen to begin is seen to end; one that ended is left as it is."""
    session = with_open_tool().restored
    recover(session, InternalError("the session is faulty"))
    written = facts(session)
    (closed,) = [fact for fact in written if fact.type == "tool.failed"]
    assert (closed.tool_call_id, closed.step_id, closed.turn_id) == ("t1.2", "t1.2", "t1")
    assert closed.payload == {"tool": "query", "error": "the turn ended first"}
    assert closed.sequence < next(one.sequence for one in written if one.type == "turn.failed")
    assert [run.ok for run in session.screen.turns["t1"].tools] == [True, False]


def test_tools_of_an_interrupted_turn_are_interrupted_with_it() -> None:
    """Spans, read models and renderers say so of a tool that has no end in a turn that has one."""
    session = with_open_tool().restored
    recover(session)
    assert "tool.failed" not in kinds(session)
    assert [run.ok for run in session.screen.turns["t1"].tools] == [True, None]


def test_line_that_waited_when_nothing_ran_goes_on() -> None:
    one = talk()
    one.facts = facts(one.session)[:2]
    session = one.restored
    assert session.queue == ["t1"]
    assert recover(session) == [RunTurn("t1")]
    assert kinds(session) == ["history.reconstructed", "turn.started"]


def test_line_is_as_it_was_put_in_order() -> None:
    one = talk()
    for said_next in ("two", "three"):
        user(one.session, said_next)
    promote(one.session, "t3")
    assert one.restored.queue == ["t3", "t2"]


def test_session_with_nothing_to_mend_has_no_fact_of_it() -> None:
    one = talk()
    end_turn(one.session, "t1", "completed")
    session = one.restored
    assert recover(session) == []
    assert facts(session) == []


def test_questions_of_the_interrupted_turn_stay_open() -> None:
    one = talk()
    question = ask_question(one.session, "t1", confirm())
    session = one.restored
    recover(session)
    assert session.questions == {("main", "q"): question}
    (shown,) = session.screen.output("t1")
    assert shown.props["state"] == "open"


def test_turn_that_was_cut_off_while_it_waited_reads_as_waiting() -> None:
    """Nothing failed that anybody has to do again: no error, and the queue goes on."""
    one = talk()
    ask_question(one.session, "t1", confirm())
    user(one.session, "two")
    session = one.restored
    assert recover(session) == [RunTurn("t2")]
    _, warning, ended, *_ = written = facts(session)
    assert warning.payload["message"].endswith("its question stays open")
    assert (ended.type, ended.payload) == ("turn.failed", {"status": "waiting"})
    assert (ended.status, ended.status_reason) == ("waiting", "interrupted")
    shown = session.screen.turns["t1"]
    assert (shown.status, shown.final, shown.errors) == ("waiting", True, [])
    one.facts += written
    assert again(one.facts).screen.canonical() == session.screen.canonical()


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("answered", "completed"), ("declined", "completed"), ("expired", "cancelled")],
)
def test_turn_that_waited_is_over_with_its_last_question(outcome: str, status: str) -> None:
    one = talk()
    first, last = (
        ask_question(one.session, "t1", confirm("a")),
        ask_question(one.session, "t1", confirm("b")),
    )
    session = one.restored
    recover(session)
    cancel_question(session, first)
    assert session.status_of("t1") == "waiting"
    match outcome:
        case "answered":
            answer_question(session, last, True, None)
        case "declined":
            decline_question(session, last, None)
        case _:
            cancel_question(session, last, "expired")
    assert session.status_of("t1") == status
    one.facts += (written := facts(session))
    ends = [fact.payload.get("ends") for fact in written if fact.type == "action.resolved"]
    assert ends == [None, status]
    assert again(one.facts).screen.canonical() == session.screen.canonical()


def test_turn_that_waits_may_be_cancelled_though_nothing_runs() -> None:
    one = talk()
    ask_question(one.session, "t1", confirm())
    session = one.restored
    recover(session)
    stop = {"action": "arp.cancel", "payload": {"turn_id": "t1"}}
    assert send(session, "action", stop, id="i2") == [Acknowledge("i2", "t1")]
    assert (session.status_of("t1"), session.questions) == ("cancelled", {})


def test_question_comes_back_with_its_name_and_its_deadline() -> None:
    one = talk()
    options = QuestionOptions("trip", "2026-11-21T09:00:00Z")
    question = ask_question(one.session, "t1", confirm(), options=options)
    assert (question.name, question.expires_at) == ("trip", "2026-11-21T09:00:00Z")
    assert one.restored.questions == {("main", "q"): question}


def test_answer_that_began_a_turn_comes_back_as_far_as_the_ledger_has_it() -> None:
    one = talk()
    question = ask_question(one.session, "t1", form(), options=QuestionOptions("login"))
    session = one.restored
    recover(session)
    send(session, "form_submit", {"fields": {"n": "Ada", "p": "x"}}, source_component="q")
    given = session.input_log.answer_of("t2")
    assert given is not None
    assert (given.action_id, given.name) == (question.action_id, "login")
    assert given.value == {"n": "Ada", "p": "x"}
    one.facts += facts(session)
    known = again(one.facts).input_log.answer_of("t2")
    assert known is not None
    assert known.value == {"n": "Ada", "p": "••••"}
    end_turn(session, "t2", "completed")
    assert session.input_log.answer_of("t2") is None


def test_inputs_keep_their_times() -> None:
    """Of the fact that has them; an edited one has that of the edit."""
    one = talk()
    one.facts += facts(one.session)
    user(one.session, "two")
    edit_queued(one.session, "t2", {"input_type": "text", "data": {"text": "other"}})
    times = {
        turn.id: [told.at for told in turn.inputs] for turn in one.restored.screen.turns.values()
    }
    live = one.session.screen.turns.values()
    assert times == {turn.id: [told.at for told in turn.inputs] for turn in live}
    assert times == {"t1": [AT], "t2": [AT]}


def test_turns_keep_the_times_of_their_ends() -> None:
    one = talk()
    user(one.session, "two")
    end_turn(one.session, "t1", "completed")
    one.facts += facts(one.session)
    ends = {turn.id: turn.ended for turn in one.restored.screen.turns.values()}
    assert ends == {"t1": AT, "t2": None}


def test_interruption_may_be_tried_again() -> None:
    assert error_payload(Interrupted("stopped")).retryable


# -- messages --------------------------------------------------------------------------------------


def test_stored_fact_is_shown_as_it_was_first_sent() -> None:
    one = talk()
    ids = {"step_id": "c1", "tool_call_id": "c1"}
    one.session.in_turn("tool.failed", "t1", {"tool": "q", "error": "no"}, **ids)
    one.session.say("t1", "a")
    created, _, _, failed, said = facts(one.session)
    assert messages_of(created) == []
    end = ToolEndPayload("q", ok=False, call_id="c1", error="no")
    assert messages_of(failed) == [ToolEnd(session_id="s", seq=4, turn_id="t1", payload=end)]
    assert messages_of(said) == [
        Delta(session_id="s", seq=5, turn_id="t1", payload=DeltaPayload("a"))
    ]


def test_what_was_exported_is_a_file_of_the_session_after_a_restart() -> None:
    log = talk()
    payload = {"kind": "evidence", "state": "exported"}
    log.session.record("evidence.changed", payload, evidence_id="e-1", output_ref="a" * 64)
    log.session.record("evidence.changed", {**payload, "state": "unsupported"}, evidence_id="e-2")
    assert list(log.restored.input_log.files) == ["a" * 64]


def test_sealed_session_shows_why_its_turns_went_no_further_and_records_nothing() -> None:
    """Its log goes on with what cannot be read: nothing may stand behind that."""
    told = talk()
    user(told.session, "and this", "i2")
    session = told.restored
    seal(session, "fact 9 cannot be read")
    turns = session.screen.turns
    assert [(name, turn.status) for name, turn in turns.items()] == [
        ("t1", "failed"),
        ("t2", "failed"),
    ]
    assert "fact 9 cannot be read; the session is read-only" in str(turns["t1"].errors)
    assert (session.running, session.queue, session.turns.is_active) == (None, [], False)
    with pytest.raises(ReadOnly, match="fact 9 cannot be read"):
        session.record("session.updated", {"title": "x"})
    with pytest.raises(ReadOnly):
        user(session, "once more", "i3")
    with pytest.raises(ReadOnly):
        submit(session, Input(input_type="text", data={"text": "and more"}))
    with pytest.raises(ReadOnly):
        check_branch_change(session, Input(input_type="text", data={"text": "x"}, edits="t1"))
    assert receive(session, Input(input_type="focus", data={}), understand_draft) == []
    assert (facts(session), session.queue, list(turns)) == ([], [], ["t1", "t2"])


def test_turn_of_a_session_with_a_fault_ends_with_that_fault_and_its_questions_close() -> None:
    """The server goes on, so nobody comes back to answer."""
    told = talk()
    ask_question(told.session, "t1", confirm("sure"))
    session = told.restored
    assert recover(session, InternalError("internal error")) == []
    (failed,) = [one for one in facts(session) if one.type == "turn.failed"]
    assert failed.status_reason == "failed"
    assert session.questions == {}
    assert session.status_of("t1") == "failed"


def test_session_with_a_fault_in_which_nothing_ran_goes_on() -> None:
    session = Recorded().restored
    assert recover(session, InternalError("internal error")) == []
    assert facts(session) == []
