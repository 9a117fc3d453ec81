"""Both ends of the object dialect, sentence by sentence (docs/protocol.md 8.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from arp.protocol.components import Component
from arp.protocol.connection.agent_connection import ConnectionFailure
from arp.protocol.errors import (
    ArpError,
    InvalidMessage,
    InvalidMethod,
    ResourceLimit,
    SurfaceDestroyed,
    UnknownObject,
)
from arp.protocol.json_value import MAX_VALUES
from arp.protocol.limits import Limits
from arp.protocol.objects.agent import SYNC_AFTER, ObjectAgentConnection
from arp.protocol.objects.connection import ObjectConnection, RefusedMessage
from arp.protocol.objects.messages import (
    CallbackDoneEvent,
    DisplayErrorEvent,
    DisplayErrorRequest,
    InputAckRequest,
    InputFocusEvent,
    InputRefuseRequest,
    OverlaySetAnchorRequest,
    SessionStateUpdateRequest,
    SurfaceCommitRequest,
    SurfaceConfigureEvent,
    SurfaceFrameAckEvent,
    SurfacePatchRequest,
    SurfaceRenderRequest,
    SurfaceSetTitleRequest,
    SurfaceTransferRequest,
    ToplevelCloseEvent,
    ToplevelSetFullscreenRequest,
    ToplevelSetTitleRequest,
    ToplevelUnsetFullscreenRequest,
)
from arp.protocol.objects.model import (
    MAX_GLOBALS,
    MAX_OBJECTS,
    MAX_WAITING_INPUTS,
    component_count,
)
from arp.protocol.objects.renderer import ObjectRendererConnection, Offer, offers
from arp.protocol.objects.wire import DISPLAY, ObjectMessage, read
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Replace, Update

LIMITS = Limits(max_surfaces=4, max_components_per_commit=3, max_patch_ops=3)


class Pair:
    """An agent and a renderer with everything bound, and nothing under way."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.agent = ObjectAgentConnection("json", limits)
        self.renderer = ObjectRendererConnection(
            "json", limits, offers({"text": 1, "table": 1, "group": 1}, ["batch"])
        )
        self.agent.get_registry()
        self.exchange()
        for name in ("ArpCompositor", "ArpShell", "ArpInput", "ArpSession"):
            self.agent.bind(name)
        self.agent.create_session("s1", {})
        self.exchange()

    def exchange(self, now_s: float = 0.0) -> tuple[list[Any], list[Any]]:
        """Deliver everything; return what the renderer and the agent got."""
        ends: list[tuple[ObjectConnection, ObjectConnection, list[Any]]]
        requests: list[Any] = []
        events: list[Any] = []
        ends = [(self.agent, self.renderer, requests), (self.renderer, self.agent, events)]
        for _ in range(3):
            for source, target, got in ends:
                for frame in source.data_to_send():
                    got += target.receive(frame, now_s)
        return requests, events

    def surface(self) -> int:
        """A surface that shows."""
        made = self.agent.create_surface()
        self.agent.get_toplevel(made)
        self.exchange()
        self.renderer.configure(made, 80, 24)
        self.exchange()
        self.show(made, "a")
        return made

    def show(self, surface: int, *names: str) -> None:
        self.agent.send(surface, SurfaceRenderRequest([text(name) for name in names]))
        self.agent.send(surface, SurfaceCommitRequest())
        self.exchange()
        self.renderer.displayed(surface)
        self.exchange()

    def raw(
        self, to: ObjectConnection, object_id: int, op: str, payload: Any = None, **more: Any
    ) -> Any:
        """Send one message that no honest end sends; return the one event."""
        value = {"v": 1, "id": object_id, "op": op, "seq": to._received_no + 1, "payload": {}}
        value |= {"payload": payload if payload is not None else {}} | more
        other = self.agent if to is self.renderer else self.renderer
        other._sent_no = max(other._sent_no, value["seq"] if isinstance(value["seq"], int) else 0)
        (event,) = to.receive(json.dumps(value))
        return event


def text(component_id: str, content: str = "x") -> Component:
    return Component(component_id, "text", {"content": content})


def code(event: Any) -> int:
    assert isinstance(event, RefusedMessage), event
    return int(event.error.code)


def told(end: ObjectConnection) -> dict[str, Any]:
    """The payload of the error that an end sends."""
    (frame,) = end.data_to_send()
    message = json.loads(frame)
    assert (message["id"], message["op"]) == (DISPLAY, "error")
    return dict(message["payload"])


