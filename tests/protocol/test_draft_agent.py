"""An agent side that knows the v0.1 draft alone is read by every client of ours.

Spec: S8.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from arp.protocol.codec import ENCODINGS, Encoding, recode
from arp.protocol.components import Component
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.draft_agent import CUT_OFF, NO_TEXT, DraftTurns
from arp.protocol.errors import ErrorPayload
from arp.protocol.messages import (
    AgentCapabilities,
    AgentHello,
    AgentMessage,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    Input,
    InputAck,
    InputEcho,
    Patch,
    Render,
    RendererCapabilities,
    RendererHello,
    SessionReady,
    ToolEnd,
    ToolStart,
    TurnMessage,
)
from arp.protocol.patch import Insert, Remove, Update
from tests.support.frames import hello

HELLO = hello("text")
NOT_KNOWN = {"v": 1, "type": "error", "payload": {"message": "unknown type: hello"}}
CONFIRM = Component("sure", "confirm", {"title": "Sure?"})


def connection(encoding: Encoding = "json") -> RendererConnection:
    hello = RendererHello(capabilities=RendererCapabilities(["text"]))
    return RendererConnection(hello, encoding, spare_id="spare")


def feed(one: RendererConnection, *messages: Any) -> list[AgentMessage]:
    return [
        out
        for message in messages
        for out in one.receive(recode(json.dumps(message).encode(), one.encoding))
    ]


def on_draft(encoding: Encoding = "json") -> RendererConnection:
    one = connection(encoding)
    one.hello()
    feed(one, HELLO, NOT_KNOWN)
    return one


def statuses(one: RendererConnection) -> dict[str, str | None]:
    return {turn.id: turn.status for turn in one.screen.turns.values()}


# -- fields that are left out ----------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ({"type": "delta", "payload": {"delta": "x"}}, ("", "x")),
        ({"type": "delta", "session_id": None, "payload": None}, ("", "")),
        ({"type": "delta", "session_id": "s", "payload": {"delta": None}}, ("s", "")),
    ],
)
def test_text_without_a_session_is_read(encoding: Encoding, message: Any, wanted: Any) -> None:
    one = on_draft(encoding)
    (*_, delta) = feed(one, message)
    assert isinstance(delta, Delta)
    assert (delta.session_id, delta.payload.delta) == wanted


def test_other_messages_without_a_session_are_read() -> None:
    one = on_draft()
    out = feed(
        one,
        {"type": "tool_start", "payload": {"tool": "query"}},
        {"type": "tool_end", "payload": {"tool": "query"}},
        {"type": "render", "components": None},
        {"type": "patch"},
        {"type": "commit", "final": True},
    )
    assert [type(message) for message in out] == [
        TurnMessage,
        ToolStart,
        ToolEnd,
        Render,
        Patch,
        TurnMessage,
        Commit,
    ]
    assert [(run.args, run.ok) for run in one.screen.turns["d1"].tools] == [("", True)]
    assert statuses(one) == {"d1": "completed"}


@pytest.mark.parametrize(
    ("payload", "outside", "text", "code"),
    [
        ({"message": "away"}, None, "away", 0),
        ({"error": "away", "message": "other"}, None, "away", 0),
        ({"message": "away", "code": 11}, None, "away", 11),
        ({}, None, NO_TEXT, 0),
        (None, "outside", "outside", 0),
    ],
)
def test_error_without_a_code_has_its_text(
    payload: Any, outside: Any, text: str, code: int
) -> None:
    one = on_draft()
    (error,) = feed(one, {"type": "error", "payload": payload, "message": outside})
    assert isinstance(error, ErrorMessage)
    assert (error.payload.error, error.payload.code, error.turn_id) == (text, code, None)
    assert one.screen.errors == [error.payload]


@pytest.mark.parametrize(
    "message",
    [
        {"type": "error", "payload": 7},
        {"type": "delta", "payload": 7},
        {"type": "commit", "final": 7},
        {"type": "turn"},
        {"type": "hello", "capabilities": 7},
    ],
)
def test_what_is_there_and_does_not_fit_is_refused_as_before(message: Any) -> None:
    one = on_draft()
    (error,) = feed(one, message)
    assert isinstance(error, ErrorMessage)
    assert error.payload.code == 11


def test_hello_without_capabilities_is_read() -> None:
    one = connection()
    one.hello()
    feed(one, {"type": "hello"})
    assert one.agent == AgentHello(capabilities=AgentCapabilities([]))


# -- which agent sides know the draft alone --------------------------------------------------------


def test_error_in_place_of_a_session_shows_the_draft_and_is_not_shown() -> None:
    one = connection()
    one.hello()
    assert feed(one, HELLO) == [one.agent]
    assert one.is_undecided
    out = feed(one, NOT_KNOWN)
    assert out == [SessionReady(session_id="spare", epoch="draft", seq=0, resume="new")]
    assert (one.session_id, one.is_undecided, one.screen.errors) == ("spare", False, [])
    assert one.assume_draft() == []


def test_agent_side_without_a_hello_is_given_one() -> None:
    one = connection()
    one.hello()
    text = {"type": "delta", "payload": {"delta": "x"}}
    hello, ready, turn, delta = feed(one, text)
    assert isinstance(hello, AgentHello)
    assert isinstance(ready, SessionReady)
    assert (turn, delta) == (
        TurnMessage(session_id="", turn_id="d1", status="running"),
        Delta(session_id="", turn_id="d1", payload=DeltaPayload("x")),
    )


def test_silence_behind_its_hello_may_be_taken_for_the_draft() -> None:
    one = connection()
    one.hello()
    assert one.assume_draft() == []  # nothing came at all: it may be dead
    feed(one, HELLO)
    (ready,) = one.assume_draft()
    assert isinstance(ready, SessionReady)
    (error,) = feed(one, NOT_KNOWN)
    assert isinstance(error, ErrorMessage)


def test_session_or_a_code_shows_an_agent_side_of_arp_1() -> None:
    one = connection()
    one.hello()
    feed(one, HELLO, {"type": "pong", "id": "p"})
    (refused,) = feed(one, {"type": "error", "payload": {"error": "no", "code": 14}})
    assert isinstance(refused, ErrorMessage)
    assert one.is_undecided
    session = {"type": "session", "session_id": "s", "epoch": "e", "seq": 3, "resume": "new"}
    feed(one, session)
    one.input("text", {"text": "hi"}, input_id="i1")
    assert (one.is_undecided, one.echoes(), list(one.unacknowledged)) == (False, [], ["i1"])


def test_agent_side_that_resumes_is_not_one_of_the_draft() -> None:
    one = connection()
    one.hello()
    feed(one, {**HELLO, "capabilities": {"components": [], "features": ["resume"]}}, NOT_KNOWN)
    assert (one.is_undecided, one.session_id) == (False, None)


# -- turns -----------------------------------------------------------------------------------------


def test_input_is_echoed_and_acknowledged_on_this_side() -> None:
    one = on_draft()
    one.input("text", {"text": "hi"}, input_id="i1")
    echo, running, ack = one.echoes()
    assert isinstance(echo, InputEcho)
    assert (echo.turn_id, echo.id, echo.data) == ("d1", "i1", {"text": "hi"})
    assert running == TurnMessage(session_id="", turn_id="d1", status="running")
    assert ack == InputAck(id="i1", session_id="", turn_id="d1")
    assert (one.unacknowledged, one.echoes()) == ({}, [])
    one.input("focus", {}, input_id="i2")
    assert one.echoes() == [InputAck(id="i2", session_id="")]


def test_inputs_from_before_the_connection_are_sent_and_echoed_then() -> None:
    one = connection()
    one.input("text", {"text": "hi"}, input_id="i1")
    one.hello()
    assert one.echoes() == []
    feed(one, HELLO, NOT_KNOWN)
    assert len(one.resend()) == 1
    assert [type(message) for message in one.echoes()] == [InputEcho, TurnMessage, InputAck]
    assert one.resend() == []


def test_what_comes_belongs_to_the_oldest_open_turn() -> None:
    one = on_draft()
    for name in ("i1", "i2"):
        one.input("text", {"text": name}, input_id=name)
    for text in ("first", "second", "third"):
        feed(one, {"type": "delta", "payload": {"delta": text}}, {"type": "commit", "final": True})
    feed(one, {"type": "commit", "final": True})  # of nothing: it shows nothing
    assert [one.screen.text(turn) for turn in ("d1", "d2", "d3")] == ["first", "second", "third"]
    assert set(statuses(one).values()) == {"completed"}


def test_error_belongs_to_the_turn_which_fails() -> None:
    one = on_draft()
    one.input("text", {"text": "x"}, input_id="i1")
    feed(one, {"type": "error", "payload": {"message": "away"}}, {"type": "commit", "final": True})
    assert [error.error for error in one.screen.turns["d1"].errors] == ["away"]
    assert statuses(one) == {"d1": "failed"}
    of_input = {"type": "error", "payload": {"error": "no", "code": 11, "id": "i1"}}
    (error,) = feed(one, of_input)
    assert isinstance(error, ErrorMessage)
    assert error.turn_id is None


def test_messages_with_a_turn_stay_in_it() -> None:
    turns = DraftTurns()
    delta = Delta(session_id="", turn_id="t7", payload=DeltaPayload("x"))
    error = ErrorMessage(payload=ErrorPayload("x", 0), turn_id="t7")
    ready = SessionReady(session_id="", epoch="e", seq=0, resume="new")
    assert [turns.placed(one) for one in (delta, error, ready)] == [[delta], [error], [ready]]


def test_turns_that_a_lost_connection_left_open_have_failed() -> None:
    one = on_draft()
    one.input("text", {"text": "x"}, input_id="i1")
    feed(one, {"type": "delta", "payload": {"delta": "half"}})
    one.hello()
    ready, error, status, commit = feed(one, HELLO, NOT_KNOWN)[1:]
    assert isinstance(ready, SessionReady)
    assert ready.resume == "replay"
    assert isinstance(error, ErrorMessage)
    assert error.payload.error == CUT_OFF
    assert isinstance(status, TurnMessage)
    assert isinstance(commit, Commit)
    assert commit.final
    assert one.screen.text("d1") == "half"
    one.input("text", {"text": "y"}, input_id="i2")
    assert statuses(one) == {"d1": "failed", "d2": "running"}
    assert not one.is_desynchronised


# -- questions -------------------------------------------------------------------------------------


def shown(*components: Component) -> Render:
    return Render(session_id="", components=list(components))


def answered(turns: DraftTurns, source: str | None, input_type: Any, data: Any) -> list[Any]:
    message = Input(input_type=input_type, data=data, source_component=source)
    return turns.begin(message, "i")


FINAL = Commit(session_id="", final=True)


@pytest.mark.parametrize(
    ("component", "is_question"),
    [
        (CONFIRM, True),
        (Component("g", "group", {"children": [{"id": "q", "type": "form", "props": {}}]}), True),
        (Component("t", "table", {"headers": [], "rows": [], "selectable": "one"}), True),
        (Component("t", "table", {"headers": [], "rows": []}), False),
        (Component("x", "x-acme-dial", {}), False),
        (Component("s", "split", {}), False),
        (Component("m", "markdown", {"content": ""}), False),
    ],
)
def test_turn_that_asked_something_waits(component: Component, is_question: bool) -> None:
    turns = DraftTurns()
    turns.placed(shown(component))
    status, _ = turns.placed(FINAL)
    assert isinstance(status, TurnMessage)
    assert status.status == ("waiting" if is_question else "completed")


def test_question_may_come_by_a_patch() -> None:
    turns = DraftTurns()
    turns.placed(Patch(session_id="", ops=[Remove("x"), Insert(CONFIRM)]))
    status, _ = turns.placed(FINAL)
    assert isinstance(status, TurnMessage)
    assert status.status == "waiting"


@pytest.mark.parametrize(
    ("input_type", "data", "answer"),
    [
        ("action", {"action": "confirm"}, [True]),
        ("action", {"action": "deny"}, [False]),
        ("action", {"action": "other"}, []),
        ("selection", {"selected": ["a"]}, [["a"]]),
        ("text", {"text": "hi"}, ["hi"]),
        ("form_submit", {"fields": {}}, []),
    ],
)
def test_answer_closes_its_question_and_completes_its_turn(
    input_type: Any, data: Any, answer: list[Any]
) -> None:
    turns = DraftTurns()
    turns.placed(shown(CONFIRM))
    turns.placed(FINAL)
    patch, commit, completed, *_ = answered(turns, "sure", input_type, data)
    state = Update("sure", "props.state", "answered")
    assert patch.ops == [state, *(Update("sure", "props.answer", one) for one in answer)]
    assert commit == Commit(session_id="")
    assert completed == TurnMessage(session_id="", turn_id="d1", status="completed")
    assert len(answered(turns, "sure", input_type, data)) == 3  # it is closed


def test_other_input_completes_a_turn_that_waits_too() -> None:
    turns = DraftTurns()
    turns.placed(shown(CONFIRM))
    assert len(answered(turns, None, "text", {"text": "x"})) == 3  # its stream is open yet
    turns.placed(FINAL)
    completed, *_ = answered(turns, None, "text", {"text": "x"})
    assert completed == TurnMessage(session_id="", turn_id="d1", status="completed")
