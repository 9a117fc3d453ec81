"""A screen in the object dialect shows what the same messages show in the session dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from arp.protocol.components import Component
from arp.protocol.errors import ErrorPayload
from arp.protocol.limits import Limits
from arp.protocol.messages import (
    AgentHello,
    AgentMessage,
    Commit,
    Delta,
    ErrorMessage,
    Input,
    InputAck,
    Patch,
    Ping,
    Render,
    RendererCapabilities,
    RendererHello,
    SessionReady,
    StateMessage,
)
from arp.protocol.objects.agent import ObjectAgentConnection
from arp.protocol.objects.conversation import as_message, as_request
from arp.protocol.objects.messages import (
    ConversationDeltaRequest,
    ConversationOpenedRequest,
    DisplayErrorRequest,
    InputAckRequest,
    InputRefuseRequest,
    SessionStateUpdateRequest,
    SurfaceCommitRequest,
    SurfacePatchRequest,
    SurfaceRenderRequest,
    SurfaceTransferRequest,
)
from arp.protocol.objects.screen import ObjectScreenConnection
from arp.protocol.objects.wire import DISPLAY
from arp.protocol.patch import Update
from tests.protocol.sample_messages import FROM_AGENT

ABOUT = {"capabilities": {"components": ["text"], "features": ["ping", "resume"]}}


class Talk:
    """An agent's end, and a screen at the other."""

    def __init__(self, metadata: dict[str, Any] | None = None, **hello: Any) -> None:
        self.screen = ObjectScreenConnection(
            RendererHello(capabilities=RendererCapabilities({"text": 1}), **hello),
            "json",
            lambda: 0.0,
        )
        self.metadata = ABOUT if metadata is None else metadata
        self.connect()

    def connect(self) -> list[AgentMessage]:
        self.agent = ObjectAgentConnection("json", Limits())
        assert self.screen.hello() == b""
        self.agent.get_registry()
        self.exchange()
        for name in ("ArpCompositor", "ArpShell", "ArpInput", "ArpSession", "ArpConversation"):
            self.agent.bind(name)
        self.agent.create_session("proposed", self.metadata)
        return self.exchange()

    def open(self, resume: Any = "new", seq: int = 2) -> list[AgentMessage]:
        self.main = self.agent.create_surface("main")
        self.agent.get_toplevel(self.main)
        self.say(ConversationOpenedRequest("s", "e", seq, resume))
        return self.exchange()

    def say(self, request: Any) -> None:
        self.agent.send(self.agent.bound["ArpConversation"], request)

    def exchange(self) -> list[AgentMessage]:
        out: list[AgentMessage] = []
        for _ in range(3):
            for frame in self.agent.data_to_send():
                out += self.screen.receive(frame)
            for frame in self.screen.replies():
                self.agent.receive(frame)
        return out


@pytest.mark.parametrize("message", FROM_AGENT, ids=lambda one: type(one).__name__)
def test_messages_survive_the_way_through_the_conversation(message: AgentMessage) -> None:
    """Spec: W6."""
    names = {"main": None, "side": 7}
    request = as_request(message, lambda name: names.get(name, 9))
    if request is None:
        return
    surface = getattr(message, "surface", "main")
    session_id = getattr(message, "session_id", None) or ""
    back = as_message(request, session_id, lambda number: "main" if number is None else surface)
    wanted = message if not isinstance(message, ErrorMessage) or message.session_id else back
    assert back == wanted


def test_what_is_no_message_of_the_conversation_is_none() -> None:
    assert as_message(SurfaceCommitRequest(), "s", lambda _: "main") is None


def test_screen_shows_commits_and_answers_them() -> None:
    talk = Talk(viewport=None)
    (hello,) = [one for one in talk.connect() if isinstance(one, AgentHello)]
    assert hello.capabilities.features == ["resume"]
    talk.open()
    talk.agent.send(talk.main, SurfaceRenderRequest([Component("a", "text", {"content": "x"})]))
    talk.agent.send(talk.main, SurfacePatchRequest([Update("a", "props.content", "y")]))
    talk.agent.send(talk.main, SurfaceCommitRequest(session_seq=3))
    out = talk.exchange()
    assert [type(one) for one in out] == [Render, Patch, Commit]
    assert talk.screen.screen.output("")[0].props == {"content": "y"}
    assert talk.agent.objects.surface(talk.main).pending == []
    assert (talk.screen.epoch, talk.screen.seq, talk.screen.session_id) == ("e", 3, "s")
    talk.agent.send(talk.main, SurfaceCommitRequest())
    assert talk.exchange() == []


def test_inputs_are_answered_by_serial_or_by_message_and_sent_again() -> None:
    talk = Talk()
    assert talk.screen.input("text", {"text": "early"}, input_id="early") == b""
    talk.open()
    for frame in talk.screen.resend():
        talk.agent.receive(frame)
    assert talk.screen.resend() == []
    for name in ("one", "two", "three"):
        talk.agent.receive(talk.screen.input("text", {"text": name}, input_id=name))
    input_object = talk.agent.bound["ArpInput"]
    talk.agent.send(input_object, InputAckRequest(1, "t1"))
    talk.agent.send(input_object, InputAckRequest(2))
    talk.agent.send(input_object, InputRefuseRequest(3, 11, "no", True, "data"))
    number = talk.agent.objects.waiting_inputs[4].serial_no
    talk.agent.send(DISPLAY, DisplayErrorRequest(input_object, 5, "gone", number))
    talk.agent.send(DISPLAY, DisplayErrorRequest(DISPLAY, 19, "what"))
    acks = [one for one in talk.exchange() if isinstance(one, InputAck | ErrorMessage)]
    assert [one.id for one in acks if isinstance(one, InputAck)] == ["early", "one"]
    errors = [one.payload for one in acks if isinstance(one, ErrorMessage)]
    assert errors == [
        ErrorPayload("no", 11, "data", "two", True),
        ErrorPayload("gone", 5, None, "three"),
        ErrorPayload("what", 19),
    ]
    assert talk.screen.unacknowledged == {}