# -- messages and ids ------------------------------------------------------------------------------


@pytest.mark.parametrize("seq", [0, 1])
def test_number_that_does_not_rise_ends_the_connection(seq: int) -> None:
    """Spec: O1."""
    pair = Pair()
    value = {"v": 1, "id": 0, "op": "sync", "seq": seq or 1, "payload": {"callback_id": 90}}
    (event,) = pair.renderer.receive(json.dumps(value))
    assert event.code == 1002  # type: ignore[union-attr]
    assert told(pair.renderer)["code"] == 11
    assert pair.renderer.life == "failed"
    assert pair.renderer.receive(b"{}") == []


def test_numbers_of_messages_rise_by_one_here_and_may_jump_there() -> None:
    """Spec: O1."""
    pair = Pair()
    numbers = [pair.agent.send(pair.agent.bound["ArpSession"], update(n)) for n in range(3)]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    event = pair.raw(pair.renderer, DISPLAY, "sync", {"callback_id": 90}, seq=5000)
    assert isinstance(event, ObjectMessage)


def update(number: int) -> SessionStateUpdateRequest:
    return SessionStateUpdateRequest({"n": number})


@pytest.mark.parametrize("new_id", [0, 1, 0x80000000])
def test_new_id_is_free_and_in_the_range_of_its_maker(new_id: int) -> None:
    """Spec: O2."""
    pair = Pair()
    event = pair.raw(pair.renderer, DISPLAY, "sync", {"callback_id": new_id})
    assert code(event) == 1


def test_renderer_makes_ids_in_its_own_range() -> None:
    """Spec: O2."""
    pair = Pair()
    assert pair.renderer.acquire(None) == 0x80000000
    assert pair.renderer.acquire([text("a")], "Title") == 0x80000001
    pair.exchange()
    assert pair.agent.objects.surface(0x80000001).life == "shown"
    event = pair.raw(pair.agent, 70, "surface_acquired")
    assert code(event) == 1


def test_message_on_nothing_is_refused() -> None:
    """Spec: O3."""
    pair = Pair()
    assert code(pair.raw(pair.renderer, 77, "commit")) == 1
    assert code(pair.raw(pair.agent, 77, "closed")) == 1
    with pytest.raises(UnknownObject):
        pair.agent.send(77, SurfaceCommitRequest())


def test_message_that_was_under_way_when_its_object_ended_is_dropped() -> None:
    """Spec: O4."""
    pair = Pair()
    surface = pair.surface()
    pair.renderer.configure(surface, 10, 10)
    pair.renderer.focus(surface)
    pair.agent.destroy(surface)
    _, events = pair.exchange()
    assert events == []
    assert pair.agent.objects.focus is None
    surface = pair.surface()
    pair.agent.send(surface, SurfaceTransferRequest("s2", True))
    pair.exchange()
    pair.renderer.hand_over(surface)
    pair.agent.send(surface, SurfaceCommitRequest())
    requests, _ = pair.exchange()
    assert requests == []
    with pytest.raises(SurfaceDestroyed):
        pair.renderer.content(surface)


def test_id_is_used_again_when_nothing_for_the_old_object_is_under_way() -> None:
    """Spec: O5."""
    pair = Pair()
    first = pair.agent.create_surface()
    pair.agent.destroy(first)
    assert pair.agent.create_surface() != first
    pair.agent.sync()
    assert first in pair.agent.objects.dead
    pair.exchange()
    assert pair.agent.objects.dead == {}
    made = [pair.agent.new_id() for _ in range(4)]
    assert first in made


def test_ids_are_freed_by_themselves_when_many_wait() -> None:
    """Spec: O5."""
    pair = Pair()
    for _ in range(SYNC_AFTER):
        pair.agent.destroy(pair.agent.create_surface())
    pair.exchange()
    assert not pair.agent.objects.dead


@pytest.mark.parametrize("op", ["paint", "done", "frame_ack"])
def test_operation_that_the_interface_does_not_have_is_refused(op: str) -> None:
    """Spec: O6."""
    pair = Pair()
    surface = pair.surface()
    assert code(pair.raw(pair.renderer, surface, op)) == 2


