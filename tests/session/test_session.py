"""Turns, questions and surfaces of one session: who may do what now (architecture.md)."""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.components import Component
from arp.protocol.errors import (
    InvalidComponent,
    InvalidPatch,
    ResourceLimit,
    SessionBusy,
    SurfaceDestroyed,
)
from arp.protocol.limits import Limits
from arp.protocol.patch import Reorder, Replace, Update
from arp.session.approval import ApprovalRequest, ApprovalTerms, Grant
from arp.session.asking import answer_question, ask_question, cancel_question, mark_input
from arp.session.effects import RunTurn, StopTurn
from arp.session.recording.recorded import REASONING_TEXT, Cursor, RecordedFact, SessionName
from arp.session.session import FACT_HANDLERS, QuestionOptions, Session
from arp.session.session_settings import (
    MAX_FEEDBACK,
    MAX_STATE_BYTES,
)
from arp.session.session_values import choose_settings
from arp.session.state import decode_state, encode_state
from arp.session.turn_end import cancel_turn, end_turn
from arp.session.turn_queue import begin_next, promote
from arp.surface.change import PatchChange, RenderChange
from tests.session.conversation import (
    AT,
    begun,
    choices,
    confirm,
    facts,
    form,
    kinds,
    new,
    text,
    user,
)
from tests.support.restoring import restore


def props(session: Session, component_id: str, surface: str = "main") -> dict[str, Any]:
    tree = session.tree(surface)
    assert tree is not None
    return tree.component(component_id).props


def last_emission(session: Session) -> RecordedFact:
    emission = session.drain(AT).recorded[-1]
    assert isinstance(emission, RecordedFact)
    return emission


# -- reading ---------------------------------------------------------------------------------------


def test_new_session_is_idle() -> None:
    session = new()
    assert session.name == SessionName("s", "e", 0)
    assert (session.turns.is_active, session.has_recorded, session.title) == (False, False, "")
    assert session.status_of("t1") is None
    assert session.tree("side") is None


def test_session_counts_what_it_recorded() -> None:
    """protocol.md 2.3: `seq` counts facts from 1, without holes."""
    session = new()
    session.record("session.created", {})
    user(session, "hi")
    assert [fact.sequence for fact in facts(session)] == [1, 2, 3]
    assert session.name == SessionName("s", "e", 3)
    assert session.cursor == Cursor(3, None, 0, "t1", 0)


def test_title_is_the_beginning_of_the_first_text() -> None:
    session = begun()
    assert session.title == "hi"
    long = new()
    user(long, "  ")
    user(long, "one\n two " + "x" * 100)
    assert long.title == "one two " + "x" * 72


def test_session_is_active_while_a_crash_would_leave_something_to_mend() -> None:
    session = begun()
    assert session.turns.is_active
    end_turn(session, "t1", "completed")
    assert not session.turns.is_active


# -- turns -----------------------------------------------------------------------------------------


def test_one_turn_runs_and_the_others_wait_in_line() -> None:
    session = begun()
    assert user(session, "second") == []
    assert user(session, "third") == []
    assert (session.running, session.queue) == ("t1", ["t2", "t3"])
    assert end_turn(session, "t1", "completed") == [RunTurn("t2")]
    assert (session.running, session.queue) == ("t2", ["t3"])
    told = [(f.type, f.turn_id, f.payload.get("queued")) for f in facts(session)]
    assert told == [
        ("turn.submitted", "t2", None),
        ("queue.changed", None, ["t2"]),
        ("turn.submitted", "t3", None),
        ("queue.changed", None, ["t2", "t3"]),
        ("turn.completed", "t1", None),
        ("turn.started", "t2", None),
        ("queue.changed", None, ["t3"]),
    ]


def test_only_what_is_in_line_begins_and_only_when_nothing_runs() -> None:
    assert begin_next(new()) == []
    assert begin_next(begun()) == []


