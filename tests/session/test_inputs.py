"""What an input means: an answer, a new turn, a cancel, or nothing at all (protocol.md 2.2)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from arp.ledger.tracing import read_traceparent, trace_of
from arp.protocol.components import Component
from arp.protocol.errors import (
    ArpError,
    InvalidAnswer,
    InvalidComponent,
    InvalidMessage,
    ResourceLimit,
    SessionBusy,
    UnknownObject,
)
from arp.protocol.limits import Limits
from arp.protocol.messages import Input
from arp.protocol.patch import Append, Remove, Replace, Update
from arp.session.asking import ask_question, replace_question
from arp.session.effects import Acknowledge, RunTurn, StopTurn
from arp.session.input.receive import MAX_QUEUE, NewTurnOptions, receive, submit
from arp.session.questions import Question
from arp.session.session import QuestionOptions, Session
from arp.session.session_settings import Rules
from arp.session.state import decode_state, encode_state
from arp.session.tracking.input_log import GivenAnswer
from arp.session.turn_end import end_turn
from arp.surface.change import PatchChange, RenderChange
from arp.surface.draft_answer import understand_draft
from arp.view.profile import DRAFT
from tests.session.conversation import (
    AT,
    FULL,
    TEXT,
    answer_to,
    begun,
    choices,
    confirm,
    decline_of,
    facts,
    form,
    kinds,
    new,
    send,
    text,
    user,
)
from tests.support.restoring import restore

FILE = {"id": "f1", "name": "a.csv", "size": 3, "mime": "text/csv", "sha256": "abc"}


def refused(session: Session, input_type: str, data: dict[str, Any], **more: Any) -> ArpError:
    """Why an input is refused; nothing has changed and nothing is recorded."""
    session.drain(AT)
    before = copy.deepcopy(
        (session.screen.canonical(), session.queue, session.input_log, session.questions)
    )
    with pytest.raises(ArpError) as error:
        send(session, input_type, data, **more)
    after = (session.screen.canonical(), session.queue, session.input_log, session.questions)
    assert after == before
    assert kinds(session) == []
    return error.value


def shows(session: Session, component_id: str, surface: str = "main") -> dict[str, Any]:
    tree = session.tree(surface)
    assert tree is not None
    return tree.component(component_id).props


# -- a new turn ------------------------------------------------------------------------------------


def test_input_begins_a_turn() -> None:
    session = new()
    assert user(session, "hi", "i1") == [Acknowledge("i1", "t1"), RunTurn("t1")]
    submitted, started = facts(session)
    assert (submitted.type, submitted.turn_id, submitted.thread_id) == (
        "turn.submitted",
        "t1",
        "main",
    )
    assert submitted.payload == {
        "input": {"input_type": "text", "data": {"text": "hi"}, "id": "i1"}
    }
    assert started.type == "turn.started"


def test_turn_names_no_trace_until_somebody_wants_one() -> None:
    """Nobody outside has one, and no telemetry is on."""
    session = new()
    user(session, "hi")
    submitted = facts(session)[0]
    assert (submitted.trace_id, submitted.span_id, submitted.telemetry) == (None, None, None)


def test_turn_names_its_trace_where_traces_are_wanted() -> None:
    session = new()
    session.rules = Rules(session.rules.limits, traced=True)
    user(session, "one")
    user(session, "two")
    told = {fact.turn_id: fact for fact in facts(session) if fact.type == "turn.submitted"}
    assert [len(told[name].trace_id or "") for name in ("t1", "t2")] == [32, 32]
    assert told["t1"].trace_id != told["t2"].trace_id
    assert told["t1"].telemetry is None


@pytest.mark.parametrize("way", ["receive", "submit"])
def test_turn_is_a_part_of_the_trace_that_asked_for_it(way: str) -> None:
    session, asks = new(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    message = Input(input_type="text", data={"text": "hi"})
    if way == "receive":
        receive(session, message, understand_draft, traceparent=asks)
    else:
        submit(session, message, NewTurnOptions(traceparent=asks))
    submitted = facts(session)[0]
    assert submitted.trace_id == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert submitted.span_id not in (None, "00f067aa0ba902b7")
    assert submitted.telemetry == {"traceparent": asks}


def test_turn_has_the_trace_of_its_first_fact_until_it_is_over() -> None:
    """Also one that waits in a session that is restored."""
    session, asks = new(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    session.rules = Rules(session.rules.limits, traced=True)
    user(session, "one")
    message = Input(input_type="text", data={"text": "two"})
    submit(session, message, NewTurnOptions(traceparent=asks))
    log = facts(session)
    first = {fact.turn_id: fact for fact in log if fact.type == "turn.submitted"}
    stored = decode_state(encode_state(session), session.head, session.rules, None)
    for one in (session, restore(session.head, log, session.rules.limits), stored):
        for turn_id in ("t1", "t2"):
            assert one.trace(turn_id) == trace_of(first[turn_id], "e")
    assert session.trace("t2").caller == read_traceparent(asks)
    end_turn(session, "t1", "completed")
    end_turn(session, "t2", "completed")
    assert session.input_log.traceparents == {}
    assert restore(session.head, [*log, *facts(session)], Limits()).input_log.traceparents == {}


def test_input_without_an_id_is_not_acknowledged() -> None:
    assert user(new(), "hi") == [RunTurn("t1")]


def test_input_while_a_turn_runs_waits_in_line() -> None:
    session = begun()
    assert user(session, "more", "i2") == [Acknowledge("i2", "t2")]
    assert session.queue == ["t2"]


def test_policy_may_refuse_while_a_turn_runs() -> None:
    session = begun("reject")
    error = refused(session, "text", {"text": "more"})
    assert isinstance(error, SessionBusy)
    end_turn(session, "t1", "completed")
    assert user(session, "more") == [RunTurn("t2")]


def test_policy_may_interrupt_the_turn_that_runs() -> None:
    session = begun("interrupt")
    assert user(session, "more", "i2") == [Acknowledge("i2", "t2"), StopTurn("t1")]
    assert session.queue == ["t2"]


def test_line_has_an_end() -> None:
    """A runaway client must not fill the memory."""
    session = begun()
    for _ in range(MAX_QUEUE):
        user(session, "more")
    assert isinstance(refused(session, "text", {"text": "more"}), ResourceLimit)
    end_turn(session, "t1", "completed")
    user(session, "more")


@pytest.mark.parametrize(
    ("input_type", "data"),
    [
        ("action", {"action": "refresh", "payload": {"x": 1}}),
        ("gesture", {"gesture": "pinch", "meta": {}}),
        ("voice", {"transcript": "hello", "confidence": 0.5, "language": "en"}),
        ("navigate", {"route": "/home"}),
    ],
)
def test_every_other_input_begins_a_turn_too(input_type: str, data: dict[str, Any]) -> None:
    session = new()
    assert send(session, input_type, data) == [RunTurn("t1")]
    assert session.screen.turns["t1"].inputs[0].data == data


@pytest.mark.parametrize("input_type", ["focus", "unfocus", "resize"])
def test_where_the_user_looks_is_acknowledged_and_not_kept(input_type: str) -> None:
    session = new()
    data = {"width": 80, "height": 24} if input_type == "resize" else {}
    assert send(session, input_type, data, id="i1") == [Acknowledge("i1", None)]
    assert kinds(session) == []


# -- once ------------------------------------------------------------------------------------------


def test_same_id_twice_is_one_input() -> None:
    """Spec: S2."""
    session = new()
    user(session, "hi", "i1")
    facts(session)
    assert user(session, "something else", "i1") == [Acknowledge("i1", "t1")]
    assert kinds(session) == []


def test_answer_with_a_known_id_is_taken_once() -> None:
    session = begun()
    ask_question(session, "t1", confirm())
    yes = {"action": "confirm"}
    send(session, "action", yes, source_component="q", id="i2")
    assert send(session, "action", yes, source_component="q", id="i2") == [Acknowledge("i2", "t1")]


# -- shape -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("input_type", "data", "message"),
    [
        ("text", {}, "data.text: missing"),
        ("text", {"text": 5}, "data.text: expected string, got number"),
        ("action", {"action": ""}, "data.action: expected the name of an action"),
        ("action", {"action": "x" * 129}, "data.action: expected the name of an action"),
        ("selection", {"selected": "one"}, "data.selected: expected array, got string"),
        ("form_submit", {"fields": []}, "data.fields: expected object, got array"),
        ("gesture", {}, "data.gesture: missing"),
        ("voice", {"transcript": None}, "data.transcript: expected string, got null"),
        ("navigate", {"route": 1}, "data.route: expected string, got number"),
        (
            "file",
            {"files": [{"id": "f1"}]},
            "data.files[0].name: missing; files come by POST as multipart/form-data",
        ),
    ],
)
def test_data_of_the_wrong_shape_is_refused(
    input_type: str, data: dict[str, Any], message: str
) -> None:
    error = refused(new(), input_type, data)
    assert isinstance(error, InvalidMessage)
    assert error.message.startswith(message)
    assert error.detail == "data"


@pytest.mark.parametrize(
    ("input_type", "data"),
    [("file", {"files": [FILE]}), ("form_submit", {"fields": {"f": FILE}})],
)
def test_file_that_did_not_come_with_an_input_of_this_session_is_refused(
    input_type: str, data: dict[str, Any]
) -> None:
    """An id is no credential."""
    error = refused(begun(), input_type, data)
    assert isinstance(error, UnknownObject)
    assert error.message == "no such file; files come by POST as multipart/form-data"


def test_file_that_came_is_taken() -> None:
    session = new()
    session.input_log.remember_files(["abc"])
    assert send(session, "file", {"files": [FILE], "text": "look"}) == [RunTurn("t1")]


# -- reserved actions ------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", [{}, {"payload": {"turn_id": "t1"}}, {"payload": 5}])
def test_cancel_stops_the_running_turn(payload: dict[str, Any]) -> None:
    """protocol.md 2.2: `arp.cancel` stops the running turn; the intent is on record first."""
    session = begun()
    told = send(session, "action", {"action": "arp.cancel", **payload}, id="i2")
    assert told == [Acknowledge("i2", "t1"), StopTurn("t1")]
    (fact,) = facts(session)
    assert (fact.type, fact.status, fact.turn_id) == ("run.status", "cancelling", "t1")
    assert fact.payload == {"inputId": "i2"}


def test_cancel_names_a_queued_turn() -> None:
    session = begun()
    user(session, "more")
    facts(session)
    data = {"action": "arp.cancel", "payload": {"turn_id": "t2"}}
    assert send(session, "action", data) == []
    assert session.status_of("t2") == "cancelled"
    assert facts(session)[0].payload == {}


@pytest.mark.parametrize("begin", [new, begun])
def test_cancel_of_nothing_is_acknowledged_and_remembered(begin: Callable[[], Session]) -> None:
    session = begin()
    data = {"action": "arp.cancel", "payload": {"turn_id": "nobody"}}
    assert send(session, "action", data, id="i2") == [Acknowledge("i2", None)]
    (fact,) = facts(session)
    assert (fact.type, fact.status, fact.payload) == ("run.status", "idle", {"inputId": "i2"})
    assert send(session, "action", data, id="i2") == [Acknowledge("i2", None)]
    assert send(session, "action", data) == []
    assert kinds(session) == []


def test_cancel_counts_once() -> None:
    """A repeat must not stop the turn that came after."""
    session = begun()
    send(session, "action", {"action": "arp.cancel"}, id="i2")
    end_turn(session, "t1", "cancelled")
    user(session, "more")
    assert send(session, "action", {"action": "arp.cancel"}, id="i2") == [Acknowledge("i2", "t1")]


def test_other_reserved_actions_are_refused() -> None:
    error = refused(begun(), "action", {"action": "arp.explode"})
    assert error.message == "action arp.explode: names that begin with arp. are reserved"


# -- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("component", "input_type", "data", "value"),
    [
        (confirm(), "action", {"action": "confirm"}, True),
        (confirm(), "action", {"action": "deny"}, False),
        (choices(), "selection", {"selected": ["two"]}, "two"),
        (form(), "form_submit", {"fields": {"n": "Ada"}}, {"n": "Ada", "p": None}),
        (Component("q", "text-input", {}), "text", {"text": "said"}, "said"),
    ],
)
@pytest.mark.parametrize("surface", ["main", "side"])
def test_answer_goes_to_the_agent_that_asked(
    component: Component, input_type: str, data: dict[str, Any], value: Any, surface: str
) -> None:
    session = begun()
    question = ask_question(session, "t1", component, surface)
    facts(session)
    told = send(session, input_type, data, source_component="q", surface=surface, id="i2")
    assert told == [Acknowledge("i2", "t1"), answer_to(question, value)]
    assert session.questions == {}
    assert shows(session, "q", surface)["state"] == "answered"
    _, resolved = facts(session)
    assert resolved.payload["input"]["id"] == "i2"
    assert session.screen.turns["t1"].inputs[-1].source_component == "q"


def test_answer_that_does_not_fit_is_refused_and_the_question_stays_open() -> None:
    session = begun()
    ask_question(session, "t1", choices())
    error = refused(session, "selection", {"selected": ["three"]}, source_component="q")
    assert isinstance(error, InvalidAnswer)
    assert ("main", "q") in session.questions


def test_answer_to_what_is_not_there_is_refused() -> None:
    session = begun()
    ask_question(session, "t1", choices())
    for surface in ("side", "main"):
        error = refused(
            session, "selection", {"selected": ["one"]}, source_component="x", surface=surface
        )
        assert isinstance(error, UnknownObject)
        assert error.message == f"no component 'x' on surface '{surface}'"


def test_selection_may_name_its_source_in_its_data() -> None:
    session = begun()
    ask_question(session, "t1", choices("first"))
    question = ask_question(session, "t1", choices("second"))
    told = send(session, "selection", {"selected": ["one"], "source": "second"})
    assert told == [answer_to(question, "one")]


def test_password_goes_to_the_agent_alone() -> None:
    """It is in no fact and on no screen."""
    session = begun()
    question = ask_question(session, "t1", form())
    told = send(
        session, "form_submit", {"fields": {"n": "Ada", "p": "hunter2"}}, source_component="q"
    )
    assert told == [answer_to(question, {"n": "Ada", "p": "hunter2"})]
    drained = session.drain(AT)
    assert not any(b"hunter2" in fact for fact in drained.facts)
    assert any(b"Ada" in fact for fact in drained.facts)
    assert "hunter2" not in str(session.screen.canonical())


def test_answer_without_a_name_goes_to_the_newest_question_of_its_kind() -> None:
    session = begun()
    ask_question(session, "t1", confirm("old"))
    newest = ask_question(session, "t1", confirm("new"), "side")
    ask_question(session, "t1", choices("other"))
    told = send(session, "action", {"action": "confirm"})
    assert told == [answer_to(newest, True)]
    assert shows(session, "new", "side")["state"] == "answered"


@pytest.mark.parametrize(
    ("input_type", "data"),
    [("selection", {"selected": ["one"]}), ("form_submit", {"fields": {}})],
)
def test_answer_without_a_name_or_a_question_is_refused(
    input_type: str, data: dict[str, Any]
) -> None:
    session = begun()
    ask_question(session, "t1", confirm())
    error = refused(session, input_type, data)
    assert error.message == (
        f"{input_type}: name the component that it answers in source_component"
    )


def test_question_whose_component_is_gone_is_not_answered_unnamed() -> None:
    session = begun()
    ask_question(session, "t1", confirm())
    session.commit("t1", "main", [PatchChange([Remove("q")])])
    assert send(session, "action", {"action": "confirm"}) == []
    assert session.queue == ["t2"]


def test_custom_question_is_answered_by_name_alone() -> None:
    session = begun()
    question = ask_question(session, "t1", Component("q", "x-acme-poll", {}, 1, text("")))
    assert send(session, "action", {"action": "vote"}) == []
    told = send(session, "action", {"action": "vote", "payload": 3}, source_component="q")
    assert told == [answer_to(question, {"action": "vote", "payload": 3})]


def test_form_names_its_action() -> None:
    session = begun()
    asked = form()
    asked.props["submit_action"] = "save"
    ask_question(session, "t1", asked)
    send(session, "form_submit", {"fields": {"n": "Ada"}, "action": "save"}, source_component="q")
    _, resolved = facts(session)[-2:]
    assert resolved.payload["input"]["data"] == {
        "action": "save",
        "fields": {"n": "Ada", "p": None},
    }


# -- typed answers ---------------------------------------------------------------------------------


def test_typed_line_answers_where_the_question_is_shown_as_text() -> None:
    """protocol.md 3: the answer as text is understood."""
    session = begun()
    question = ask_question(session, "t1", confirm())
    told = send(session, "text", {"text": "yes"}, by=TEXT, id="i2")
    assert told == [Acknowledge("i2", "t1"), answer_to(question, True)]
    (_, answer) = session.screen.turns["t1"].inputs
    assert (answer.input_type, answer.data) == ("action", {"action": "confirm"})


@pytest.mark.parametrize("by", [FULL, DRAFT])
def test_typed_line_is_a_new_turn_where_the_question_has_buttons(by: Any) -> None:
    """Who says no `hello` shows everything itself."""
    session = begun()
    ask_question(session, "t1", confirm())
    send(session, "text", {"text": "yes"}, by=by)
    assert session.queue == ["t2"]


def test_text_of_the_draft_answers_without_a_hello() -> None:
    """Its client answers by text, and has no other way."""
    session = begun()
    question = ask_question(session, "t1", confirm())
    assert send(session, "text", {"text": "[Denied] Deny"}, by=FULL, id="i2") == [
        Acknowledge("i2", "t2")
    ]
    told = send(session, "text", {"text": "[Confirmed] Confirm"}, by=DRAFT, id="i3")
    assert told == [Acknowledge("i3", "t1"), answer_to(question, True)]
    (_, answer) = session.screen.turns["t1"].inputs
    assert (answer.input_type, answer.data) == ("action", {"action": "confirm"})


def test_password_in_a_form_of_the_draft_is_not_kept() -> None:
    session = begun()
    fields = [{"name": "user"}, {"name": "pin", "field_type": "password"}]
    question = ask_question(session, "t1", Component("q", "form", {"fields": fields}))
    text = '{"user":"ada","pin":"sesame-9731"}'
    (resolved,) = send(session, "text", {"text": text}, by=DRAFT)
    assert resolved == answer_to(question, {"user": "ada", "pin": "sesame-9731"})
    assert not any("sesame-9731" in str(fact.payload) for fact in facts(session))


def test_empty_source_is_no_source() -> None:
    """The draft's client knows no ids of components, and sends an empty one."""
    session = begun()
    question = ask_question(session, "t1", confirm())
    told = send(session, "action", {"action": "deny"}, by=DRAFT, source_component="")
    assert told == [answer_to(question, False)]
    ask_question(session, "t1", choices("c"))
    data = {"selected": ["two"], "source": ""}
    send(session, "selection", data, by=DRAFT, source_component="")
    send(session, "text", {"text": "and now?"}, source_component="")
    assert session.questions == {}
    assert all(not echo.source_component for echo in session.screen.turns["t2"].inputs)