def test_operation_of_a_later_version_is_refused() -> None:
    """Spec: O6."""
    pair = Pair()
    pair.agent.bind("ArpInput", 1)
    pair.exchange()
    input_object = pair.agent.bound["ArpInput"]
    refuse = {"serial": 1, "code": 11, "message": "no"}
    assert code(pair.raw(pair.renderer, input_object, "refuse", refuse)) == 2
    with pytest.raises(InvalidMethod):
        pair.agent.send(input_object, InputRefuseRequest(1, 11, "no"))
    with pytest.raises(InvalidMethod):
        pair.agent.send(input_object, SurfaceCommitRequest())


def test_role_has_the_version_of_the_shell() -> None:
    """Spec: O6."""
    pair = Pair()
    pair.agent.bind("ArpShell", 1)
    role = pair.agent.get_toplevel(pair.agent.create_surface())
    with pytest.raises(InvalidMethod):
        pair.agent.send(role, ToplevelUnsetFullscreenRequest())


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"v": 2},
        {"v": True},
        {"id": -1},
        {"id": "1"},
        {"op": ""},
        {"op": 7},
        {"op": "x" * 65},
        {"seq": 0.5},
        {"payload": []},
        {"payload": {"callback_id": "1"}},
        {"payload": {}},
    ],
)
def test_message_that_cannot_be_read_is_refused(value: Any) -> None:
    """Spec: O7."""
    pair = Pair()
    good = {"v": 1, "id": 0, "op": "sync", "seq": 500, "payload": {"callback_id": 90}}
    made = good | value if isinstance(value, dict) else value
    frame = json.dumps(made if isinstance(value, dict) else [value])
    (event,) = pair.renderer.receive(frame)
    assert code(event) == (7 if isinstance(value, dict) and "v" in value else 11)
    assert told(pair.renderer)["code"] == code(event)
    assert 90 not in pair.renderer.objects.entries


def test_unknown_fields_of_a_newer_peer_are_ignored() -> None:
    """Spec: O7."""
    pair = Pair()
    event = pair.raw(pair.renderer, DISPLAY, "sync", {"callback_id": 90, "color": "red"}, hue=3)
    assert isinstance(event, ObjectMessage)


def test_error_names_object_code_and_message_and_is_not_answered() -> None:
    """Spec: O8, E1."""
    pair = Pair()
    event = pair.raw(pair.renderer, 77, "commit")
    answer = told(pair.renderer)
    assert answer["object_id"] == 77
    assert answer["code"] == 1
    assert answer["refused_seq"] == event.serial_no
    event = pair.raw(pair.agent, DISPLAY, "error", {"object_id": []})
    assert code(event) == 11
    assert pair.agent.data_to_send() == []


def test_peer_that_sends_nothing_but_nonsense_is_not_listened_to() -> None:
    """Spec: E3."""
    pair = Pair()
    events = [event for _ in range(1001) for event in pair.renderer.receive(b"x")]
    assert [type(one) for one in events[:-1]] == [RefusedMessage] * 1000
    assert events[-1].code == 1008  # type: ignore[union-attr]


def test_frame_that_is_too_large_is_refused_and_none_is_sent() -> None:
    pair = Pair(Limits(max_message_bytes=4000))
    (event,) = pair.renderer.receive(b"x" * 4001)
    assert code(event) == 4
    with pytest.raises(ResourceLimit):
        pair.agent.send(pair.surface(), SurfaceRenderRequest([text("a", "x" * 4000)]))


def test_half_a_surrogate_pair_is_refused_here_and_nothing_has_changed() -> None:
    pair = Pair()
    surface = pair.surface()
    before = pair.agent._sent_no
    with pytest.raises(InvalidMessage):
        pair.agent.send(surface, SurfaceSetTitleRequest("\ud800"))
    assert pair.agent._sent_no == before


# -- globals ---------------------------------------------------------------------------------------


def test_bind_of_what_is_not_offered_is_refused() -> None:
    """Spec: O9."""
    pair = Pair()
    bind = {"name": 2, "interface": "ArpShell", "version": 1, "new_id": 90}
    assert code(pair.raw(pair.renderer, 1, "bind", bind | {"name": 99})) == 1
    assert code(pair.raw(pair.renderer, 1, "bind", bind | {"interface": "ArpInput"})) == 1
    component = pair.agent.objects.offered("component:text")
    assert component is not None
    text_bind = bind | {"name": component, "interface": "component:text"}
    assert code(pair.raw(pair.renderer, 1, "bind", text_bind)) == 1
    assert code(pair.raw(pair.renderer, 1, "bind", bind | {"version": 3})) == 7
    with pytest.raises(UnknownObject):
        pair.agent.bind("ArpConversation")
    with pytest.raises(UnknownObject):
        ObjectAgentConnection("json", LIMITS).create_surface()