@pytest.mark.parametrize(
    ("status", "reason", "kind", "told"),
    [
        ("completed", None, "turn.completed", None),
        ("failed", None, "turn.failed", "failed"),
        ("cancelled", None, "turn.failed", "cancelled"),
        ("failed", "interrupted", "turn.failed", "interrupted"),
    ],
)
def test_turn_ends_with_its_status(status: Any, reason: Any, kind: str, told: str | None) -> None:
    """ledger.md 2: a cancel is `turn.failed` with `statusReason: "cancelled"`."""
    session = begun()
    assert end_turn(session, "t1", status, reason=reason) == []
    (fact,) = facts(session)
    assert (fact.type, fact.status, fact.status_reason) == (kind, status, told)
    assert fact.payload == {"status": status}
    assert session.status_of("t1") == status
    assert session.screen.turns["t1"].final


def test_turn_ends_once() -> None:
    session = begun()
    end_turn(session, "t1", "completed")
    facts(session)
    assert end_turn(session, "t1", "failed") == []
    assert end_turn(session, "nobody", "failed") == []
    assert kinds(session) == []


def test_turn_that_fails_says_why_without_internals() -> None:
    """protocol.md 2.1: never a stack trace, never a secret."""
    session = begun()
    end_turn(session, "t1", "failed", SessionBusy("try later"))
    session.drain(AT)
    user(session, "again")
    end_turn(session, "t2", "failed", RuntimeError("password=hunter2"))
    _, _, error, _ = facts(session)
    assert error.type == "runtime.error"
    assert error.payload == {
        "error": "Internal error. The server's log has it.",
        "code": 19,
        "retryable": False,
    }
    assert [e.error for e in session.screen.turns["t1"].errors] == ["try later"]


def test_queued_turn_that_is_over_leaves_the_line() -> None:
    session = begun()
    user(session, "second")
    user(session, "third")
    facts(session)
    assert end_turn(session, "t2", "cancelled") == []
    assert (session.running, session.queue) == ("t1", ["t3"])
    assert kinds(session) == ["turn.failed", "queue.changed"]


def test_cancel_asks_the_running_turn_to_stop() -> None:
    session = begun()
    assert cancel_turn(session) == [StopTurn("t1")]
    assert cancel_turn(session, "t1") == [StopTurn("t1")]
    assert session.running == "t1"


def test_cancel_ends_a_queued_turn_at_once() -> None:
    session = begun()
    user(session, "second")
    assert cancel_turn(session, "t2") == []
    assert session.status_of("t2") == "cancelled"


def test_cancel_of_nothing_does_nothing() -> None:
    assert cancel_turn(new()) == []
    assert cancel_turn(begun(), "nobody") == []


def test_turn_that_is_over_shows_nothing_more() -> None:
    session = begun()
    session.check_running("t1")
    end_turn(session, "t1", "completed")
    with pytest.raises(SurfaceDestroyed, match="turn t1 is over; it can show nothing more"):
        session.check_running("t1")


# -- surfaces --------------------------------------------------------------------------------------


def test_commit_is_one_fact_and_shows() -> None:
    session = begun()
    ops = PatchChange([Update("a", "props.content", "y")])
    session.commit("t1", "main", [RenderChange([text("a")], "q"), ops], inputId="i1")
    (fact,) = facts(session)
    assert (fact.type, fact.artifact_id, fact.turn_id) == ("artifact.changed", "main", "t1")
    assert fact.payload == {
        "surface": "main",
        "changes": [
            {
                "render": [{"id": "a", "type": "text", "props": {"content": "x"}}],
                "tool": "q",
            },
            {"patch": [{"op": "update", "target": "a", "path": "props.content", "value": "y"}]},
        ],
        "inputId": "i1",
    }
    assert session.screen.output("t1") == [text("a", "y")]


def test_text_and_components_keep_the_order_in_which_they_were_made() -> None:
    session = begun()
    session.say("t1", "before")
    session.commit("t1", "main", [RenderChange([text("a")])])
    session.say("t1", "behind")
    session.drain(AT)
    assert [shown.id for shown in session.screen.output("t1")] == ["t1/1", "a", "t1/2"]