@pytest.mark.parametrize(
    "data",
    [
        {"action": "two"},
        {"action": "select", "payload": "two"},
        {"action": "select", "payload": ["two"]},
        {"action": "select", "payload": {"value": "two"}},
        {"action": "select", "payload": {"selected": ["two"]}},
    ],
)
@pytest.mark.parametrize("source", [None, "c"])
def test_choices_are_answered_by_an_action_too(data: dict[str, Any], source: str | None) -> None:
    """As the draft has it; the conversation tells it as the selection that it is."""
    session = begun()
    question = ask_question(session, "t1", choices("c"))
    told = send(session, "action", data, source_component=source)
    assert told == [answer_to(question, "two")]
    (_, answer) = session.screen.turns["t1"].inputs
    assert (answer.input_type, answer.data) == ("selection", {"selected": ["two"]})


@pytest.mark.parametrize("data", [{"action": "ten"}, {"action": "x", "payload": []}])
def test_action_that_chooses_nothing_offered_answers_no_choices(data: dict[str, Any]) -> None:
    session = begun()
    ask_question(session, "t1", choices("c"))
    assert "selected" in refused(session, "action", data, source_component="c").message
    send(session, "action", data)
    assert session.queue == ["t2"]


def test_form_is_submitted_flat_too() -> None:
    """The draft has the fields as the data itself."""
    session = begun()
    question = ask_question(session, "t1", form())
    told = send(session, "form_submit", {"n": "Ada", "action": "submit"})
    assert told == [answer_to(question, {"n": "Ada", "p": None})]
    (_, answer) = session.screen.turns["t1"].inputs
    assert answer.data == {"fields": {"n": "Ada", "p": None}}