def test_globals_come_and_go_and_the_same_ones_come_on_every_registry() -> None:
    """Spec: O9."""
    pair = Pair()
    name = pair.renderer.offer(Offer("component:chart"))
    pair.exchange()
    assert pair.agent.objects.offered("component:chart") == name
    pair.agent.get_registry()
    pair.exchange()
    pair.renderer.withdraw(name)
    _, events = pair.exchange()
    assert pair.agent.objects.offered("component:chart") is None
    assert not any(isinstance(one, RefusedMessage) for one in events)
    assert code(pair.raw(pair.agent, 1, "global_remove", {"name": name})) == 1
    assert code(pair.raw(pair.agent, 1, "global", {"name": 1, "interface": "x", "version": 1})) == 1


def test_limits_of_the_renderer_are_kept_to() -> None:
    """Spec: P3."""
    agent = ObjectAgentConnection("json", Limits())
    limits = {"max_surfaces": 1, "max_patch_ops": "x", "unknown": 1}
    renderer = ObjectRendererConnection("json", Limits(), offers({"text": 1}, (), limits))
    agent.get_registry()
    for frame in agent.data_to_send():
        renderer.receive(frame)
    for frame in renderer.data_to_send():
        agent.receive(frame)
    assert agent.objects.limits == Limits(max_surfaces=1)


def test_done_comes_behind_what_answers_the_messages_before() -> None:
    """Spec: O10."""
    pair = Pair()
    pair.agent.get_registry()
    pair.agent.get_toplevel(pair.agent.create_surface())
    callback = pair.agent.sync()
    number = pair.agent._sent_no
    _, events = pair.exchange()
    assert len(events) > 8
    assert events[-1].payload == CallbackDoneEvent(number)
    assert callback not in pair.agent.objects.entries


# -- surfaces --------------------------------------------------------------------------------------


def test_surface_has_one_role_for_its_whole_life() -> None:
    """Spec: O11."""
    pair = Pair()
    surface = pair.agent.create_surface()
    pair.agent.send(surface, SurfaceRenderRequest([text("a")]))
    pair.agent.send(surface, SurfaceCommitRequest())
    pair.exchange()
    assert pair.renderer.objects.surface(surface).life == "new"
    with pytest.raises(ArpError) as refused:
        pair.renderer.configure(surface, 1, 1)
    assert int(refused.value.code) == 6
    pair.agent.get_toplevel(surface)
    pair.exchange()
    shell = pair.agent.bound["ArpShell"]
    again = {"surface_id": surface, "new_id": 90}
    assert code(pair.raw(pair.renderer, shell, "get_toplevel", again)) == 6
    assert code(pair.raw(pair.renderer, shell, "get_overlay", again)) == 6
    assert 90 not in pair.renderer.objects.entries


def test_one_commit_answers_every_configure_before_it() -> None:
    """Spec: O12."""
    pair = Pair()
    surface = pair.surface()
    for width in (10, 20):
        pair.renderer.configure(surface, width, 5, ["resizing"])
    pair.exchange()
    assert pair.agent.objects.surface(surface).life == "reconfigured"
    assert pair.agent.objects.surface(surface).states == ("resizing",)
    pair.agent.send(surface, SurfaceCommitRequest())
    pair.exchange()
    assert pair.renderer.objects.surface(surface).life == "shown"


def test_commit_beyond_those_that_may_be_pending_is_refused() -> None:
    """Spec: O13."""
    pair = Pair()
    surface = pair.surface()
    for _ in range(2):
        pair.agent.send(surface, SurfaceCommitRequest())
    with pytest.raises(ResourceLimit):
        pair.agent.send(surface, SurfaceCommitRequest())
    pair.exchange()
    pair.raw(pair.renderer, surface, "render", {"components": []})
    assert code(pair.raw(pair.renderer, surface, "commit")) == 4


def test_acknowledgement_of_a_commit_is_one_of_all_before() -> None:
    """Spec: O14."""
    pair = Pair()
    surface = pair.surface()
    numbers = [pair.agent.send(surface, SurfaceCommitRequest()) for _ in range(2)]
    pair.exchange()
    pair.renderer.displayed(surface)
    _, (event,) = pair.exchange()
    assert event.payload == SurfaceFrameAckEvent(numbers[1])
    assert pair.agent.objects.surface(surface).pending == []
    assert code(pair.raw(pair.agent, surface, "frame_ack", {"commit_seq": numbers[0]})) == 3
    pair.renderer.displayed(surface)
    assert pair.renderer.data_to_send() == []