def test_input_to_a_surface_that_is_closed_waits_for_the_next_connection() -> None:
    talk = Talk()
    talk.open()
    talk.screen._objects.close(talk.main)
    assert talk.screen.input("text", {"text": "x"}, input_id="a") == b""
    assert "a" in talk.screen.unacknowledged
    assert talk.screen.ack(3) == talk.screen.pong(Ping(id="p")) == b""


def test_next_connection_names_the_place_that_was_applied() -> None:
    """Spec: S3."""
    talk = Talk(locale="de-CH", session_id="s")
    talk.open()
    talk.agent.send(talk.main, SurfaceCommitRequest(True, 9, "t1"))
    talk.exchange()
    talk.connect()
    assert talk.agent.objects.session_id == "s"
    (ready,) = [one for one in talk.open("replay", 9) if isinstance(one, SessionReady)]
    assert ready.resume == "replay"
    assert talk.screen.screen.turns["t1"].final


def test_surfaces_come_and_go_with_their_names() -> None:
    talk = Talk()
    talk.open()
    side = talk.agent.create_surface()
    talk.agent.get_toplevel(side)
    talk.agent.send(side, SurfaceRenderRequest([Component("b", "text", {"content": "x"})]))
    talk.agent.send(side, SurfaceCommitRequest())
    (render, _) = talk.exchange()
    assert isinstance(render, Render)
    assert render.surface == str(side)
    talk.agent.destroy(side)
    talk.exchange()
    assert talk.screen._names == {talk.main: "main"}


def test_state_that_is_no_object_is_an_empty_one() -> None:
    talk = Talk()
    talk.open()
    session = talk.agent.bound["ArpSession"]
    talk.agent.send(session, SessionStateUpdateRequest([1], 5))
    talk.agent.send(session, SessionStateUpdateRequest({"a": 1}, 6))
    states = [one.state for one in talk.exchange() if isinstance(one, StateMessage)]
    assert states == [{}, {"a": 1}]


def test_metadata_that_cannot_be_read_leave_the_agent_unknown() -> None:
    talk = Talk({"capabilities": {"components": 7}})
    assert talk.screen.agent is None


def test_what_cannot_be_read_asks_for_another_connection() -> None:
    talk = Talk()
    talk.open()
    raw = {"v": 1, "id": 99, "op": "commit", "seq": 500, "payload": {}}
    (error,) = talk.screen.receive(json.dumps(raw))
    assert isinstance(error, ErrorMessage)
    assert error.payload.code == 1
    assert talk.screen.is_desynchronised
    (error,) = talk.screen.receive(json.dumps(raw))
    assert isinstance(error, ErrorMessage)
    beside = talk.screen.receive_json(b'{"v":1,"type":"ack","id":"x"}')
    assert beside == [InputAck(id="x")]


def test_one_who_has_one_agent_hands_no_surface_over() -> None:
    """Spec: O24."""
    talk = Talk()
    talk.open()
    side = talk.agent.create_surface("side")
    talk.agent.send(side, SurfaceTransferRequest("elsewhere", True))
    talk.exchange()
    assert talk.agent.objects.surface(side).ownership == "owned"
    assert side in talk.agent.objects.surfaces


def test_text_on_a_surface_beside_main_names_it() -> None:
    talk = Talk()
    talk.open()
    side = talk.agent.create_surface("side")
    talk.say(ConversationDeltaRequest("x", 3, "t1", side))
    talk.say(ConversationDeltaRequest("y", 4, "t1"))
    deltas = [one for one in talk.exchange() if isinstance(one, Delta)]
    assert [one.surface for one in deltas] == ["side", "main"]


def test_surface_that_another_agent_gave_away_is_acquired_without_content_of_its_own() -> None:
    """A screen keeps what surfaces show itself. Spec: O23."""
    talk = Talk()
    talk.open()
    made = talk.screen._objects.acquire([Component("a", "text", {"content": "x"})])
    talk.exchange()
    assert made in talk.agent.objects.surfaces
    assert talk.screen._objects.content(made) == []


def test_input_with_files_is_an_input_of_its_surface_once_there_is_one() -> None:
    said = Input(input_type="file", data={"files": []}, id="i")
    talk = Talk()
    assert talk.screen.input_with_files(said) == b""
    talk.open()
    sent = json.loads(talk.screen.input_with_files(said))
    given = sent["payload"]
    assert (sent["op"], given["type"], given["input_id"]) == ("input", "file", "i")
    assert talk.screen.resend() == []


def test_commit_that_cannot_be_applied_is_refused_and_not_acknowledged() -> None:
    """What does not show is not acknowledged. Spec: O15."""
    talk = Talk()
    talk.open()
    talk.agent.send(talk.main, SurfacePatchRequest([Update("gone", "props.content", "y")]))
    number = talk.agent.send(talk.main, SurfaceCommitRequest(session_seq=3))
    for frame in talk.agent.data_to_send():
        talk.screen.receive(frame)
    told = [json.loads(frame) for frame in talk.screen.replies()]
    assert [(one["op"], one["payload"]["refused_seq"]) for one in told[-1:]] == [("error", number)]
    assert all(one["op"] != "frame_ack" for one in told)
    assert talk.screen.is_desynchronised