def test_flat_form_may_have_a_field_named_action() -> None:
    session = begun()
    question = ask_question(session, "t1", Component("q", "form", {"fields": [{"name": "action"}]}))
    assert "data.fields" in refused(session, "form_submit", {"action": "stop"}).message
    told = send(session, "form_submit", {"fields": {"action": "stop"}})
    assert told == [answer_to(question, {"action": "stop"})]


def test_flat_form_names_no_file_of_another_session() -> None:
    """An id is no credential, wherever it stands."""
    session = begun()
    ask_question(
        session, "t1", Component("q", "form", {"fields": [{"name": "cv", "field_type": "file"}]})
    )
    assert isinstance(refused(session, "form_submit", {"cv": FILE}), UnknownObject)


ODD: list[dict[str, Any]] = [{}, {"x": 1}, {"text": 5}, {"fields": []}, {"width": -1, "height": 1}]


@pytest.mark.parametrize(
    "input_type",
    [
        "text",
        "action",
        "selection",
        "file",
        "gesture",
        "voice",
        "navigate",
        "resize",
    ],
)
@pytest.mark.parametrize("data", ODD)
def test_input_of_another_shape_is_refused_even_under_a_used_id(
    input_type: str, data: dict[str, Any]
) -> None:
    session = begun()
    send(session, "text", {"text": "x"}, id="used")
    for input_id in ("used", "fresh"):
        assert refused(session, input_type, data, id=input_id).code == 11