@pytest.mark.parametrize(
    ("op", "payload", "wanted"),
    [
        ("render", {"components": [{"id": "b", "type": "text", "props": {"content": 1}}]}, 12),
        ("render", {"components": [{"id": "b", "type": "chart", "props": {}}]}, 10),
        ("render", {"components": [{"id": "b", "type": "text", "props": {}, "version": 2}]}, 10),
        ("patch", {"ops": [{"op": "remove", "target": "no"}]}, 13),
        ("patch", {"ops": [{"op": "update", "target": "no", "path": "props.x", "value": 1}]}, 13),
        ("patch", {"ops": [{"op": "update", "target": "a", "path": "x", "value": 1}]}, 13),
        (
            "patch",
            {"ops": [{"op": "append", "target": "a", "path": "props.content", "value": 1}]},
            13,
        ),
        ("patch", {"ops": [{"op": "remove", "target": "a"}] * 4}, 11),
        ("render", {"components": "all of them"}, 11),
    ],
)
def test_commit_that_does_not_fit_shows_nothing(op: str, payload: Any, wanted: int) -> None:
    """Spec: O15, P1, P2."""
    pair = Pair()
    surface = pair.surface()
    before = pair.renderer.content(surface)
    pair.raw(
        pair.renderer,
        surface,
        "render",
        {"components": [{"id": "n", "type": "text", "props": {"content": "n"}}]},
    )
    pair.raw(pair.renderer, surface, op, payload)
    number = pair.renderer._received_no + 1
    assert code(pair.raw(pair.renderer, surface, "commit")) == wanted
    assert pair.renderer.content(surface) == before
    assert pair.renderer.objects.surface(surface).pending == []
    pair.renderer.data_to_send()
    pair.agent._sent_no = number
    pair.show(surface, "later")
    assert [one.id for one in pair.renderer.content(surface)] == ["a", "later"]


def test_refused_commit_of_an_honest_agent_leaves_room_for_the_next() -> None:
    """Spec: O15."""
    pair = Pair()
    surface = pair.surface()
    for _ in range(5):
        pair.agent.send(surface, SurfacePatchRequest([Remove("no")]))
        pair.agent.send(surface, SurfaceCommitRequest())
        _, (event,) = pair.exchange()
        assert isinstance(event.payload, DisplayErrorEvent)
        assert event.payload.code == 13
        assert pair.agent.objects.surface(surface).pending == []


def test_fallback_shows_in_place_of_a_type_that_is_not_offered() -> None:
    """Spec: O15."""
    pair = Pair()
    surface = pair.surface()
    chart = Component("c", "chart", {}, 1, text("inner"))
    pair.agent.send(surface, SurfaceRenderRequest([chart], replace=True))
    group = Component("g", "group", {"children": []})
    ops: list[PatchOp] = [
        Insert(group, None),
        Insert(text("t"), None, "g"),
        Append("t", "props.content", "y"),
    ]
    pair.agent.send(surface, SurfacePatchRequest(ops))
    pair.agent.send(surface, SurfaceCommitRequest())
    pair.exchange()
    pair.renderer.displayed(surface)
    pair.exchange()
    shown = pair.renderer.content(surface)
    assert [(one.id, one.type) for one in shown] == [("g", "group"), ("c", "text")]
    assert shown[0].props["children"][0]["props"] == {"content": "xy"}
    ops = [Update("t", "props.content", "z"), Replace("c", text("c", "new"))]
    pair.agent.send(surface, SurfacePatchRequest(ops))
    pair.agent.send(surface, SurfaceCommitRequest())
    pair.exchange()
    assert pair.renderer.content(surface)[1] == text("c", "new")


def test_nested_components_count_in_a_commit() -> None:
    """Spec: P3."""
    pair = Pair()
    surface = pair.surface()
    split = {"left": {"id": "l", "type": "text", "props": {}}, "right": 7}
    tabs = {"tabs": [{"component": {"id": "x", "type": "text", "props": {}}}, 3]}
    for props, kind in ((split, "split"), (tabs, "tabs")):
        nested = [Component(f"{kind}{n}", kind, props) for n in range(2)]
        with pytest.raises(ResourceLimit):
            pair.agent.send(surface, SurfaceRenderRequest(nested))
    with pytest.raises(ResourceLimit):
        pair.agent.send(surface, SurfacePatchRequest([Remove("a")] * 4))


