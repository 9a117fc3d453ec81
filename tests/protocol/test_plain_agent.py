"""An agent side without `ArpConversation`, as a renderer of a conversation shows it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from arp.protocol.components import Component
from arp.protocol.draft_agent import CUT_OFF
from arp.protocol.limits import Limits
from arp.protocol.messages import (
    AgentHello,
    AgentMessage,
    Commit,
    ErrorMessage,
    Input,
    InputAck,
    RendererCapabilities,
    RendererHello,
    SessionReady,
    SurfaceMessage,
)
from arp.protocol.objects.agent import ObjectAgentConnection
from arp.protocol.objects.connection import ObjectEvent
from arp.protocol.objects.messages import (
    ConversationOpenedRequest,
    DisplayErrorEvent,
    DisplayErrorRequest,
    InputAckRequest,
    InputInputEvent,
    InputRefuseRequest,
    OverlaySetAnchorRequest,
    OverlaySetTimeoutRequest,
    SessionResumedEvent,
    SessionStateUpdateRequest,
    SurfaceCommitRequest,
    SurfaceFrameAckEvent,
    SurfacePatchRequest,
    SurfaceRenderRequest,
    SurfaceSetTitleRequest,
    ToplevelConfigureEvent,
    ToplevelSetFullscreenRequest,
)
from arp.protocol.objects.screen import ObjectScreenConnection
from arp.protocol.objects.wire import DISPLAY, ObjectMessage
from arp.protocol.patch import Insert, PatchOp, Reorder, Update

BOUND = ("ArpCompositor", "ArpShell", "ArpInput", "ArpSession")


def text(name: str, content: str = "x") -> Component:
    return Component(name, "text", {"content": content})


CONFIRM = Component("sure", "confirm", {"title": "Sure?"})


class Talk:
    """An agent that binds what it is told to, and a screen at the other end."""

    def __init__(self, bound: tuple[str, ...] = BOUND, **hello: Any) -> None:
        capabilities = RendererCapabilities({"text": 1, "confirm": 1})
        self.screen = ObjectScreenConnection(
            RendererHello(capabilities=capabilities, **hello), "json", lambda: 0.0, "spare"
        )
        self.bound = bound
        self.connect()

    def connect(self) -> None:
        self.agent = ObjectAgentConnection("json", Limits())
        self.events: list[ObjectEvent] = []
        assert self.screen.hello() == b""
        self.agent.get_registry()
        self.exchange()
        for name in self.bound:
            self.agent.bind(name)

    def open(self) -> list[AgentMessage]:
        if "ArpSession" in self.bound:
            self.agent.create_session("s-17", {"agent": "offers"})
        self.main = self.agent.create_surface()
        self.role = self.agent.get_toplevel(self.main)
        return self.exchange()

    def exchange(self) -> list[AgentMessage]:
        out: list[AgentMessage] = []
        for _ in range(3):
            for frame in self.agent.data_to_send():
                out += self.screen.receive(frame)
            for frame in self.screen.replies():
                assert not frame.startswith(b"[")
                self.events += self.agent.receive(frame)
        return out

    def show(
        self, *components: Component, on: int | None = None, **more: Any
    ) -> list[AgentMessage]:
        surface = self.main if on is None else on
        if components:
            self.agent.send(surface, SurfaceRenderRequest(list(components)))
        self.agent.send(surface, SurfaceCommitRequest(**more))
        return self.exchange()

    def patch(self, *ops: PatchOp, **more: Any) -> list[AgentMessage]:
        self.agent.send(self.main, SurfacePatchRequest(list(ops)))
        self.agent.send(self.main, SurfaceCommitRequest(**more))
        return self.exchange()

    def enter(self, words: str, source: str | None = None) -> None:
        frame = self.screen.input("text", {"text": words}, input_id=words, source=source)
        if frame:
            self.events += self.agent.receive(frame)

    def got(self, kind: type[Struct]) -> list[Any]:
        sent = [one.payload for one in self.events if isinstance(one, ObjectMessage)]
        return [one for one in sent if isinstance(one, kind)]

    def ack(self) -> list[AgentMessage]:
        serial = self.got(InputInputEvent)[-1].serial
        self.agent.send(self.agent.bound["ArpInput"], InputAckRequest(serial))
        return self.exchange()

    def shown(self) -> dict[str, list[str]]:
        """The ids of components, by turn."""
        screen = self.screen.screen
        return {name: [one.id for one in screen.output(name)] for name in screen.turns}


def test_session_begins_with_the_name_that_the_agent_gives() -> None:
    """Nothing is resumed that was never shown; what the user says waits for a surface."""
    talk = Talk()
    talk.enter("early")
    hello, ready, *_ = talk.open()
    assert isinstance(hello, AgentHello)
    assert isinstance(ready, SessionReady)
    assert (ready.session_id, ready.resume, talk.screen.session_id) == ("s-17", "new", "s-17")
    assert talk.got(SessionResumedEvent) == []
    assert [one.data for one in talk.got(InputInputEvent)] == [{"text": "early"}]


def test_agent_without_a_session_gets_one() -> None:
    talk = Talk(("ArpCompositor", "ArpShell", "ArpInput"))
    talk.open()
    talk.show(text("a"))
    assert talk.screen.session_id == "spare"
    assert talk.shown() == {"d1": ["a"]}


def test_renderer_that_names_a_session_says_so() -> None:
    talk = Talk(session_id="mine")
    talk.open()
    assert talk.got(SessionResumedEvent) == [SessionResumedEvent("mine", 0, None)]
    assert talk.screen.session_id == "mine"


def test_agent_that_opens_a_conversation_later_is_read_as_one() -> None:
    talk = Talk()
    talk.open()
    talk.show(text("a"))
    talk.agent.bind("ArpConversation")
    opened = ConversationOpenedRequest("s", "e", 2, "new")
    talk.agent.send(talk.agent.bound["ArpConversation"], opened)
    talk.exchange()
    assert (talk.screen.epoch, talk.screen.seq, talk.shown()) == ("e", 2, {})


def test_commit_that_nothing_has_asked_for_is_a_turn_and_a_change_is_none() -> None:
    talk = Talk()
    talk.open()
    assert talk.show() == []  # it only answers the configure
    talk.show(text("a"))
    talk.patch(Update("a", "props.content", "y"))
    talk.patch(Insert(text("b"), "a"))
    talk.show(text("c"))
    assert talk.shown() == {"d1": ["a", "b"], "d2": [], "d3": ["c"]}
    turns = talk.screen.screen.turns.values()
    assert [(turn.status, turn.final) for turn in turns] == [("completed", True)] * 3
    assert len(talk.got(SurfaceFrameAckEvent)) == 5
    assert talk.screen.epoch == "draft"


def test_change_before_anything_shows_belongs_to_no_turn() -> None:
    talk = Talk()
    talk.open()
    talk.agent.send(talk.main, SurfaceRenderRequest([], replace=True))
    (_, commit) = talk.show()
    assert (commit, talk.shown()) == (Commit(session_id=""), {})


def test_input_begins_a_turn_when_the_agent_has_it() -> None:
    talk = Talk()
    talk.open()
    talk.enter("hi")
    assert talk.shown() == {}
    *_, ack = talk.ack()
    assert ack == InputAck(id="hi", session_id="", turn_id="d1")
    talk.show(text("a"))
    assert not talk.screen.screen.turns["d1"].final
    talk.show(final=True)
    assert talk.screen.screen.turns["d1"].status == "completed"
    assert talk.screen.unacknowledged == {}


def test_answer_without_an_acknowledgement_begins_the_turn_too() -> None:
    talk = Talk()
    talk.open()
    talk.enter("hi")
    talk.show(text("a"), final=True)
    assert [echo.id for echo in talk.screen.screen.turns["d1"].inputs] == ["hi"]
    assert talk.ack() == [InputAck(id="hi", session_id="", turn_id="d1")]


@pytest.mark.parametrize("by_error", [True, False])
def test_refused_input_begins_nothing(by_error: bool) -> None:
    talk = Talk()
    talk.open()
    talk.enter("hi")
    serial = talk.got(InputInputEvent)[-1].serial
    refusal: Struct = InputRefuseRequest(serial, 17, "busy")
    about = talk.agent.bound["ArpInput"]
    if by_error:
        number = talk.agent.objects.waiting_inputs[serial].serial_no
        about, refusal = DISPLAY, DisplayErrorRequest(about, 17, "busy", number)
    talk.agent.send(about, refusal)
    (told,) = talk.exchange()
    assert isinstance(told, ErrorMessage)
    assert (told.payload.id, told.payload.code, talk.shown()) == ("hi", 17, {})
    talk.agent.send(DISPLAY, DisplayErrorRequest(DISPLAY, 4, "something else"))
    (other,) = talk.exchange()
    assert isinstance(other, ErrorMessage)
    assert other.payload.id is None


def test_agent_that_takes_no_input_is_told_apart() -> None:
    talk = Talk(("ArpCompositor", "ArpShell", "ArpSession"))
    talk.enter("early")
    refused = [one for one in talk.open() if isinstance(one, ErrorMessage)]
    talk.enter("late")
    refused += [one for one in talk.screen.echoes() if isinstance(one, ErrorMessage)]
    assert [one.payload.id for one in refused] == ["early", "late"]
    assert talk.screen.unacknowledged == {}


def test_answer_to_a_question_of_an_open_turn_stays_in_it() -> None:
    talk = Talk()
    talk.open()
    talk.enter("hi")
    talk.ack()
    talk.show(CONFIRM)
    talk.enter("yes", "sure")
    assert talk.ack()[-1] == InputAck(id="yes", session_id="", turn_id="d1")
    talk.show(text("a"), final=True)
    assert talk.shown() == {"d1": ["sure", "a"]}
    assert talk.screen.screen.turns["d1"].status == "completed"


def test_surface_without_a_role_shows_nothing_and_is_not_acknowledged() -> None:
    """Spec: O11, O14."""
    talk = Talk()
    talk.open()
    side = talk.agent.create_surface()
    talk.agent.send(side, SurfaceSetTitleRequest("Beside"))
    assert talk.show(text("a"), on=side) == []
    assert talk.got(SurfaceFrameAckEvent) == []
    talk.agent.get_toplevel(side)
    described, *_ = talk.exchange()
    assert isinstance(described, SurfaceMessage)
    assert described.payload.title == "Beside"
    assert len(talk.got(SurfaceFrameAckEvent)) == 1
    talk.agent.send(side, SurfaceSetTitleRequest("Aside"))
    talk.exchange()
    assert talk.screen.screen.info(str(side)).title == "Aside"
    tree = talk.screen.screen.surfaces[str(side)]
    assert [one.id for one in tree.output()] == ["a"]
    talk.agent.destroy(side)
    talk.exchange()
    assert str(side) not in talk.screen.screen.surfaces


def test_hidden_surface_that_is_destroyed_was_never_shown() -> None:
    talk = Talk()
    talk.open()
    side = talk.agent.create_surface("main")  # a name that is taken
    talk.agent.destroy(side)
    assert talk.exchange() == []


def test_popup_and_overlay_are_described() -> None:
    talk = Talk()
    talk.open()
    talk.enter("hi")
    talk.ack()
    popup, overlay = talk.agent.create_surface("p"), talk.agent.create_surface("o")
    talk.agent.get_popup(popup, talk.main, 1, "a")
    role = talk.agent.get_overlay(overlay, 1)
    talk.agent.send(role, OverlaySetAnchorRequest(talk.main, "top"))
    talk.agent.send(role, OverlaySetTimeoutRequest(900))
    talk.exchange()
    infos = talk.screen.screen.infos
    assert (infos["p"].info.role, infos["p"].info.component) == ("popup", "a")
    assert (infos["o"].info.parent, infos["o"].info.timeout_ms) == ("main", 900)
    talk.show(text("b"), on=popup, final=True)
    assert talk.screen.screen.turns["d1"].final


def test_title_of_the_first_surface_is_that_of_the_app() -> None:
    talk = Talk()
    talk.agent.create_session("s-17", {})
    talk.main = talk.agent.create_surface()
    talk.agent.send(talk.main, SurfaceSetTitleRequest("Offers"))
    talk.agent.get_toplevel(talk.main)
    talk.exchange()
    assert talk.screen.agent is not None
    assert talk.screen.agent.capabilities.title == "Offers"


def test_whole_screen_is_not_granted() -> None:
    talk = Talk()
    talk.open()
    talk.enter("hi")
    talk.agent.send(talk.role, ToplevelSetFullscreenRequest(1))
    talk.exchange()
    assert talk.got(ToplevelConfigureEvent)[-1].states == ["activated"]


def test_commit_that_does_not_fit_is_refused_and_nothing_of_it_shows() -> None:
    """Spec: O15."""
    talk = Talk()
    talk.open()
    assert talk.show(text("a"), Component("t", "table", {"headers": [], "rows": []})) == []
    assert [one.code for one in talk.got(DisplayErrorEvent)] == [10]
    assert (talk.got(SurfaceFrameAckEvent), talk.shown()) == ([], {})
    fallback = Component("t", "table", {"headers": [], "rows": []}, fallback=text("f"))
    talk.show(fallback)
    assert talk.screen.screen.output("d1")[0] == Component("t", "text", {"content": "x"})


def test_components_that_change_their_places_are_shown_again() -> None:
    talk = Talk()
    talk.open()
    talk.show(text("a"))
    talk.show(text("b"))
    talk.patch(Reorder("a", "b"))
    assert [one for names in talk.shown().values() for one in names] == ["b", "a"]


def test_next_connection_begins_again_and_sends_no_input_twice() -> None:
    talk = Talk()
    talk.open()
    talk.show(text("a"))
    side = talk.agent.create_surface("side")
    talk.agent.get_toplevel(side)
    talk.enter("lost")
    talk.show(text("b"), on=side)
    talk.connect()
    out = talk.open()
    cut_off = [one.payload for one in out if isinstance(one, ErrorMessage)]
    assert [(one.id, one.error) for one in cut_off] == [("lost", CUT_OFF), (None, CUT_OFF)]
    ready = next(one for one in out if isinstance(one, SessionReady))
    assert (ready.resume, ready.epoch) == ("replay", "draft")
    assert talk.shown() == {"d1": [], "d2": []}
    assert list(talk.screen.screen.surfaces) == ["main"]
    assert talk.got(InputInputEvent) == []
    talk.show(text("a"))
    assert talk.shown() == {"d1": [], "d2": [], "d3": ["a"]}


def test_state_is_shared_and_the_first_surface_may_go() -> None:
    talk = Talk()
    talk.open()
    talk.show(text("a"))
    talk.agent.send(talk.agent.bound["ArpSession"], SessionStateUpdateRequest({"step": 1}))
    talk.agent.destroy(talk.main)
    talk.exchange()
    assert talk.screen.screen.shared_state == {"step": 1}
    assert talk.shown() == {"d1": []}
    assert talk.screen.input("text", {"text": "x"}, input_id="x") == b""


def test_focus_begins_no_turn() -> None:
    talk = Talk()
    talk.open()
    message = Input(input_type="focus", data={}, id="f")
    assert talk.screen.input_with_files(message)
    talk.screen.unacknowledged["f"] = message
    serial = 1
    talk.events += talk.agent.receive(b"[]")
    talk.agent.objects.waiting_inputs[serial] = talk.screen._objects.objects.waiting_inputs[serial]
    talk.agent.send(talk.agent.bound["ArpInput"], InputAckRequest(serial))
    assert talk.exchange() == [InputAck(id="f", session_id="")]