def test_typed_line_that_is_no_answer_is_a_new_turn() -> None:
    session = begun()
    ask_question(session, "t1", confirm())
    send(session, "text", {"text": "what do you mean?"}, by=TEXT)
    assert session.queue == ["t2"]
    assert ("main", "q") in session.questions


def test_typed_line_answers_the_newest_question_that_understands_it() -> None:
    session = begun()
    first = ask_question(session, "t1", choices("c"))
    ask_question(session, "t1", confirm("y"))
    assert send(session, "text", {"text": "two"}, by=TEXT) == [answer_to(first, "two")]


# -- rows of a table -------------------------------------------------------------------------------


def rows(selectable: str, component_id: str = "q") -> Component:
    props = {"headers": ["n"], "rows": [["a"], ["b"], ["c"]], "selectable": selectable}
    return Component(component_id, "table", props)


@pytest.mark.parametrize(
    ("selectable", "selected", "answer"), [("one", [2], 2), ("many", [2, 0], [2, 0])]
)
def test_selected_rows_answer_a_table(selectable: str, selected: list[int], answer: Any) -> None:
    session = begun()
    question = ask_question(session, "t1", rows(selectable))
    told = send(session, "selection", {"selected": selected}, id="i2")
    assert told == [Acknowledge("i2", "t1"), answer_to(question, answer)]
    (shown,) = session.screen.output("t1")
    assert (shown.props["state"], shown.props["answer"]) == ("answered", answer)
    assert refused(session, "selection", {"selected": [0]}, source_component="q").code == 11