def test_request_on_a_closed_surface_is_refused() -> None:
    """Spec: O17."""
    pair = Pair()
    surface = pair.surface()
    pair.renderer.close(surface)
    assert code(pair.raw(pair.renderer, surface, "commit")) == 5
    pair.exchange()
    with pytest.raises(SurfaceDestroyed):
        pair.agent.send(surface, SurfaceCommitRequest())
    with pytest.raises(SurfaceDestroyed):
        pair.renderer.close(surface)
    pair.agent.destroy(surface)
    pair.exchange()
    assert pair.renderer.objects.surfaces == {}


def test_surface_beyond_the_limit_is_refused() -> None:
    """Spec: O18."""
    pair = Pair()
    for _ in range(4):
        pair.agent.create_surface()
    free = list(pair.agent._free)
    with pytest.raises(ResourceLimit):
        pair.agent.create_surface()
    assert len(pair.agent._free) == len(free) + 1
    pair.exchange()
    with pytest.raises(ResourceLimit):
        pair.renderer.acquire(None)


# -- serials and input -----------------------------------------------------------------------------


def test_serial_of_an_input_rises_and_the_input_fits() -> None:
    """Spec: O19."""
    pair = Pair()
    surface = pair.surface()
    pair.renderer.input(surface, "text", {"text": "x"}, 0.0)
    pair.exchange()
    input_object = pair.agent.bound["ArpInput"]
    said = {"surface_id": surface, "serial": 1, "type": "text", "data": {}}
    assert code(pair.raw(pair.agent, input_object, "input", said)) == 3
    many = said | {"serial": 2, "data": {"text": [0] * MAX_VALUES}}
    assert code(pair.raw(pair.agent, input_object, "input", many)) == 4
    assert code(pair.raw(pair.agent, input_object, "unfocus", {"surface_id": surface})) == 1


@pytest.mark.parametrize(("age_s", "is_fresh"), [(0.0, True), (5.0, True), (5.1, False)])
def test_popup_overlay_and_fullscreen_need_a_recent_input(age_s: float, is_fresh: bool) -> None:
    """Spec: O20."""
    pair = Pair()
    below, other = pair.surface(), pair.surface()
    serial = pair.renderer.input(below, "text", {"text": "x"}, 100.0)
    pair.exchange(100.0)
    popup, overlay = pair.agent.create_surface(), pair.agent.create_surface()
    pair.agent.get_popup(popup, below, serial)
    pair.agent.get_overlay(overlay, serial)
    role = pair.agent.objects.surface(below).role_id
    assert role is not None
    pair.agent.send(role, ToplevelSetFullscreenRequest(serial))
    pair.agent.send(role, ToplevelUnsetFullscreenRequest())
    pair.agent.send(role, ToplevelSetTitleRequest("Title"))
    requests, _ = pair.exchange(100.0 + age_s)
    refused = [code(one) for one in requests if isinstance(one, RefusedMessage)]
    assert refused == ([] if is_fresh else [3, 3, 3])
    wrong = pair.agent.objects.surface(other).role_id
    assert wrong is not None
    full = {"trigger_serial": serial}
    assert code(pair.raw(pair.renderer, wrong, "set_fullscreen", full)) == 3


def test_popup_opens_over_another_surface_and_overlay_is_anchored_to_another() -> None:
    """Spec: O20."""
    pair = Pair()
    below = pair.surface()
    serial = pair.renderer.input(below, "text", {"text": "x"}, 0.0)
    made = pair.agent.create_surface()
    pair.exchange()
    shell = pair.agent.bound["ArpShell"]
    popup = {"surface_id": made, "parent_id": made, "new_id": 90, "trigger_serial": serial}
    assert code(pair.raw(pair.renderer, shell, "get_popup", popup)) == 1
    without = {"surface_id": made, "new_id": 90}
    assert code(pair.raw(pair.renderer, shell, "get_overlay", without)) == 3
    overlay = pair.agent.get_overlay(made, serial)
    pair.agent.send(overlay, OverlaySetAnchorRequest(below, "top"))
    pair.exchange()
    itself = {"surface_id": made, "position": "top"}
    assert code(pair.raw(pair.renderer, overlay, "set_anchor", itself)) == 1
    for number, surface in enumerate((made, below)):
        pair.renderer.configure(surface, 10 + number, 10)
    pair.renderer.close(made)
    pair.exchange()
    assert pair.agent.objects.surface(made).life == "closed"


