"""What the hub sends one renderer as requests, and its events as what the hub understands."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from arp.protocol.capabilities import agent_hello
from arp.protocol.codec import encode_json
from arp.protocol.components import Component
from arp.protocol.connection.agent_connection import AgentEvent, ConnectionFailure
from arp.protocol.errors import ErrorPayload, TransferDenied
from arp.protocol.limits import Limits, RendererLimits
from arp.protocol.messages import (
    AgentMessage,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    Input,
    InputAck,
    InputEcho,
    Patch,
    Ping,
    Render,
    RendererHello,
    Resume,
    SessionReady,
    StateMessage,
    SurfaceInfo,
    SurfaceMessage,
    TurnMessage,
)
from arp.protocol.objects.agent import SYNC_AFTER
from arp.protocol.objects.connection import RefusedMessage
from arp.protocol.objects.messages import (
    ConversationTurnRequest,
    DisplayErrorEvent,
    DisplayErrorRequest,
    InputAckRequest,
    OverlaySetAnchorRequest,
    OverlaySetTimeoutRequest,
    SessionStateUpdateRequest,
    SurfaceCommitRequest,
    SurfaceSetTitleRequest,
    SurfaceSurfaceAcquiredEvent,
    SurfaceTransferRequest,
)
from arp.protocol.objects.renderer import ObjectRendererConnection, Offer, offers
from arp.protocol.objects.wire import DISPLAY, ObjectMessage, read
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Update
from arp.session.tracking.window import RECENT_TURNS
from arp.view.objects import flat as object_flat
from arp.view.objects.dialect import MAX_KNOWN_SERIALS, MAX_WAITING_COMMITS, ObjectDialect

LIMITS = Limits(max_components_per_commit=4, max_patch_ops=4)


def text(component_id: str, content: str = "x") -> Component:
    return Component(component_id, "text", {"content": content})


class Talk:
    """A dialect, and a renderer at the other end."""

    def __init__(
        self,
        *,
        has_conversation: bool = True,
        features: tuple[str, ...] = ("patch-append", "multi-surface", "overlays"),
        limits: dict[str, Any] | None = None,
        resumed: tuple[str, int, Any] | None = None,
        keeps_content: bool | None = None,
        components: tuple[str, ...] = ("text", "group"),
        input_version: int = 2,
    ) -> None:
        about = agent_hello(Limits())
        self.dialect = ObjectDialect("json", Limits(), "proposed", about, "key")
        known = dict.fromkeys(components, 1)
        made = [
            Offer(one.interface, input_version) if one.interface == "ArpInput" else one
            for one in offers(known, features, limits, has_conversation=has_conversation)
        ]
        keeps = not has_conversation if keeps_content is None else keeps_content
        self.renderer = ObjectRendererConnection("json", LIMITS, made, keeps_content=keeps)
        self.displays = True
        self.refuses = False
        """Whether it may refuse requests."""
        self.got: list[Any] = []
        """Payloads of requests, in order."""
        self.events: list[AgentEvent] = []
        self.now_s = 0.0
        self.names: dict[str, int] = {}
        self._resumed = resumed
        self.dialect.start()
        self.exchange()

    def exchange(self) -> list[Any]:
        """Deliver everything; return the payloads of the requests that came."""
        before = len(self.got)
        for _ in range(6):
            for frame in self.dialect.data_to_send():
                for event in self.renderer.each(frame, self.now_s):
                    if self.refuses and isinstance(event, RefusedMessage):
                        continue
                    assert isinstance(event, ObjectMessage), event
                    self.got.append(event.payload)
                    self._answer(event)
            for frame in self.renderer.data_to_send():
                self.events += self.dialect.receive(frame, self.now_s)
        return self.got[before:]

    def _answer(self, event: ObjectMessage) -> None:
        payload: Any = event.payload
        if event.op == "create" and self._resumed is not None:
            self.renderer.resume(*self._resumed)
        elif event.op == "create_surface":
            self.names[payload.name] = payload.new_id
        elif event.op.startswith("get_") and event.op != "get_registry":
            self.renderer.configure(payload.surface_id, 80, 24)
        elif event.op == "commit" and self.displays:
            self.renderer.displayed(event.object_id)

    def show(self, *messages: AgentMessage) -> list[Any]:
        self.dialect.show([encode_json(one) for one in messages], self.now_s)
        return self.exchange()

    def open(self, resume: Any = "new", **more: Any) -> list[Any]:
        return self.show(ready(resume, **more))

    def content(self, surface: str = "main") -> list[str]:
        return [one.id for one in self.renderer.content(self.names[surface])]

    def texts(self, surface: str = "main") -> dict[str, str]:
        shown = self.renderer.content(self.names[surface])
        return {one.id: one.props.get("content", "") for one in shown}

    def use(self, name: str = "main", **more: Any) -> int:
        serial = self.renderer.input(self.names[name], "text", {"text": "x"}, self.now_s, **more)
        self.exchange()
        return serial


def ready(resume: Any = "new", **more: Any) -> SessionReady:
    return SessionReady(session_id="s", epoch="e", seq=2, resume=resume, **more)


def render(*components: Component, surface: str = "main", **more: Any) -> Render:
    turn_id = "t1" if surface == "main" else None
    return Render(
        session_id="s", turn_id=turn_id, surface=surface, components=list(components), **more
    )


def patch(*ops: PatchOp, surface: str = "main") -> Patch:
    turn_id = "t1" if surface == "main" else None
    return Patch(session_id="s", turn_id=turn_id, surface=surface, ops=list(ops))


def commit(seq: int | None = None, surface: str = "main", **more: Any) -> Commit:
    return Commit(session_id="s", seq=seq, turn_id="t1", surface=surface, **more)


def delta(content: str, **more: Any) -> Delta:
    payload = DeltaPayload(content, more.pop("target", None), more.pop("kind", None))
    return Delta(session_id="s", turn_id=more.pop("turn_id", "t1"), payload=payload, **more)


# -- the handshake ---------------------------------------------------------------------------------


def test_hello_says_what_the_globals_say() -> None:
    limits = {"max_table_rows": 7, "max_message_bytes": 4096, "max_commits_per_s": "no"}
    state = {"epoch": "e", "workflow": "w", "locale": "de", "time_zone": 7, "theme": "x" * 65}
    talk = Talk(features=("batch", "ping", "thinking"), limits=limits, resumed=("mine", 5, state))
    (hello,) = talk.events
    assert isinstance(hello, RendererHello)
    assert hello.capabilities.components == {"text": 1, "group": 1}
    assert set(hello.capabilities.features) == {"thinking", "input", "streaming", "resume"}
    assert hello.capabilities.limits == RendererLimits(None, 3584, 7)
    assert (hello.session_id, hello.resume) == ("mine", Resume("e", 5))
    assert (hello.workflow, hello.locale, hello.time_zone, hello.theme) == ("w", "de", None, None)


@pytest.mark.parametrize("resumed", [None, ("mine", 5, {"epoch": "e"}), ("mine", 5, None)])
def test_renderer_without_a_conversation_never_resumes(resumed: Any) -> None:
    talk = Talk(has_conversation=False, resumed=resumed)
    (hello,) = talk.events
    assert isinstance(hello, RendererHello)
    assert hello.resume is None
    assert hello.session_id == ("mine" if resumed else "proposed")


def test_requests_come_in_arrays_where_the_renderer_takes_them() -> None:
    talk = Talk(features=("batch",))
    talk.dialect.show([encode_json(ready())], 0.0)
    (frame,) = talk.dialect.data_to_send()
    assert len(json.loads(frame)) == 3


def test_renderer_that_offers_too_little_is_told_and_left() -> None:
    dialect = ObjectDialect("json", Limits(), "p", agent_hello(Limits()), "key")
    renderer = ObjectRendererConnection("json", LIMITS, [Offer("ArpShell")])
    dialect.start()
    events: list[AgentEvent] = []
    for _ in range(2):
        for frame in dialect.data_to_send():
            renderer.receive(frame)
        for frame in renderer.data_to_send():
            events += dialect.receive(frame, 0.0)
    assert [type(one) for one in events] == [ConnectionFailure]


def test_error_before_the_session_is_told_on_the_display() -> None:
    talk = Talk()
    (told,) = talk.show(ErrorMessage(payload=ErrorPayload("no", 14)))
    assert isinstance(told, DisplayErrorRequest)
    assert (told.code, told.message) == (14, "no")


# -- a conversation --------------------------------------------------------------------------------


def test_commits_go_to_their_surfaces_with_what_they_apply() -> None:
    """Spec: O12."""
    talk = Talk()
    talk.open(state={"a": 1})
    out = talk.show(
        render(text("a")),
        render(text("b"), surface="side"),
        commit(3, final=True),
        TurnMessage(session_id="s", turn_id="t1", status="completed"),
        StateMessage(session_id="s", seq=4, state={"b": 2}),
        delta("x", surface="side"),
        Ping(id="p"),
    )
    commits = [one for one in out if isinstance(one, SurfaceCommitRequest)]
    assert SurfaceCommitRequest(True, 3, "t1") in commits
    assert ConversationTurnRequest("completed", "t1") in out
    assert SessionStateUpdateRequest({"b": 2}, 4) in out
    assert talk.names.keys() == {"main", "side"}


def test_what_must_wait_waits_in_order_and_is_told_as_behind() -> None:
    """Spec: O13."""
    talk = Talk()
    talk.open()
    talk.displays = False
    for number in range(MAX_WAITING_COMMITS + 4):
        talk.show(render(text("a", str(number))), commit(number + 3))
    surface = talk.renderer.objects.surface(talk.names["main"])
    assert len(surface.pending) == 2
    assert talk.dialect.is_behind
    assert talk.dialect.waiting_bytes > 1000
    talk.displays = True
    talk.renderer.displayed(talk.names["main"])
    for _ in range(10):
        talk.exchange()
    assert not talk.dialect.is_behind
    assert talk.dialect.waiting_bytes == 0
    places = [one.session_seq for one in talk.got if isinstance(one, SurfaceCommitRequest)]
    assert [one for one in places if one] == list(range(3, MAX_WAITING_COMMITS + 7))


def test_large_commit_comes_in_several() -> None:
    """Spec: P3."""
    limits = {"max_components_per_commit": 4, "max_patch_ops": 4}
    talk = Talk(limits=limits, keeps_content=True)
    talk.open()
    many = [text(str(number)) for number in range(9)]
    ops: list[PatchOp] = [Update(str(n), "props.content", "new") for n in range(9)]
    out = talk.show(render(*many, replace=True), render(text("z")), patch(*ops), commit(3))
    for _ in range(6):
        out += talk.exchange()
    commits = [one for one in out if isinstance(one, SurfaceCommitRequest)]
    assert [one.session_seq for one in commits][-1] == 3
    assert len(commits) > 4
    assert talk.content() == [*(str(number) for number in range(9)), "z"]
    assert set(talk.texts().values()) == {"new", "x"}


def test_inputs_are_acknowledged_by_their_serials() -> None:
    talk = Talk()
    talk.open()
    serial = talk.use(input_id="mine", source="a")
    said = talk.events[-1]
    assert isinstance(said, Input)
    assert (said.id, said.surface, said.source_component) == ("mine", "main", "a")
    out = talk.show(InputAck(id="mine", turn_id="t1", serial=9), InputAck(id="other"))
    assert out == [InputAckRequest(serial, "t1")]
    serial = talk.use()
    said = talk.events[-1]
    assert isinstance(said, Input)
    assert said.id == f"key.{serial}"
    out = talk.show(
        ErrorMessage(payload=ErrorPayload("no", 11, None, said.id)),
        ErrorMessage(payload=ErrorPayload("no", 11, None, "other")),
        ErrorMessage(payload=ErrorPayload("no", 19)),
    )
    assert len(out) == 2
    assert out[0].serial == serial


def test_input_is_refused_as_the_version_of_the_renderer_has_it() -> None:
    """Version 1 of `ArpInput` has no `refuse`: an acknowledgement beside an error."""
    talk = Talk(input_version=1)
    talk.open()
    serial = talk.use(input_id="mine")
    out = talk.show(ErrorMessage(payload=ErrorPayload("no", 11, None, "mine")))
    assert [type(one) for one in out] == [DisplayErrorRequest, InputAckRequest]
    assert out[1] == InputAckRequest(serial)
    serial = talk.use(input_id="taken")
    assert talk.show(InputAck(id="taken")) == [InputAckRequest(serial)]


def test_ids_are_freed_while_surfaces_come_and_go() -> None:
    """The answer to a `sync` that is not of the handshake says nothing to the hub. Spec: O5."""
    talk = Talk()
    talk.open()
    before = list(talk.events)
    for number in range(SYNC_AFTER):
        name = f"s{number}"
        talk.show(SurfaceMessage(session_id="s", surface=name, payload=SurfaceInfo()))
        talk.show(SurfaceMessage(session_id="s", surface=name, seq=5, closed="agent"))
    assert len(talk.dialect.connection.objects.dead) < SYNC_AFTER
    assert [one for one in talk.events[len(before) :] if not isinstance(one, Input)] == []


def test_frame_that_was_read_before_means_the_same_and_nonsense_means_nothing() -> None:
    """Large frames are read in a thread. Spec: O8."""
    talk = Talk()
    talk.open()
    number = talk.dialect.connection._received_no
    focus = {"v": 1, "id": talk.dialect.connection.bound["ArpInput"], "op": "focus"}
    frame = [
        focus | {"seq": number + 1, "payload": {"surface_id": talk.names["main"]}},
        focus | {"seq": number + 2, "payload": {"surface_id": 77}},
        focus | {"seq": number + 2, "payload": {"surface_id": talk.names["main"]}},
    ]
    found = talk.dialect.receive([*read(json.dumps(frame).encode(), "json")], 0.0)
    assert [type(one) for one in found] == [Input, ConnectionFailure]


def test_what_the_user_does_with_surfaces_are_inputs() -> None:
    talk = Talk()
    talk.open()
    talk.show(render(text("b"), surface="side"), commit(3, surface="side"))
    side = talk.names["side"]
    talk.events.clear()
    talk.renderer.focus(side)
    talk.renderer.focus(None)
    talk.renderer.configure(side, 200_000, 10, ["activated"])
    talk.exchange()
    talk.renderer.close(side)
    talk.exchange()
    kinds = [(one.input_type, one.data, one.surface) for one in talk.events]  # type: ignore[union-attr]
    assert kinds == [
        ("focus", {}, "side"),
        ("unfocus", {}, "side"),
        ("resize", {"width": 100_000, "height": 10, "states": ["activated"]}, "side"),
        ("action", {"action": "arp.close"}, "side"),
    ]
    closed = SurfaceMessage(session_id="s", surface="side", seq=5, closed="user")
    talk.show(closed, closed)
    assert side not in talk.renderer.objects.entries
    talk.events.clear()
    talk.renderer.close(talk.names["main"])
    talk.exchange()
    assert [type(one) for one in talk.events] == [ConnectionFailure]


@pytest.mark.parametrize(("age_s", "role"), [(1.0, "popup"), (4.5, "toplevel")])
def test_popup_needs_an_input_of_this_renderer_just_now(age_s: float, role: str) -> None:
    """Spec: O20."""
    talk = Talk()
    talk.open()
    talk.use(input_id="a")
    talk.show(InputAck(id="a", serial=7))
    talk.now_s += age_s
    info = SurfaceInfo(role="popup", title="T", parent="main", component="row", serial=7)
    talk.show(SurfaceMessage(session_id="s", surface="p", payload=info))
    assert talk.renderer.objects.surface(talk.names["p"]).role == role
    again = SurfaceInfo(role="popup", title="New", parent="main", serial=7)
    out = talk.show(SurfaceMessage(session_id="s", surface="p", payload=again))
    assert SurfaceSetTitleRequest("New") in out


def test_popup_whose_input_became_too_old_on_the_way_is_a_window() -> None:
    """Spec: O8, O20."""
    talk = Talk()
    talk.open()
    talk.use(input_id="a")
    talk.show(InputAck(id="a", serial=7))
    info = SurfaceInfo(role="popup", title="T", parent="main", serial=7)
    opened = SurfaceMessage(session_id="s", surface="p", payload=info)
    talk.dialect.show([encode_json(opened)], talk.now_s)
    talk.now_s += 6
    talk.refuses = True
    talk.exchange()
    assert talk.renderer.objects.surface(talk.names["p"]).role == "toplevel"
    assert talk.dialect.connection.objects.surface(talk.names["p"]).role == "toplevel"


def test_surface_that_the_renderer_refuses_is_not_shown_until_the_next_snapshot() -> None:
    """Spec: O8, O18."""
    talk = Talk(keeps_content=True)
    talk.open()
    talk.renderer.objects.limits = msgspec.structs.replace(LIMITS, max_surfaces=1)
    talk.refuses = True
    opened = SurfaceMessage(session_id="s", surface="side", payload=SurfaceInfo())
    talk.show(opened, render(text("a"), surface="side"), commit(3, surface="side"))
    assert talk.show(render(text("b"), surface="side"), commit(4, surface="side")) == []
    talk.refuses = False
    talk.show(render(text("c")), commit(5))
    assert talk.content() == ["c"]
    talk.renderer.objects.limits = LIMITS
    talk.show(ready(), opened, render(text("a"), surface="side"), commit(5, surface="side"))
    assert talk.content("side") == ["a"]


def test_renderer_that_refuses_the_surface_of_the_conversation_is_left() -> None:
    talk = Talk()
    talk.renderer.objects.limits = msgspec.structs.replace(LIMITS, max_surfaces=0)
    talk.refuses = True
    talk.open()
    assert talk.events[-1] == ConnectionFailure(
        1002, "the renderer refused the surface of the conversation"
    )


def test_overlay_has_its_anchor_and_its_time() -> None:
    talk = Talk()
    talk.open()
    for number in range(MAX_KNOWN_SERIALS + 2):
        talk.use(input_id=f"a{number}")
        talk.show(InputAck(id=f"a{number}", serial=number))
    newest = MAX_KNOWN_SERIALS + 1
    info = SurfaceInfo(role="overlay", parent="main", timeout_ms=900, serial=newest)
    out = talk.show(SurfaceMessage(session_id="s", surface="o", payload=info))
    assert OverlaySetAnchorRequest(talk.names["main"], "center") in out
    assert OverlaySetTimeoutRequest(900) in out
    gone = SurfaceInfo(role="overlay", parent="gone", serial=newest)
    talk.show(SurfaceMessage(session_id="s", surface="q", payload=gone))
    assert talk.renderer.objects.surface(talk.names["q"]).role == "overlay"
    old = SurfaceInfo(role="overlay", serial=0)
    talk.show(SurfaceMessage(session_id="s", surface="r", payload=old))
    assert talk.renderer.objects.surface(talk.names["r"]).role == "toplevel"


def test_what_this_renderer_cannot_have_is_told_and_the_rest_goes_on() -> None:
    talk = Talk(limits={"max_surfaces": 1})
    talk.open()
    out = talk.show(delta("x", surface="side"), delta("y"))
    told = [one for one in out if isinstance(one, DisplayErrorRequest)]
    assert [one.code for one in told] == [4]
    assert out[-1].delta == "y"


# -- surfaces that go to another agent, or come from one -------------------------------------------


class Owner:
    """Takes every surface but those with a title that says otherwise."""

    def __init__(self) -> None:
        self.gone: list[str] = []
        self.refused: list[tuple[str, str]] = []
        self.taken: list[tuple[str | None, list[str]]] = []
        self.snapshots = 0

    def acquired(self, surface_id: int, given: SurfaceSurfaceAcquiredEvent) -> str | None:
        if given.title == "no":
            raise TransferDenied("full")
        if given.transfer_id == "again":
            return None
        self.taken.append((given.title, [one.id for one in given.components or []]))
        return f"acquired-{len(self.taken)}"

    def transferred(self, name: str) -> None:
        self.gone.append(name)

    def denied(self, name: str, error: TransferDenied) -> None:
        self.refused.append((name, error.message))

    def unanswered(self, name: str) -> None:
        self.refused.append((name, "?"))

    def desynchronised(self) -> None:
        self.snapshots += 1


def owned(**more: Any) -> tuple[Talk, Owner]:
    """A dialect with an owner, and a surface `side` that shows."""
    talk, owner = Talk(**more), Owner()
    talk.dialect.owner = owner
    talk.open()
    shown = SurfaceMessage(session_id="s", surface="side", payload=SurfaceInfo(title="Beside"))
    talk.show(shown, render(text("b"), surface="side"), commit(3, surface="side"))
    return talk, owner


@pytest.mark.parametrize("has_conversation", [True, False])
def test_renderer_is_asked_behind_everything_that_the_surface_shows(has_conversation: bool) -> None:
    """What waits for room is sent first. Spec: O23."""
    talk, owner = owned(has_conversation=has_conversation)
    talk.displays = False
    for number in range(5):
        talk.show(render(text("b", str(number)), surface="side"), commit(4, surface="side"))
    talk.dialect.hand_over("side", SurfaceTransferRequest("other", True))
    assert not any(isinstance(one, SurfaceTransferRequest) for one in talk.exchange())
    talk.displays = True
    talk.renderer.displayed(talk.names["side"])
    talk.exchange()
    assert talk.got[-1] == SurfaceTransferRequest("other", True)
    with pytest.raises(TransferDenied, match="is being transferred already"):
        talk.dialect.hand_over("side", SurfaceTransferRequest("other", True))
    talk.renderer.hand_over(talk.names["side"])
    talk.exchange()
    assert owner.gone == ["side"]


@pytest.mark.parametrize("has_conversation", [True, False])
def test_nothing_more_of_a_surface_that_is_gone_is_sent(has_conversation: bool) -> None:
    """Until the session says that it is closed; then its name may be used again."""
    talk, owner = owned(has_conversation=has_conversation)
    talk.show(render(text("pending"), surface="side"))
    talk.dialect.hand_over("side", SurfaceTransferRequest("other", False))
    talk.exchange()
    talk.renderer.hand_over(talk.names.pop("side"))
    talk.exchange()
    talk.show(commit(4))
    assert "side" not in talk.names
    info = SurfaceInfo(title="Late")
    late: list[AgentMessage] = [
        render(text("late"), surface="side"),
        commit(5, surface="side"),
        delta("x", surface="side"),
        SurfaceMessage(session_id="s", surface="side", payload=info),
    ]
    talk.show(*late)
    assert "side" not in talk.names
    closed = SurfaceMessage(session_id="s", surface="side", seq=6, closed="transferred")
    talk.show(closed, SurfaceMessage(session_id="s", surface="side", payload=info))
    talk.show(render(text("new"), surface="side"), commit(7, surface="side"))
    assert talk.renderer.objects.surface(talk.names["side"]).title == "Late"
    assert (owner.gone, owner.refused) == (["side"], [])


def test_surface_that_is_not_handed_over_is_told_with_its_name() -> None:
    """Refused by the renderer, closed meanwhile, not there, or not to be handed over at all."""
    talk, owner = owned()
    for name in ("main", "nothing"):
        with pytest.raises(TransferDenied, match="does not show"):
            talk.dialect.hand_over(name, SurfaceTransferRequest("other", True))
    other = DisplayErrorEvent(0, 11, "of something else", 1)
    talk.dialect.hand_over("side", SurfaceTransferRequest("other", True))
    talk.exchange()
    talk.renderer.send(DISPLAY, other)
    talk.exchange()
    assert owner.refused == []
    number = talk.renderer.objects.surface(talk.names["side"]).transfer
    refusal = DisplayErrorEvent(talk.names["side"], 9, "not handed over", number)
    talk.renderer.send(DISPLAY, refusal)
    talk.exchange()
    assert owner.refused == [("side", "not handed over")]
    talk.dialect.hand_over("side", SurfaceTransferRequest("proposed", True))
    assert owner.refused[1:] == [("side", "to_session: the surface is in that session already")]
    talk.dialect.hand_over("side", SurfaceTransferRequest("other", True))
    talk.show(SurfaceMessage(session_id="s", surface="side", seq=6, closed="user"))
    assert owner.refused[2:] == [("side", "surface 'side' is closed")]
    assert owner.gone == []


def test_surface_that_is_closed_before_the_renderer_was_asked_is_told_so() -> None:
    talk, owner = owned()
    talk.displays = False
    for number in range(5):
        talk.show(render(text("b", str(number)), surface="side"), commit(4, surface="side"))
    talk.dialect.hand_over("side", SurfaceTransferRequest("other", True))
    talk.show(SurfaceMessage(session_id="s", surface="side", seq=6, closed="user"))
    talk.displays = True
    talk.renderer.displayed(talk.names["side"])
    talk.exchange()
    assert owner.refused == [("side", "surface 'side' is closed")]


@pytest.mark.parametrize("has_conversation", [True, False])
def test_acquired_surface_gets_a_role_and_the_content_of_the_session(
    has_conversation: bool,
) -> None:
    """The role comes with what is durable, not before. Spec: O26, O28."""
    talk, owner = owned(has_conversation=has_conversation, keeps_content=True)
    made = talk.renderer.acquire([text("t9/1")], "Given")
    talk.exchange()
    assert owner.taken == [("Given", ["t9/1"])]
    talk.show(render(text("other")), commit(4))
    assert talk.renderer.objects.surface(made).role == "none"
    talk.names["acquired-1"] = made
    said = SurfaceMessage(
        session_id="s", surface="acquired-1", payload=SurfaceInfo(title="Given"), seq=5
    )
    shown = render(text("t9-1"), surface="acquired-1")
    talk.show(said, shown, commit(6, surface="acquired-1"))
    assert talk.renderer.objects.surface(made).role == "toplevel"
    assert talk.content("acquired-1") == ["t9-1"]
    talk.dialect.accept(made)
    assert talk.exchange() == []
    talk.use("acquired-1")
    said_there = [one for one in talk.events if isinstance(one, Input) and one.data.get("text")]
    assert [one.surface for one in said_there] == ["acquired-1"]


def test_acquired_surface_is_accepted_when_its_owner_says_that_it_is_durable() -> None:
    """Also where the session shows nothing of it; one that is closed by then is not. Spec: O28."""
    talk, _ = owned(has_conversation=False)
    made, closed = talk.renderer.acquire(None), talk.renderer.acquire(None)
    talk.exchange()
    talk.dialect.accept(made)
    talk.exchange()
    assert talk.renderer.objects.surface(made).role == "toplevel"
    talk.renderer.close(closed)
    talk.exchange()
    talk.dialect.accept(closed)
    assert talk.exchange() == []
    assert [one.data for one in talk.events if isinstance(one, Input)][-1] == {
        "action": "arp.close"
    }


def test_surface_that_was_taken_before_is_accepted_and_shows_no_second_time() -> None:
    """Spec: O28."""
    talk, owner = owned()
    made = talk.renderer.acquire([text("a")], "Given", "again")
    talk.exchange()
    talk.dialect.accept(made)
    requests = talk.exchange()
    assert [type(one).__name__ for one in requests] == [
        "ShellGetToplevelRequest",
        "SurfaceDestroyRequest",
    ]
    assert made not in talk.renderer.objects.surfaces
    assert owner.taken == []


def test_renderer_that_cannot_say_where_a_surface_is_has_not_denied_it() -> None:
    """Spec: O27."""
    talk, owner = owned()
    talk.dialect.hand_over("side", SurfaceTransferRequest("other", True))
    talk.exchange()
    number = talk.renderer.objects.surface(talk.names["side"]).transfer
    talk.renderer.send(DISPLAY, DisplayErrorEvent(talk.names["side"], 17, "no answer", number))
    talk.exchange()
    assert owner.refused == [("side", "?")]
    again = SurfaceTransferRequest("other", True)
    talk.dialect.hand_over("side", again)
    talk.exchange()
    assert talk.got[-1] == again


def test_acquired_surface_that_is_not_taken_ends_with_the_error() -> None:
    """So is one that comes before there is a session. Spec: O8, O26."""
    talk, _ = owned()
    made = talk.renderer.acquire([text("a")], "no")
    (told,) = talk.exchange()
    assert (told.object_id, told.code, told.message) == (made, 9, "full")
    for end in (talk.renderer, talk.dialect.connection):
        assert made not in end.objects.surfaces
    early = Talk()
    early.dialect.is_open = False
    made = early.renderer.acquire(None)
    (told,) = early.exchange()
    assert (told.code, told.message) == (9, "there is no session yet")
    early.dialect.is_open = True
    early.renderer.acquire(None)
    (told,) = early.exchange()
    assert (told.code, told.message) == (9, "there is no session yet")


# -- components alone ------------------------------------------------------------------------------


def flat(**more: Any) -> Talk:
    talk = Talk(
        has_conversation=False, limits={"max_components_per_commit": 4, "max_patch_ops": 4}, **more
    )
    talk.open()
    return talk


def echo(said: str, turn_id: str = "t1") -> InputEcho:
    return InputEcho(session_id="s", turn_id=turn_id, input_type="text", data={"text": said}, seq=3)


def test_text_grows_by_appending_and_inputs_and_errors_are_texts() -> None:
    talk = flat()
    talk.show(echo("Hi"), delta("One "), delta("thought", kind="thinking"))
    talk.show(delta("two."), delta(""), delta("!", target="t1/1"), delta("x", target="no"))
    failed = ErrorMessage(payload=ErrorPayload("broken", 18), session_id="s", turn_id="t1", seq=6)
    talk.show(failed, commit(7, final=True))
    assert talk.texts() == {"t1/input": "> Hi", "t1/1": "One two.!", "t1/error/1": "Error: broken"}
    finals = [one for one in talk.got if isinstance(one, SurfaceCommitRequest) and one.final]
    assert [one.session_seq for one in finals] == [7]


def test_components_are_put_where_the_session_has_them() -> None:
    talk = flat()
    talk.show(render(text("a"), text("b")), commit(3))
    talk.show(delta("second", turn_id="t2"), echo("late", "t2"))
    talk.show(patch(Insert(text("first"), None), Insert(text("mid"), "a")), commit(4))
    assert talk.content() == ["first", "a", "mid", "b", "t2/input", "t2/1"]
    talk.show(patch(Reorder("b", "first"), Remove("mid")), commit(5))
    assert talk.content() == ["first", "b", "a", "t2/input", "t2/1"]
    group = Component("g", "group", {"children": []})
    talk.show(render(group), commit(6))
    talk.show(patch(Insert(text("in"), None, "g"), Append("a", "props.content", "y")), commit(7))
    assert talk.content() == ["first", "b", "a", "g", "t2/input", "t2/1"]
    assert talk.texts()["a"] == "xy"
    talk.show(patch(Remove("in")), render(text("a", "z"), replace=True), commit(8))
    assert talk.content()[0] == "a"


def played(talk: Talk, numbers: range) -> None:
    """A turn each: what the user says, a text, a component and an error."""
    for number in numbers:
        turn_id, place = f"t{number}", 10 * number
        said = InputEcho(
            session_id="s",
            turn_id=turn_id,
            input_type="text",
            data={"text": turn_id},
            seq=place,
        )
        shown = Render(session_id="s", turn_id=turn_id, components=[text(f"c{number}")])
        failed = ErrorMessage(
            payload=ErrorPayload("broken", 18), session_id="s", turn_id=turn_id, seq=place + 2
        )
        end = Commit(session_id="s", turn_id=turn_id, seq=place + 3, final=True)
        talk.show(said, delta("said", turn_id=turn_id, seq=place + 1), shown, failed, end)


def kept(talk: Talk) -> tuple[int, int, int]:
    """How many turns, components and shown roots are kept of the conversation."""
    flat_ = talk.dialect._flat
    assert flat_ is not None
    return len(flat_._screen.turns), len(flat_._screen.main.nodes), len(flat_._shown["main"].roots)


def all_of(numbers: range) -> list[str]:
    return [root for n in numbers for root in (f"t{n}/input", f"t{n}/1", f"c{n}", f"t{n}/error/1")]


def test_turns_that_are_over_and_written_leave_the_memory_and_still_show() -> None:
    """Three hundred turns cost what the newest fifty do; the renderer has all of them."""
    talk = flat()
    played(talk, range(1, 101))
    hundred = kept(talk)
    assert hundred == (RECENT_TURNS, 2 * RECENT_TURNS, 4 * RECENT_TURNS)
    played(talk, range(101, 301))
    assert kept(talk) == hundred
    assert talk.content() == all_of(range(1, 301))
    assert len(talk.dialect._flat._begins_behind) == 1  # type: ignore[union-attr]


def test_turns_that_a_renderer_has_not_displayed_stay_until_it_has() -> None:
    talk = flat()
    talk.displays = False
    played(talk, range(1, 80))
    assert kept(talk)[0] == 77, "all but the two whose commits are under way"
    talk.displays = True
    talk.renderer.displayed(talk.names["main"])
    for _ in range(60):
        talk.exchange()
    played(talk, range(80, 82))
    assert kept(talk)[0] == RECENT_TURNS
    assert talk.content() == all_of(range(1, 82))


def test_what_comes_first_in_the_oldest_turn_that_is_left_stands_behind_those_that_are_not() -> (
    None
):
    """A turn with an open question stays, and those between it and the newest leave."""
    talk = flat(components=("text", "confirm"))
    asked = Component("q", "confirm", {"title": "?", "state": "open"})
    shows = Render(session_id="s", turn_id="t0", components=[text("z"), asked])
    talk.show(shows, Commit(session_id="s", turn_id="t0", seq=4, final=True))
    played(talk, range(1, 61))
    assert kept(talk)[0] == RECENT_TURNS + 1
    first = Patch(session_id="s", turn_id="t11", ops=[Insert(text("first"), "t11/1")])
    moved = Patch(session_id="s", turn_id="t11", ops=[Insert(text("new"), None)])
    talk.show(first, moved, Commit(session_id="s", turn_id="t11", seq=700))
    shown = talk.content()
    assert shown[:3] == ["z", "q", "t1/input"]
    at = shown.index("t11/input")
    assert shown[at - 1] == "t10/error/1"
    assert shown[at : at + 4] == ["t11/input", "new", "t11/1", "first"]
    answer = patch(Update("q", "props.state", "answered"), Insert(text("behind"), "q"))
    talk.show(answer, commit(701))
    assert talk.content()[:4] == ["z", "q", "behind", "t1/input"]


def test_turns_that_left_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_flat, "REMEMBERED_IDS", 3)
    talk = flat()
    played(talk, range(1, RECENT_TURNS + 7))
    assert talk.dialect._flat is not None
    assert [*talk.dialect._flat._left] == ["t4", "t5", "t6"]


def test_output_of_a_turn_of_which_nothing_else_is_known_shows() -> None:
    talk = flat()
    shown = Render(session_id="s", turn_id="t5", components=[text("a"), text("b")])
    talk.show(shown, Commit(session_id="s", seq=3))
    talk.show(patch(Insert(text("mid"), "a"), Reorder("b", None), Remove("b")), commit(4))
    assert talk.content() == ["a", "mid"]


def test_component_of_a_turn_that_left_takes_its_old_place_when_it_comes_again() -> None:
    talk = flat()
    played(talk, range(1, 61))
    again = Render(session_id="s", turn_id="t1", components=[text("c1", "again")])
    talk.show(again, Commit(session_id="s", turn_id="t1", seq=700))
    assert talk.content() == all_of(range(1, 61))
    assert talk.texts()["c1"] == "again"


def test_surface_that_is_emptied_loses_also_what_left_the_memory() -> None:
    talk = flat()
    played(talk, range(1, 61))
    talk.show(render(text("only"), replace=True), commit(700))
    for _ in range(60):
        talk.exchange()
    shown = talk.content()
    assert [one for one in shown if one.startswith("c")] == []
    assert "t1/input" not in shown
    assert shown[:2] == ["t11/input", "t11/error/1"]
    assert "only" in shown


def test_surface_that_is_opened_again_is_written_whole() -> None:
    """Nothing is taken to be there that a closed surface of the same name showed."""
    talk = flat()
    for seq in (3, 6):
        talk.show(render(text("a"), text("b"), surface="side"), commit(seq, surface="side"))
        assert talk.content("side") == ["a", "b"]
        talk.show(SurfaceMessage(session_id="s", surface="side", seq=seq + 1, closed="agent"))
    assert "side" not in talk.dialect._flat._shown  # type: ignore[union-attr]


def test_several_that_are_moved_at_once_stand_as_in_the_session() -> None:
    """One comes behind another that is moved too."""
    talk = flat()
    talk.show(render(*(text(name) for name in "abcd")), commit(3))
    talk.show(patch(Reorder("d", "a"), Reorder("c", None), Reorder("d", "c")), commit(4))
    assert talk.content() == ["c", "d", "a", "b"]


def test_new_component_after_a_moved_one_is_inserted_where_it_belongs() -> None:
    """The moved one is still in its old position when the new one is inserted."""
    talk = flat()
    talk.show(render(text("a"), text("b")), commit(3))
    talk.show(patch(Reorder("b", None), Insert(text("n"), "b")), commit(4))
    assert talk.content() == ["b", "n", "a"]


def test_reorder_takes_effect_with_its_commit() -> None:
    """Even if something else is written between them."""
    talk = flat()
    talk.show(render(text("a"), text("b")), commit(3))
    talk.show(patch(Reorder("b", None)))
    talk.show(delta("text"))
    assert talk.content() == ["a", "b", "t1/1"]
    talk.show(commit(4))
    assert talk.content() == ["b", "a", "t1/1"]


def test_old_root_is_removed_when_its_id_becomes_a_child_of_a_new_root() -> None:
    """An id exists once on a surface at any moment (protocol.md 3, "ids are unique")."""
    talk = flat()
    talk.show(render(text("a"), text("b")), commit(3))
    new = Component("g", "group", {"children": [child("a")]})
    talk.show(patch(Remove("a")), render(new), commit(4))
    assert talk.content() == ["b", "g"]


def test_component_that_comes_back_somewhere_else_is_moved() -> None:
    """Removed and put elsewhere while the renderer displayed something else: merged to a move."""
    talk = flat()
    talk.show(render(text("a"), text("b"), text("c")), commit(3))
    talk.displays = False
    for number in range(4):
        talk.show(render(text("b", str(number))), commit(4 + number))
    talk.show(patch(Remove("a")), commit(9))
    talk.show(patch(Insert(text("a", "new"), "b")), commit(10))
    talk.displays = True
    talk.renderer.displayed(talk.names["main"])
    talk.exchange()
    assert talk.content() == ["b", "a", "c"]
    assert talk.texts()["a"] == "new"


def test_id_that_moves_from_one_root_to_another_stands_once_at_any_moment() -> None:
    """Both roots are removed first, in as many commits as it takes, and then shown again."""
    talk = flat()
    roots = [Component(f"g{n}", "group", {"children": [child(f"x{n}")]}) for n in range(6)]
    for number, root in enumerate(roots):
        talk.show(render(root), commit(3 + number))
    swapped = [Component(f"g{n}", "group", {"children": [child(f"x{n - 1}")]}) for n in range(1, 6)]
    empty: list[PatchOp] = [Remove(f"x{n}") for n in range(6)]
    talk.show(patch(*empty), render(*swapped), render(text("x5")), commit(20))
    for _ in range(9):
        talk.exchange()
    assert talk.content() == ["g0", "g1", "g2", "g3", "g4", "g5", "x5"]
    shown = talk.renderer.content(talk.names["main"])
    assert [[one["id"] for one in root.props.get("children", [])] for root in shown] == [
        [],
        ["x0"],
        ["x1"],
        ["x2"],
        ["x3"],
        ["x4"],
        [],
    ]


def child(component_id: str) -> dict[str, Any]:
    return {"id": component_id, "type": "text", "props": {"content": "x"}}


def test_change_of_what_is_not_known_asks_for_one_snapshot() -> None:
    talk = flat()
    owner = talk.dialect.owner = Owner()
    talk.show(render(text("a")), commit(3))
    for seq in (4, 5):
        talk.show(patch(Remove("unknown")), commit(seq))
    assert owner.snapshots == 1
    talk.show(ready("snapshot"), render(text("b")), commit(6))
    assert talk.content() == ["b"]
    talk.show(patch(Remove("unknown")), commit(7))
    assert owner.snapshots == 2


def test_what_a_snapshot_shows_counts_as_new() -> None:
    """The session knows when it changed last, and may change it for as long again."""
    talk = flat()
    old = Render(session_id="s", turn_id="t1", components=[text("old")])
    talk.show(ready("snapshot"), echo("x"), old, Commit(session_id="s", turn_id="t1", seq=500))
    played(talk, range(51, 51 + RECENT_TURNS - 1))
    talk.show(patch(Update("old", "props.content", "changed")), commit(2000))
    assert talk.texts()["old"] == "changed"


def test_surface_beside_main_is_written_too() -> None:
    talk = flat()
    talk.show(render(text("a"), text("b"), surface="side"), commit(3, surface="side"))
    talk.show(patch(Insert(text("c"), "a"), Reorder("b", None), surface="side"), commit(4))
    assert talk.content("side") == ["b", "a", "c"]
    talk.show(SurfaceMessage(session_id="s", surface="side", seq=5, closed="agent"))
    assert talk.renderer.objects.surfaces.keys() == {talk.names["main"]}


def test_snapshot_shows_at_its_end_and_replaces_what_was_there() -> None:
    """Spec: S1."""
    talk = flat()
    talk.show(render(text("old")), commit(3))
    talk.show(ready("snapshot"), render(text("new")), commit())
    assert talk.content() == ["old"]
    talk.show(commit(9))
    assert talk.content() == ["new"]


def test_much_at_once_comes_in_several_commits_and_what_never_fits_is_left_out() -> None:
    talk = flat()
    many = [text(str(number)) for number in range(11)]
    child = {"id": "c", "type": "text", "props": {"content": ""}}
    large = Component("large", "group", {"children": [{**child, "id": f"c{n}"} for n in range(9)]})
    talk.show(render(*many, large), commit(3, final=True))
    for _ in range(5):
        talk.exchange()
    assert talk.content() == [str(number) for number in range(11)]
    finals = [one for one in talk.got if isinstance(one, SurfaceCommitRequest) and one.final]
    assert len(finals) == 1


def test_renderer_without_appending_gets_the_whole_text() -> None:
    talk = flat(features=())
    talk.show(delta("One "))
    talk.show(delta("two."))
    assert talk.texts() == {"t1/1": "One two."}


def test_commits_that_wait_are_merged_into_one() -> None:
    """Spec: O13."""
    talk = flat()
    talk.displays = False
    for number in range(20):
        talk.show(delta(f"{number} "), render(text("n", str(number))), commit(number + 3))
    assert len(talk.renderer.objects.surface(talk.names["main"]).pending) == 2
    before = len(talk.got)
    talk.displays = True
    talk.renderer.displayed(talk.names["main"])
    talk.exchange()
    assert talk.texts()["n"] == "19"
    merged = [one for one in talk.got[before:] if isinstance(one, SurfaceCommitRequest)]
    assert len(merged) < 4


def test_refused_patch_of_the_session_changes_nothing_here() -> None:
    talk = flat()
    talk.show(render(text("a")), commit(3))
    talk.show(patch(Remove("nothing")), commit(4))
    assert talk.content() == ["a"]


def test_surface_that_is_described_again_with_the_title_that_it_has_is_sent_none() -> None:
    talk, _ = owned()
    same = SurfaceInfo(title="Beside", fullscreen=True)
    talk.show(SurfaceMessage(session_id="s", surface="side", payload=same, seq=4))
    assert not any(isinstance(one, SurfaceSetTitleRequest) for one in talk.exchange())
    other = SurfaceInfo(title="Other")
    talk.show(SurfaceMessage(session_id="s", surface="side", payload=other, seq=5))
    assert talk.renderer.objects.surface(talk.names["side"]).title == "Other"