def test_rows_are_selected_by_a_typed_line_where_the_table_is_text() -> None:
    session = begun()
    question = ask_question(session, "t1", rows("many"))
    told = send(session, "text", {"text": "1, 3"}, by=TEXT)
    assert told == [answer_to(question, [0, 2])]


def test_row_that_came_while_the_question_was_open_can_be_selected() -> None:
    session = begun()
    question = ask_question(session, "t1", rows("one"))
    assert "there are 3" in refused(session, "selection", {"selected": [3]}).message
    session.commit("t1", "main", [PatchChange([Append("q", "props.rows", [["d"]])])])
    assert send(session, "selection", {"selected": [3]}) == [answer_to(question, 3)]


def test_table_that_was_only_shown_begins_a_turn_and_closes() -> None:
    """As choices that nobody waits for."""
    session = begun()
    session.commit("t1", "main", [RenderChange([rows("one")])])
    end_turn(session, "t1", "completed")
    assert send(session, "selection", {"selected": [1], "source": "q"}) == [RunTurn("t2")]
    (shown,) = session.screen.output("t1")
    assert (shown.props["state"], shown.props["answer"]) == ("answered", 1)


def test_table_without_selection_asks_nothing() -> None:
    session = begun()
    for component in (rows("none"), Component("q", "table", {"headers": [], "rows": []})):
        with pytest.raises(InvalidComponent, match="selectable"):
            ask_question(session, "t1", component)
    ask_question(session, "t1", rows("one"))
    plain = Component("q", "table", {"headers": [], "rows": []})
    session.commit("t1", "main", [PatchChange([Replace("q", plain)])])
    end_turn(session, "t1", "completed")
    (shown,) = session.screen.output("t1")
    assert shown == plain