def test_refused_commit_records_nothing() -> None:
    """architecture.md: a refused commit changes nothing; what was said before counts as said."""
    session = begun()
    session.say("t1", "said")
    bad = PatchChange([Update("nobody", "props.content", "y")])
    with pytest.raises(InvalidPatch, match="no component 'nobody'"):
        session.commit("t1", "side", [RenderChange([text("a")]), bad])
    assert session.tree("side") is None
    assert kinds(session) == ["model.delta"]
    session.commit("t1", "side", [RenderChange([text("a")])])
    assert session.screen.output("t1", "side") == [text("a")]


def test_commit_without_a_turn_has_none_in_its_fact() -> None:
    session = begun()
    session.commit("t1", "main", [RenderChange([text("a")])])
    session.commit(None, "main", [PatchChange([Update("a", "props.content", "y")])])
    assert [fact.turn_id for fact in facts(session)] == ["t1", None]


def test_other_surfaces_have_no_turns() -> None:
    session = begun()
    session.commit("t1", "side", [RenderChange([text("a")])])
    tree = session.tree("side")
    assert tree is not None
    assert tree.outputs == {"": ["a"]}


def test_limit_of_surfaces() -> None:
    """protocol.md 4: max_surfaces."""
    session = begun(max_surfaces=2)
    for _ in range(2):
        session.commit("t1", "side", [RenderChange([text("a")])])
    with pytest.raises(ResourceLimit, match="surface 'more' would be one more than 2") as refused:
        session.commit("t1", "more", [RenderChange([text("a")])])
    assert refused.value.detail == "max_surfaces"
    session.commit("t1", "main", [RenderChange([text("a")])])


def test_text_and_thinking_are_recorded_apart() -> None:
    session = begun()
    session.say("t1", "a")
    session.say("t1", "hm", REASONING_TEXT)
    assert kinds(session) == ["model.delta", "reasoning.delta"]
    assert session.screen.text("t1") == "a"


# -- questions -------------------------------------------------------------------------------------


def test_question_is_shown_open_and_waits() -> None:
    session = begun()
    question = ask_question(session, "t1", confirm())
    shown, asked = facts(session)
    assert shown.type == "artifact.changed"
    assert (asked.type, asked.action_id) == ("action.required", question.action_id)
    assert asked.payload == {
        "component": {
            "id": "q",
            "type": "confirm",
            "props": {"title": "Sure?", "state": "open"},
        },
        "surface": "main",
    }
    assert session.questions == {("main", "q"): question}
    assert session.status_of("t1") == "waiting"


def test_question_of_a_tool_names_the_tool_and_its_call() -> None:
    session = begun()
    ids = {"tool_call_id": "t1.1", "request_id": "r"}
    question = ask_question(
        session,
        "t1",
        confirm(),
        options=QuestionOptions(request=ApprovalRequest("shell", ids, "ask")),
    )
    _, asked = facts(session)
    assert (asked.tool_call_id, asked.request_id) == ("t1.1", "r")
    assert asked.action_id == question.action_id
    assert asked.payload["tool"] == "shell"


def test_what_a_permission_shows_holds_no_secret_and_its_digest_stays() -> None:
    session = begun()
    token = "ghp_" + "k3Yx" * 9
    request = ApprovalRequest(
        "shell", {}, "ask", "0" * 64, f'{{"a":"{token}"}}', f"push {token}", True
    )
    question = ask_question(session, "t1", confirm(), options=QuestionOptions(request=request))
    asked = next(fact for fact in facts(session) if fact.type == "action.required")
    assert asked.payload["args"] == '{"a":"ghp_[redacted]"}'
    assert asked.payload["sessionRule"] == "push ghp_[redacted]"
    assert question.terms == ApprovalTerms(
        "0" * 64, Grant("shell", "push ghp_[redacted]"), editable=True
    )


def test_turn_waits_until_the_last_of_its_questions_is_over() -> None:
    session = begun()
    first = ask_question(session, "t1", confirm("one"))
    second = ask_question(session, "t1", confirm("two"))
    answer_question(session, first, True, None)
    assert session.status_of("t1") == "waiting"
    cancel_question(session, second, "expired")
    assert session.status_of("t1") == "running"
    ends = [fact.payload for fact in facts(session) if fact.type == "action.resolved"]
    assert ends == [
        {"decision": "answered", "resumes": False},
        {"decision": "expired", "resumes": True},
    ]