def test_every_input_is_answered_once() -> None:
    """Spec: O21."""
    pair = Pair()
    surface = pair.surface()
    serial = pair.renderer.input(surface, "text", {"text": "x"}, 0.0)
    pair.exchange()
    input_object = pair.agent.bound["ArpInput"]
    pair.agent.send(input_object, InputAckRequest(serial, "t1"))
    with pytest.raises(ArpError) as refused:
        pair.agent.send(input_object, InputRefuseRequest(serial, 11, "no"))
    assert int(refused.value.code) == 3
    pair.exchange()
    assert pair.renderer.objects.waiting_inputs == {}


def test_input_to_a_surface_that_the_agent_has_destroyed_is_answered_too() -> None:
    """Spec: O21."""
    pair = Pair()
    surface = pair.surface()
    pair.agent.destroy(surface)
    pair.renderer.input(surface, "text", {"text": "x"}, 0.0)
    pair.renderer.send(pair.renderer.bound("ArpInput"), InputFocusEvent(surface))
    requests, (event,) = pair.exchange()
    assert code(event) == 5
    (answer,) = [one.payload for one in requests if isinstance(one.payload, DisplayErrorRequest)]
    assert answer.code == 5
    assert pair.renderer.objects.waiting_inputs == {}


def test_inputs_without_an_answer_are_bounded() -> None:
    """Spec: P3."""
    pair = Pair()
    surface = pair.surface()
    for _ in range(MAX_WAITING_INPUTS):
        pair.renderer.input(surface, "text", {}, 0.0)
    with pytest.raises(ResourceLimit):
        pair.renderer.input(surface, "text", {}, 0.0)


def test_objects_and_globals_are_bounded() -> None:
    """Spec: P3."""
    pair = Pair()
    free = MAX_OBJECTS - len(pair.agent.objects.entries)
    for _ in range(free):
        pair.agent.sync()
    with pytest.raises(ResourceLimit):
        pair.agent.sync()
    many = ObjectRendererConnection("json", LIMITS, [Offer("x")] * (MAX_GLOBALS + 1))
    events = many.receive('{"v":1,"id":0,"op":"get_registry","seq":1,"payload":{"new_id":1}}')
    assert code(events[0]) == 4


def test_ids_whose_objects_have_ended_are_remembered_within_bounds() -> None:
    """Spec: P3."""
    objects = Pair().agent.objects
    objects.remember_dead(range(1_000_000, 1_000_000 + MAX_OBJECTS + 5))
    assert len(objects.dead) == MAX_OBJECTS
    assert 1_000_004 not in objects.dead


def test_only_the_newest_serials_are_known() -> None:
    """Spec: O20. However many inputs come within their age, memory is bounded."""
    pair = Pair()
    surface = pair.surface()
    for serial in range(1, MAX_WAITING_INPUTS + 2):
        pair.renderer.input(surface, "text", {}, 0.0)
        pair.exchange()
        pair.agent.send(pair.agent.bound["ArpInput"], InputAckRequest(serial))
        pair.exchange()
    for serial, answer in ((1, [3]), (2, [])):
        pair.agent.get_popup(pair.agent.create_surface(), surface, serial)
        refused = [one for one in pair.exchange()[0] if isinstance(one, RefusedMessage)]
        assert [code(one) for one in refused] == answer


def test_user_who_wants_to_close_a_window_leaves_that_to_the_agent() -> None:
    """`close` of a toplevel is a wish: the surface goes on until it is destroyed. Spec: O11."""
    pair = Pair()
    surface = pair.surface()
    role = pair.renderer.objects.surface(surface).role_id
    assert role is not None
    pair.renderer.send(role, ToplevelCloseEvent())
    _, (event,) = pair.exchange()
    assert event.payload == ToplevelCloseEvent()
    pair.show(surface, "b")
    assert [one.id for one in pair.renderer.content(surface)] == ["a", "b"]