# -- answers that nobody waits for -----------------------------------------------------------------


def test_answer_to_what_was_only_shown_begins_a_turn() -> None:
    session = begun()
    session.commit("t1", "main", [RenderChange([choices()])])
    end_turn(session, "t1", "completed")
    facts(session)
    told = send(session, "selection", {"selected": ["one"]}, source_component="q", id="i2")
    assert told == [Acknowledge("i2", "t2"), RunTurn("t2")]
    assert shows(session, "q")["state"] == "answered"
    assert shows(session, "q")["answer"] == "one"
    again = refused(session, "selection", {"selected": ["two"]}, source_component="q")
    assert "is already answered" in again.message


def test_custom_component_that_was_only_shown_stays_as_it_is() -> None:
    """Its states are its author's: it may be used again and again."""
    session = begun()
    session.commit("t1", "main", [RenderChange([Component("x", "x-acme-dial", {}, 1, text(""))])])
    for turn in ("t2", "t3"):
        send(session, "action", {"action": "turn"}, source_component="x")
        assert session.queue[-1] == turn
    assert shows(session, "x") == {}


def test_answer_after_a_crash_closes_the_question_and_begins_a_turn() -> None:
    """ledger.md 2: a pending action is still pending, but nobody waits for it."""
    session = begun()
    ask_question(session, "t1", form())
    end_turn(session, "t1", "failed", reason="interrupted")
    facts(session)
    told = send(session, "form_submit", {"fields": {"n": "Ada", "p": "x"}}, source_component="q")
    assert told == [RunTurn("t2")]
    assert session.questions == {}
    marked, resolved, submitted, _ = facts(session)
    assert (marked.type, resolved.type) == ("artifact.changed", "action.resolved")
    assert resolved.payload == {"decision": "answered", "resumes": False, "ends": "completed"}
    assert submitted.payload["answers"]["actionId"] == resolved.action_id
    hidden = submitted.payload["input"]["data"]["fields"]
    assert (hidden["n"], hidden["p"] != "x") == ("Ada", True)