def test_ids_of_questions_are_never_used_twice() -> None:
    session = begun()
    first = ask_question(session, "t1", confirm())
    cancel_question(session, first)
    second = ask_question(session, "t1", confirm())
    assert first.action_id != second.action_id


def test_open_question_is_not_asked_again_by_its_turn() -> None:
    session = begun()
    ask_question(session, "t1", confirm())
    facts(session)
    with pytest.raises(InvalidComponent, match="question 'q' is still open"):
        ask_question(session, "t1", choices())
    assert kinds(session) == []
    ask_question(session, "t1", choices("other"))
    ask_question(session, "t1", choices(), "side")


def test_refused_question_is_none() -> None:
    session = begun()
    with pytest.raises(InvalidComponent):
        ask_question(session, "t1", Component("q", "confirm", {}))
    assert session.questions == {}
    assert kinds(session) == []


def test_question_of_an_earlier_turn_expires_when_its_id_is_asked_again() -> None:
    """A turn that ended by a crash left it open."""
    session = begun()
    before = ask_question(session, "t1", confirm())
    end_turn(session, "t1", "failed", reason="interrupted")
    assert session.questions == {("main", "q"): before}
    user(session, "again")
    facts(session)
    after = ask_question(session, "t2", choices())
    _, resolved, required = facts(session)
    assert (resolved.type, resolved.action_id) == ("action.resolved", before.action_id)
    assert resolved.payload == {"decision": "expired", "resumes": False, "ends": "cancelled"}
    assert required.action_id == after.action_id
    assert session.questions == {("main", "q"): after}


def test_answer_closes_the_question_on_every_renderer() -> None:
    """protocol.md 2.2: `props.state: "answered"` and `props.answer`."""
    session = begun()
    question = ask_question(session, "t1", form())
    facts(session)
    told = {"input_type": "form_submit", "data": {}}
    answer_question(session, question, {"n": "Ada"}, told)
    _, resolved = facts(session)
    assert props(session, "q")["state"] == "answered"
    assert props(session, "q")["answer"] == {"n": "Ada"}
    assert resolved.payload == {
        "decision": "answered",
        "answer": {"n": "Ada"},
        "input": told,
        "resumes": True,
    }
    assert session.questions == {}
    assert session.status_of("t1") == "running"


def test_answer_that_begins_a_turn_of_its_own_is_not_told_twice() -> None:
    session = begun()
    question = ask_question(session, "t1", confirm())
    end_turn(session, "t1", "failed", reason="interrupted")
    facts(session)
    answer_question(session, question, True, None)
    _, resolved = facts(session)
    assert resolved.payload == {"decision": "answered", "resumes": False, "ends": "completed"}


def test_answer_that_does_not_fit_the_component_leaves_the_question_open() -> None:
    session = begun(max_message_bytes=1024)
    question = ask_question(session, "t1", form())
    facts(session)
    with pytest.raises(ResourceLimit):
        answer_question(session, question, {"n": "x" * 1024}, None)
    assert session.questions == {("main", "q"): question}
    assert props(session, "q")["state"] == "open"
    assert kinds(session) == []


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_questions_close_with_their_turn(status: Any) -> None:
    session = begun()
    ask_question(session, "t1", confirm("one"))
    ask_question(session, "t1", confirm("two"), "side")
    facts(session)
    end_turn(session, "t1", status)
    assert session.questions == {}
    assert props(session, "one")["state"] == "cancelled"
    assert props(session, "two", "side")["state"] == "cancelled"
    assert kinds(session) == [
        "artifact.changed",
        "action.resolved",
        "artifact.changed",
        "action.resolved",
        f"turn.{status}",
    ]