def test_frame_may_be_read_before_it_is_taken_and_ends_with_the_connection() -> None:
    """Large frames are read in a thread. Behind a number that falls nothing is taken."""
    pair = Pair()
    first = pair.renderer._received_no + 1
    sync = [
        {"v": 1, "id": 0, "op": "sync", "seq": number, "payload": {"callback_id": 100 + number}}
        for number in (first, first, first + 1)
    ]
    envelopes = read(json.dumps(sync).encode(), "json")
    events = pair.renderer.receive_parsed(envelopes)
    assert [type(one) for one in events] == [ObjectMessage, ConnectionFailure]


def test_request_of_another_interface_with_the_same_name_is_refused() -> None:
    """Surfaces and toplevels both have `set_title`. Spec: O6."""
    pair = Pair()
    surface = pair.surface()
    with pytest.raises(InvalidMethod, match="takes no ToplevelSetTitleRequest"):
        pair.agent.send(surface, ToplevelSetTitleRequest("x"))


@pytest.mark.parametrize("child", [7, {"type": 7, "props": {}}, {"type": "text", "props": 7}])
def test_children_that_are_no_components_count_as_nothing(child: Any) -> None:
    """They are refused by their schema, not by a limit."""
    assert component_count([Component("g", "group", {"children": [child]})]) == 1


# -- sessions --------------------------------------------------------------------------------------


def test_session_is_created_and_chosen_once() -> None:
    """Spec: O22."""
    pair = Pair()
    session = pair.agent.bound["ArpSession"]
    create = {"session_id": "s2", "metadata": {}}
    assert code(pair.raw(pair.renderer, session, "create", create)) == 8
    pair.renderer.resume("mine", 3, {"epoch": "e"})
    pair.exchange()
    assert pair.agent.objects.session_id == pair.renderer.objects.session_id == "mine"
    with pytest.raises(ArpError) as refused:
        pair.renderer.resume("again", 0)
    assert int(refused.value.code) == 8
    with pytest.raises(InvalidMethod):
        ObjectRendererConnection("json", LIMITS, []).resume("s", 0)


# -- transfer --------------------------------------------------------------------------------------


def test_id_of_a_surface_that_ended_is_made_again_by_surface_acquired() -> None:
    """What else comes for the old one is dropped. Spec: O4, O23."""
    pair = Pair()
    made = pair.renderer.acquire([text("a")], "Report")
    pair.exchange()
    assert pair.agent.objects.surface(made).title == "Report"
    pair.agent.destroy(made)
    assert made in pair.agent.objects.dead
    late = {"v": 1, "id": made, "op": "closed", "seq": pair.agent._received_no + 1, "payload": {}}
    assert pair.agent.receive(json.dumps(late)) == []
    again = late | {"op": "surface_acquired", "seq": pair.agent._received_no + 1}
    (event,) = pair.agent.receive(json.dumps(again))
    assert isinstance(event, ObjectMessage)
    assert made in pair.agent.objects.surfaces


def test_popup_is_not_handed_over_nor_anything_twice() -> None:
    """Spec: O24."""
    pair = Pair()
    below = pair.surface()
    serial = pair.renderer.input(below, "text", {"text": "x"}, 0.0)
    above = pair.agent.create_surface()
    pair.exchange()
    pair.agent.get_popup(above, below, serial)
    for surface, session_id in ((above, "s2"), (below, "s1")):
        with pytest.raises(ArpError) as refused:
            pair.agent.send(surface, SurfaceTransferRequest(session_id, True))
        assert int(refused.value.code) == 9
    number = pair.agent.send(below, SurfaceTransferRequest("s2", True))
    with pytest.raises(ArpError) as refused:
        pair.agent.send(below, SurfaceTransferRequest("s2", True))
    assert int(refused.value.code) == 9
    pair.exchange()
    pair.renderer.send(DISPLAY, DisplayErrorEvent(below, 9, "no", number))
    pair.renderer.send(DISPLAY, DisplayErrorEvent(below, 9, "no", 1))
    pair.exchange()
    assert pair.agent.objects.surface(below).ownership == "owned"
    assert code(pair.raw(pair.agent, below, "transferred")) == 9


def test_configure_of_a_surface_without_role_object_goes_to_the_surface() -> None:
    """Spec: O23."""
    pair = Pair()
    made = pair.renderer.acquire([text("a")])
    pair.renderer.configure(made, 5, 5, ["activated"])
    _, events = pair.exchange()
    assert events[-1].payload == SurfaceConfigureEvent(5, 5, ["activated"])
    assert pair.renderer.content(made) == [text("a")]
    pair.agent.get_toplevel(made)
    pair.exchange()
    assert pair.renderer.objects.surface(made).role == "toplevel"