def test_late_answer_does_not_interrupt_the_turn_that_may_want_it() -> None:
    """Another question of the same turn was answered before: that turn goes on."""
    session = begun("interrupt")
    ask_question(session, "t1", form())
    end_turn(session, "t1", "failed", reason="interrupted")
    user(session, "more")
    told = send(session, "form_submit", {"fields": {"n": "Ada", "p": "x"}}, source_component="q")
    assert (told, session.running, session.queue) == ([], "t2", ["t3"])


def test_question_that_is_asked_again_is_over_and_its_turn_too() -> None:
    session = begun()
    question = ask_question(session, "t1", form())
    end_turn(session, "t1", "failed", reason="interrupted")
    user(session, "more")
    facts(session)
    replace_question(session, question)
    marked, resolved = facts(session)
    assert (marked.type, resolved.type) == ("artifact.changed", "action.resolved")
    assert resolved.payload == {"decision": "expired", "resumes": False, "ends": "completed"}
    assert session.status_of("t1") == "completed"
    late = refused(session, "form_submit", {"fields": {"n": "Ada"}}, source_component="q")
    assert "has expired and takes no more answers" in late.message


def test_answer_that_who_asked_cannot_take_leaves_the_question_open() -> None:
    """What a component cannot check, whoever asked can: its refusal names the field."""
    session = begun()
    question = ask_question(session, "t1", form())
    facts(session)

    def check(asked: Question, value: Any) -> None:
        assert asked == question
        if value["n"] == "Bob":
            raise InvalidAnswer("fields.n: not Bob", detail="fields.n")

    bob = Input(input_type="form_submit", data={"fields": {"n": "Bob"}}, source_component="q")
    with pytest.raises(InvalidAnswer, match="not Bob"):
        receive(session, bob, understand_draft, check=check)
    assert (kinds(session), session.questions.is_open(question)) == ([], True)
    ada = Input(input_type="form_submit", data={"fields": {"n": "Ada"}}, source_component="q")
    (resolve,) = receive(session, ada, understand_draft, check=check)
    assert resolve == answer_to(question, {"n": "Ada", "p": None})


# -- declining -------------------------------------------------------------------------------------

DECLINE = {"action": "decline"}


def text_input() -> Component:
    return Component("q", "text-input", {"label": "Why?"})


def declinable(component: Component) -> Component:
    return msgspec.structs.replace(component, props={**component.props, "can_decline": True})


@pytest.mark.parametrize("component", [form(), choices(), confirm(), text_input()])
def test_question_may_be_declined_where_it_says_so(component: Component) -> None:
    session = begun()
    question = ask_question(session, "t1", declinable(component))
    facts(session)
    told = send(session, "action", DECLINE, source_component="q", id="i2")
    resolve = decline_of(question)
    assert told == [Acknowledge("i2", "t1"), resolve]
    assert shows(session, "q")["state"] == "declined"
    assert "answer" not in shows(session, "q")
    marked, resolved = facts(session)
    assert (marked.type, resolved.payload["decision"]) == ("artifact.changed", "declined")
    assert session.status_of("t1") == "running"
    error = refused(session, "action", DECLINE, source_component="q")
    assert "was declined and takes no more answers" in error.message


@pytest.mark.parametrize("component", [form(), choices(), confirm(), text_input()])
def test_question_that_does_not_say_so_cannot_be_declined(component: Component) -> None:
    session = begun()
    question = ask_question(session, "t1", component)
    refused(session, "action", DECLINE, source_component="q")
    assert session.questions.is_open(question)