def test_question_is_open_until_it_is_answered_or_withdrawn() -> None:
    """Another one under its id is another question."""
    session = begun()
    first = ask_question(session, "t1", confirm())
    assert session.questions.is_open(first)
    cancel_question(session, first)
    again = ask_question(session, "t1", confirm())
    assert (session.questions.is_open(first), session.questions.is_open(again)) == (False, True)
    answer_question(session, again, True, None)
    assert not session.questions.is_open(again)


def test_question_closes_though_its_component_has_no_room_for_the_word() -> None:
    session = begun(max_message_bytes=128)
    question = ask_question(session, "t1", confirm())
    for length in (44, 45):  # 126 bytes in all, 131 if it were cancelled
        grow = Update("q", "props.message", "x" * length)
        session.commit("t1", "main", [PatchChange([grow])])
    cancel_question(session, question)
    assert session.questions == {}
    assert props(session, "q")["state"] == "open"


@pytest.mark.parametrize(
    "instead", [PatchChange([Replace("q", text("q"))]), PatchChange([Replace("q", text("n"))])]
)
def test_what_stands_in_the_place_of_a_question_now_is_left_alone(instead: PatchChange) -> None:
    session = begun()
    question = ask_question(session, "t1", confirm())
    session.commit("t1", "main", [instead])
    before = session.screen.output("t1")
    cancel_question(session, question)
    assert session.screen.output("t1") == before
    assert session.questions == {}


def test_custom_component_is_marked_too() -> None:
    session = begun()
    custom = Component("q", "x-acme-poll", {}, 1, confirm(""))
    question = ask_question(session, "t1", custom)
    answer_question(session, question, {"vote": 1}, None)
    assert props(session, "q") == {"state": "answered", "answer": {"vote": 1}}


def test_mark_on_a_surface_that_there_is_not_does_nothing() -> None:
    session = begun()
    mark_input(session, "q", "nowhere", "cancelled", None, "t1")
    assert kinds(session) == []


def test_order_is_kept_of_what_is_moved() -> None:
    session = begun()
    session.commit("t1", "main", [RenderChange([text("a"), text("b")])])
    session.commit("t1", "main", [PatchChange([Reorder("b", None)])])
    assert [shown.id for shown in session.screen.output("t1")] == ["b", "a"]


def test_promoted_turn_is_first_in_line() -> None:
    session = begun()
    for said_next in ("b", "c", "d"):
        user(session, said_next)
    session.drain(AT)
    promote(session, "t4")
    assert session.queue == ["t4", "t2", "t3"]
    (changed,) = facts(session)
    assert (changed.type, changed.payload) == ("queue.changed", {"queued": ["t4", "t2", "t3"]})
    promote(session, "t4")
    promote(session, "none")
    assert facts(session) == []


def test_settings_that_the_user_chose_are_one_fact_and_have_a_bound() -> None:
    """What did not change is not recorded again. A restart has them, from the log or a state."""
    session = new()
    choose_settings(session, {"model": "small"})
    choose_settings(session, {"model": "small"})
    with pytest.raises(ResourceLimit, match="settings: "):
        choose_settings(session, {"model": "x" * MAX_STATE_BYTES})
    log = facts(session)
    assert [fact.payload for fact in log] == [{"settings": {"model": "small"}}]
    for again in (
        restore(session.head, log, Limits()),
        decode_state(encode_state(session), session.head, session.rules, None),
    ):
        assert again.settings.chosen == {"model": "small"}


def test_what_the_user_thinks_of_turns_is_kept_of_the_newest_that_were_rated() -> None:
    """A rating that is taken back is gone."""
    session = begun()
    session.in_turn("session.updated", "t1", {"feedback": {"rating": "good"}})
    assert session.settings.feedback == {"t1": {"rating": "good"}}
    session.in_turn("session.updated", "t1", {"feedback": {"rating": "none"}})
    assert session.settings.feedback == {}
    for number in range(MAX_FEEDBACK + 1):
        rated = {"feedback": {"rating": "bad"}}
        fact = RecordedFact("session.updated", rated, {}, turn_id=f"r{number}")
        FACT_HANDLERS[fact.type](session, fact)
    assert len(session.settings.feedback) == MAX_FEEDBACK
    assert "r0" not in session.settings.feedback