def test_decline_that_names_no_question_is_of_the_newest_that_may_be_declined() -> None:
    session = begun()
    first = ask_question(session, "t1", declinable(choices("a")))
    ask_question(session, "t1", choices("b"))
    assert send(session, "action", DECLINE) == [decline_of(first)]


def test_decline_after_a_crash_begins_a_turn_that_knows_it() -> None:
    session = begun()
    question = ask_question(session, "t1", declinable(form()), options=QuestionOptions("trip"))
    end_turn(session, "t1", "failed", reason="interrupted")
    assert send(session, "action", DECLINE, source_component="q") == [RunTurn("t2")]
    given = session.input_log.answer_of("t2")
    assert given == GivenAnswer(question.action_id, "trip", None, declined=True)
    assert session.status_of("t1") == "completed"


def test_component_that_was_only_shown_may_be_declined_too() -> None:
    session = begun()
    session.commit("t1", "main", [RenderChange([declinable(choices())])])
    end_turn(session, "t1", "completed")
    assert send(session, "action", DECLINE, source_component="q") == [RunTurn("t2")]
    assert shows(session, "q")["state"] == "declined"


def test_answer_that_would_begin_a_turn_needs_room_for_it() -> None:
    session = begun("reject")
    session.commit("t1", "main", [RenderChange([choices()])])
    error = refused(session, "selection", {"selected": ["one"]}, source_component="q")
    assert isinstance(error, SessionBusy)
    assert "state" not in shows(session, "q")


# -- tabs ------------------------------------------------------------------------------------------


def tabs() -> Component:
    inside = [
        {"label": name, "component": {"id": name, "type": "text", "props": {"content": name}}}
        for name in ("one", "two")
    ]
    return Component("q", "tabs", {"tabs": inside})


def test_tab_turns_for_every_renderer_and_begins_no_turn() -> None:
    session = begun()
    session.commit("t1", "main", [RenderChange([tabs()])])
    facts(session)
    change = {"action": "tab_change", "payload": {"tab": 1}}
    told = send(session, "action", change, source_component="q", id="i2")
    assert told == [Acknowledge("i2", None)]
    (fact,) = facts(session)
    assert fact.payload["inputId"] == "i2"
    assert shows(session, "q")["active_tab"] == 1
    assert send(session, "action", change, source_component="q", id="i2") == [
        Acknowledge("i2", None)
    ]
    assert kinds(session) == []


def test_tab_without_an_id_is_turned_too() -> None:
    session = begun()
    session.commit("t1", "main", [RenderChange([tabs()])])
    facts(session)
    change = {"action": "tab_change", "payload": {"tab": 1}}
    assert send(session, "action", change, source_component="q") == []
    assert "inputId" not in facts(session)[0].payload


def test_answered_question_that_has_changed_since_is_judged_as_it_stands() -> None:
    session = begun()
    ask_question(session, "t1", choices())
    session.commit("t1", "main", [PatchChange([Update("q", "props.options", ["three"])])])
    refused(session, "selection", {"selected": ["one"]}, source_component="q")
    assert send(session, "selection", {"selected": ["three"]}, source_component="q")


# -- turns that a program asks for -----------------------------------------------------------------


def program(session: Session, name: str | None = None, **ids: str) -> list[Any]:
    """A program asks for a turn."""
    input_id = None if name is None else f"turn:{name}"
    message = Input(input_type="text", data={"text": "go"}, id=input_id)
    return submit(session, message, NewTurnOptions(name, ids))


def test_turn_that_a_program_asks_for_has_the_name_that_it_wants() -> None:
    session = new()
    assert program(session, "mine", task_id="build") == [
        Acknowledge("turn:mine", "mine"),
        RunTurn("mine"),
    ]
    submitted, _ = facts(session)
    assert (submitted.turn_id, submitted.task_id) == ("mine", "build")
    assert program(session, "mine") == [Acknowledge("turn:mine", "mine")]
    assert facts(session) == []


def test_turn_that_a_program_asks_for_answers_no_question() -> None:
    session = begun()
    ask_question(session, "t1", confirm())
    assert program(session) == []
    assert (session.queue, len(session.questions)) == (["t2"], 1)


def test_program_cannot_begin_a_turn_with_an_answer() -> None:
    session = new()
    with pytest.raises(InvalidMessage, match="input_type selection begins no turn"):
        submit(session, Input(input_type="selection", data={"selected": []}))
    assert facts(session) == []
