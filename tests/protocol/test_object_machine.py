"""Both ends under random legal and illegal messages: no crash, no half change, the right error.

The machine keeps a small record of its own of what must hold (which surfaces there are, which roles
they have, who owes what), and says before each illegal message which code and object it must be
answered with. Afterwards both ends must have the same objects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from arp.protocol.components import Component
from arp.protocol.errors import ArpError
from arp.protocol.limits import Limits
from arp.protocol.objects import connection as object_connection
from arp.protocol.objects import model as object_model
from arp.protocol.objects import states as object_states
from arp.protocol.objects.agent import ObjectAgentConnection
from arp.protocol.objects.connection import ObjectConnection, RefusedMessage
from arp.protocol.objects.messages import (
    INTERFACES,
    DisplayErrorEvent,
    InputAckRequest,
    InputRefuseRequest,
    OverlaySetAnchorRequest,
    OverlaySetTimeoutRequest,
    SessionDestroyRequest,
    SessionStateUpdateRequest,
    SurfaceCommitRequest,
    SurfaceFrameAckEvent,
    SurfacePatchRequest,
    SurfaceRenderRequest,
    SurfaceTransferRequest,
    ToplevelSetFullscreenRequest,
    ToplevelSetTitleRequest,
)
from arp.protocol.objects.model import Objects
from arp.protocol.objects.renderer import ObjectRendererConnection, offers
from arp.protocol.objects.wire import DISPLAY, RENDERER_IDS
from arp.protocol.patch import Update

LIMITS = Limits(max_surfaces=6, max_components_per_commit=4, max_patch_ops=3, max_pending_commits=2)

OFFERED = {"text": 1, "table": 1, "group": 1}

SEEN: set[tuple[str, str, str]] = set()
"""Transitions that were taken: table, state, event."""


class _Row(dict[str, str]):
    def __init__(self, table: str, state: str, moves: Mapping[str, str]) -> None:
        super().__init__(moves)
        self.place = (table, state)

    def __getitem__(self, event: str) -> str:
        SEEN.add((*self.place, event))
        return super().__getitem__(event)


@pytest.fixture
def tracked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records each transition that either end takes."""
    SEEN.clear()
    named = {
        "surface": "SURFACE_LIFE",
        "role": "SURFACE_ROLE",
        "commits": "COMMIT_FLOW",
        "ownership": "OWNERSHIP",
        "session": "SESSION_LIFE",
        "connection": "CONNECTION_LIFE",
    }
    for table, name in named.items():
        rows = {
            state: _Row(table, state, moves)
            for state, moves in object_states.TABLES[table].moves.items()
        }
        owner = object_connection if table == "connection" else object_model
        monkeypatch.setattr(owner, name, rows)


class Wire:
    """One direction: messages under way, and raw ones that no honest end would send."""

    def __init__(self, source: ObjectConnection, target: ObjectConnection) -> None:
        self.source, self.target = source, target
        self.under_way: list[bytes] = []

    def deliver(self, now_s: float) -> list[Any]:
        self.under_way += self.source.data_to_send()
        frames, self.under_way = self.under_way, []
        return [event for frame in frames for event in self.target.receive(frame, now_s)]

    def inject(self, object_id: int, op: str, payload: Any, now_s: float) -> list[Any]:
        number = self.target._received_no + 1
        self.source._sent_no = max(self.source._sent_no, number)
        raw = {"v": 1, "id": object_id, "op": op, "seq": number, "payload": payload}
        return self.target.receive(json.dumps(raw), now_s)


def shape(objects: Objects) -> Any:
    """What both ends must agree on."""
    return {
        number: (
            one.interface,
            one.version,
            None
            if one.surface is None
            else (
                one.surface.life,
                one.surface.role,
                one.surface.flow,
                one.surface.ownership,
                tuple(one.surface.pending),
                one.surface.parent,
            ),
        )
        for number, one in objects.entries.items()
    }


def everything(objects: Objects) -> bytes:
    """All state of one end, to see that a refusal changes nothing."""
    return msgspec.json.encode(
        (
            {str(key): one for key, one in objects.entries.items()},
            {str(key): one for key, one in objects.waiting_inputs.items()},
            objects.session,
            objects.session_id,
            objects.focus,
            {str(key): one for key, one in objects.globals.items()},
        )
    )


WALK_TO: Mapping[str, tuple[str, ...]] = {
    "new": (),
    "roled": ("role",),
    "configured": ("role", "configure"),
    "shown": ("role", "configure", "commit"),
    "busy": ("role", "configure", "commit", "commit"),
    "reconfigured": ("role", "configure", "commit", "display", "configure"),
    "closed": ("close",),
}
WALKS = list(WALK_TO)
STEPS = ["role", "commit", "configure", "close", "display", "transfer"]


def text(component_id: str) -> Component:
    return Component(component_id, "text", {"content": "x"})


class BothEnds(RuleBasedStateMachine):
    """An agent and a renderer, and what is under way between them."""

    def __init__(self) -> None:
        super().__init__()
        self.connect(LIMITS)
        self.now_s = 100.0
        self.serials: dict[int, tuple[int, float]] = {}
        """Surface and time of each input."""
        self.refused = 0

    # -- helpers ---------------------------------------------------------------------------------

    def connect(self, limits: Limits) -> None:
        self.agent = ObjectAgentConnection("json", limits)
        self.renderer = ObjectRendererConnection(
            "json", limits, offers(OFFERED, ["streaming"], {"max_surfaces": 6})
        )
        self.out = Wire(self.agent, self.renderer)
        self.back = Wire(self.renderer, self.agent)

    def settle(self) -> None:
        """Deliver everything, until nothing is under way."""
        for _ in range(6):
            for event in (*self.out.deliver(self.now_s), *self.back.deliver(self.now_s)):
                # What honest ends send is refused only where the other end had just acted.
                if isinstance(event, RefusedMessage):
                    assert int(event.error.code) in (3, 4, 5, 9, 1), event

    def surfaces(self, *lives: str) -> list[int]:
        found = self.renderer.objects.surfaces.items()
        return [number for number, one in found if not lives or one.life in lives]

    def open(self) -> list[int]:
        return [number for number in self.surfaces() if self.life(number) != "closed"]

    def life(self, number: int) -> str:
        return str(self.renderer.objects.surfaces[number].life)

    def role(self, number: int) -> str:
        return str(self.renderer.objects.surfaces[number].role)

    def pick(self, data: st.DataObject, found: list[int]) -> int:
        return data.draw(st.sampled_from(found))

    def may(self, call: Any, *args: Any) -> Any:
        """Make a call that may be refused here; then nothing of this end may have changed."""
        before = everything(self.agent.objects), everything(self.renderer.objects)
        try:
            return call(*args)
        except ArpError:
            assert (everything(self.agent.objects), everything(self.renderer.objects)) == before
            self.refused += 1
            return None

    def refuses(self, wire: Wire, object_id: int, op: str, payload: Any, code: int) -> None:
        """Inject an illegal message; it must be refused with this code and object."""
        self.settle()
        before = everything(wire.target.objects)
        events = wire.inject(object_id, op, payload, self.now_s)
        (event,) = events
        assert isinstance(event, RefusedMessage), event
        assert (int(event.error.code), event.object_id) == (code, object_id), event
        assert everything(wire.target.objects) == before
        (answer,) = [json.loads(frame) for frame in wire.target.data_to_send()]
        assert (answer["id"], answer["op"]) == (DISPLAY, "error")
        told = answer["payload"]
        assert (told["object_id"], told["code"]) == (object_id, code)
        assert told["refused_seq"] == wire.target._received_no
        entry = wire.target.objects.entries.get(object_id)
        if entry is not None:
            declared = {*INTERFACES[entry.interface].errors, *INTERFACES["ArpDisplay"].errors}
            assert code in declared, (entry.interface, code)
        wire.source.receive(json.dumps(answer), self.now_s)

    # -- legal -----------------------------------------------------------------------------------

    @initialize(most=st.sampled_from([1, 2, 3]))
    def handshake(self, most: int) -> None:
        self.most = most
        self.connect(msgspec.structs.replace(LIMITS, max_pending_commits=most))
        self.agent.get_registry()
        self.settle()
        for name in ("ArpCompositor", "ArpShell", "ArpInput", "ArpSession"):
            self.agent.bind(name)
        self.agent.create_session("s1", {})
        self.settle()

    @rule()
    def create_surface(self) -> None:
        self.may(self.agent.create_surface, "side")

    @rule(data=st.data(), role=st.sampled_from(["toplevel", "popup", "overlay"]))
    @precondition(lambda self: self.agent.objects.surfaces)
    def give_role(self, data: st.DataObject, role: str) -> None:
        surface = self.pick(data, list(self.agent.objects.surfaces))
        if role == "toplevel":
            self.may(self.agent.get_toplevel, surface)
            return
        fresh = [
            serial
            for serial, (_, at_s) in self.serials.items()
            if self.now_s - at_s < 5 and serial in self.renderer.objects._recent
        ]
        if not fresh:
            return
        serial = fresh[-1]
        parent = self.serials[serial][0]
        if role == "overlay":
            made = self.may(self.agent.get_overlay, surface, serial)
            others = [one for one in self.agent.objects.surfaces if one != surface]
            if made is not None and others:
                self.may(self.agent.send, made, OverlaySetAnchorRequest(others[0], "top"))
                self.may(self.agent.send, made, OverlaySetTimeoutRequest(1000))
        elif parent in self.agent.objects.surfaces:
            self.may(self.agent.get_popup, surface, parent, serial, "row")

    @rule(data=st.data(), states=st.sampled_from([[], ["activated"], ["suspended"]]))
    @precondition(lambda self: self.surfaces())
    def configure(self, data: st.DataObject, states: list[str]) -> None:
        self.may(self.renderer.configure, self.pick(data, self.surfaces()), 80, 24, states)

    @rule(data=st.data(), name=st.sampled_from("abc"), final=st.booleans())
    @precondition(lambda self: self.agent.objects.surfaces)
    def show(self, data: st.DataObject, name: str, final: bool) -> None:
        surface = self.pick(data, list(self.agent.objects.surfaces))
        flow = self.agent.objects.surfaces[surface].flow
        if flow != "full" and self.agent.objects.surfaces[surface].components < 3:
            self.may(self.agent.send, surface, SurfaceRenderRequest([text(name)]))
            patch = SurfacePatchRequest([Update(name, "props.content", "y")])
            self.may(self.agent.send, surface, patch)
        self.may(self.agent.send, surface, SurfaceCommitRequest(final))

    @rule(data=st.data(), is_first=st.booleans())
    @precondition(lambda self: self.surfaces())
    def display(self, data: st.DataObject, is_first: bool) -> None:
        surface = self.pick(data, self.surfaces())
        pending = self.renderer.objects.surfaces[surface].pending
        if is_first and pending:
            self.may(self.renderer.send, surface, SurfaceFrameAckEvent(pending[0]))
        else:
            self.may(self.renderer.displayed, surface)

    @rule(role=st.sampled_from(["popup", "overlay"]))
    def open_over(self, role: str) -> None:
        """Use a surface, and open another one over it."""
        self.settle()
        parent = self.may(self.agent.create_surface, "below")
        if parent is None:
            return
        self.settle()
        serial = self.renderer.input(parent, "text", {"text": "x"}, self.now_s)
        self.serials[serial] = (parent, self.now_s)
        self.settle()
        self.agent.send(self.agent.bound["ArpInput"], InputAckRequest(serial))
        above = self.may(self.agent.create_surface, "above")
        if above is not None and role == "popup":
            self.agent.get_popup(above, parent, serial)
        elif above is not None:
            self.agent.get_overlay(above, serial)
        self.settle()

    @rule(data=st.data(), takes=st.booleans())
    @precondition(lambda self: self.open())
    def use(self, data: st.DataObject, takes: bool) -> None:
        surface = self.pick(data, self.open())
        serial = self.may(self.renderer.input, surface, "text", {"text": "x"}, self.now_s)
        if serial is None:
            return
        self.serials[serial] = (surface, self.now_s)
        self.settle()
        if serial not in self.agent.objects.waiting_inputs:
            return  # the agent had destroyed the surface
        answer = InputAckRequest(serial) if takes else InputRefuseRequest(serial, 11, "no")
        self.agent.send(self.agent.bound["ArpInput"], answer)

    @rule(data=st.data())
    @precondition(lambda self: self.open())
    def focus(self, data: st.DataObject) -> None:
        self.may(self.renderer.focus, self.pick(data, self.open()))

    @rule()
    def blur(self) -> None:
        self.may(self.renderer.focus, None)

    @rule(data=st.data())
    @precondition(lambda self: self.surfaces())
    def close(self, data: st.DataObject) -> None:
        self.may(self.renderer.close, self.pick(data, self.surfaces()))

    @rule(data=st.data())
    @precondition(lambda self: self.agent.objects.surfaces)
    def destroy(self, data: st.DataObject) -> None:
        self.may(self.agent.destroy, self.pick(data, list(self.agent.objects.surfaces)))

    @rule(data=st.data(), is_granted=st.booleans())
    @precondition(lambda self: self.agent.objects.surfaces)
    def transfer(self, data: st.DataObject, is_granted: bool) -> None:
        surface = self.pick(data, list(self.agent.objects.surfaces))
        number = self.may(self.agent.send, surface, SurfaceTransferRequest("s2", True))
        if number is None:
            return
        self.settle()
        there = self.renderer.objects.surfaces.get(surface)
        if there is None or there.ownership != "asked":
            return
        if is_granted:
            self.may(self.renderer.hand_over, surface)
        else:
            self.renderer.send(DISPLAY, DisplayErrorEvent(surface, 9, "no", number))

    @rule(state=st.sampled_from(WALKS), event=st.sampled_from(STEPS))
    def walk(self, state: str, event: str) -> None:
        """Take a new surface to a state, and do one thing there; then it goes."""
        self.settle()
        made = self.may(self.agent.create_surface, "walk")
        if made is None:
            return
        for step in (*WALK_TO[state], event):
            self.step(made, step)
            self.settle()
        if made in self.agent.objects.entries:
            self.agent.destroy(made)

    def step(self, surface: int, step: str) -> None:
        if step == "role":
            self.may(self.agent.get_toplevel, surface)
        elif step == "commit":
            self.may(self.agent.send, surface, SurfaceCommitRequest())
        elif step == "configure":
            self.may(self.renderer.configure, surface, 10, 10)
        elif step == "close":
            self.may(self.renderer.close, surface)
        elif step == "display":
            self.may(self.renderer.displayed, surface)
        elif self.may(self.agent.send, surface, SurfaceTransferRequest("s2", False)):
            self.settle()
            self.renderer.hand_over(surface)

    @rule(has_content=st.booleans(), is_configured=st.booleans())
    def acquire_and_use(self, has_content: bool, is_configured: bool) -> None:
        self.settle()
        made = self.may(self.renderer.acquire, [text("a")] if has_content else None, "given")
        if made is None:
            return
        self.settle()
        if is_configured:
            self.renderer.configure(made, 1, 1)
        self.settle()
        self.may(self.agent.get_toplevel, made)
        self.settle()
        self.agent.destroy(made)

    @rule(has_content=st.booleans())
    def acquire(self, has_content: bool) -> None:
        self.may(self.renderer.acquire, [text("a")] if has_content else None, "given")

    @rule(is_ending=st.booleans())
    def session(self, is_ending: bool) -> None:
        session = self.session_object()
        if session is None:
            return
        self.may(self.agent.send, session, SessionStateUpdateRequest({"a": 1}))
        if is_ending:
            self.agent.send(session, SessionDestroyRequest())

    def session_object(self) -> int | None:
        found = self.agent.objects.entries.items()
        return next((key for key, one in found if one.interface == "ArpSession"), None)

    @rule()
    def resume(self) -> None:
        self.settle()
        if any(one.interface == "ArpSession" for one in self.renderer.objects.entries.values()):
            self.may(self.renderer.resume, "mine", 3, {"epoch": "e"})

    @rule(data=st.data())
    @precondition(lambda self: self.agent.objects.surfaces)
    def fullscreen(self, data: st.DataObject) -> None:
        self.settle()
        for number, one in list(self.agent.objects.entries.items()):
            if one.interface != "ArpToplevel":
                continue
            self.may(self.agent.send, number, ToplevelSetTitleRequest("t"))
            recent = [key for key, (at, _) in self.serials.items() if at == one.surface_id]
            if recent:
                self.may(self.agent.send, number, ToplevelSetFullscreenRequest(recent[-1]))

    @rule()
    def sync(self) -> None:
        self.may(self.agent.sync)

    @rule(seconds=st.sampled_from([0.5, 6.0]))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    @rule(both=st.booleans())
    def deliver(self, both: bool) -> None:
        self.out.deliver(self.now_s)
        if both:
            self.back.deliver(self.now_s)

    @rule()
    def settle_all(self) -> None:
        self.settle()

    # -- illegal requests ------------------------------------------------------------------------

    @rule(number=st.sampled_from([900, 0x7FFFFFFF, RENDERER_IDS[-1]]))
    def request_on_nothing(self, number: int) -> None:
        self.refuses(self.out, number, "commit", {}, 1)

    @rule(op=st.sampled_from(["", "paint", "commit", "done"]))
    def request_that_is_none(self, op: str) -> None:
        code, number = (11, DISPLAY) if not op else (2, DISPLAY)
        self.refuses(self.out, number, op, {}, code)

    @rule(payload=st.sampled_from([None, [], 7, "x"]))
    def request_without_payload(self, payload: Any) -> None:
        self.refuses(self.out, DISPLAY, "sync", payload, 11)

    @rule(new_id=st.sampled_from([0, RENDERER_IDS[0], 1]))
    def request_with_an_id_that_is_not_free(self, new_id: int) -> None:
        self.refuses(self.out, DISPLAY, "sync", {"callback_id": new_id}, 1)

    @rule(version=st.sampled_from([0, 9]))
    def bind_of_a_version_that_is_not_offered(self, version: int) -> None:
        bind = {"name": 2, "interface": "ArpShell", "version": version, "new_id": 5000}
        self.refuses(self.out, 1, "bind", bind, 7)

    @rule(name=st.sampled_from([1, 777]))
    def bind_of_what_is_not_offered(self, name: int) -> None:
        bind = {"name": name, "interface": "ArpShell", "version": 1, "new_id": 5000}
        self.refuses(self.out, 1, "bind", bind, 1)

    @rule()
    def session_twice(self) -> None:
        self.settle()
        session = self.session_object()
        if session is not None:
            payload = {"session_id": "s9", "metadata": {}}
            self.refuses(self.out, session, "create", payload, 8)

    @rule(data=st.data())
    def request_on_a_closed_surface(self, data: st.DataObject) -> None:
        self.settle()
        found = self.surfaces("closed")
        if found:
            self.refuses(self.out, self.pick(data, found), "commit", {}, 5)

    @rule(data=st.data(), op=st.sampled_from(["get_toplevel", "get_overlay"]))
    def role_twice(self, data: st.DataObject, op: str) -> None:
        self.settle()
        found = [one for one in self.open() if self.role(one) != "none"]
        if found:
            payload = {"surface_id": self.pick(data, found), "new_id": 5000, "trigger_serial": 1}
            self.refuses(self.out, self.agent.bound["ArpShell"], op, payload, 6)

    @rule(data=st.data())
    def overlay_without_recent_input(self, data: st.DataObject) -> None:
        self.settle()
        found = [one for one in self.open() if self.role(one) == "none"]
        found = [one for one in found if self.life(one) == "new"]
        if found:
            stale = [key for key, (_, at_s) in self.serials.items() if self.now_s - at_s > 5]
            payload = {
                "surface_id": self.pick(data, found),
                "new_id": 5000,
                "trigger_serial": stale[0] if stale else 10_000,
            }
            self.refuses(self.out, self.agent.bound["ArpShell"], "get_overlay", payload, 3)

    @rule()
    def surface_too_many(self) -> None:
        self.settle()
        if len(self.surfaces()) == LIMITS.max_surfaces:
            compositor = self.agent.bound["ArpCompositor"]
            self.refuses(self.out, compositor, "create_surface", {"new_id": 5000}, 4)

    @rule(data=st.data())
    def commit_too_many(self, data: st.DataObject) -> None:
        self.settle()
        pending = self.renderer.objects.surfaces
        found = [one for one in self.open() if len(pending[one].pending) == self.most]
        if found:
            self.refuses(self.out, self.pick(data, found), "commit", {}, 4)

    @rule(data=st.data(), what=st.sampled_from(["component", "patch", "unsupported", "props"]))
    def commit_that_does_not_fit(self, data: st.DataObject, what: str) -> None:
        self.settle()
        pending = self.renderer.objects.surfaces
        found = [
            one
            for one in self.open()
            if len(pending[one].pending) < self.most
            and not (pending[one].components or pending[one].ops)
        ]
        if not found:
            return
        surface = self.pick(data, found)
        before = self.renderer.content(surface)
        bad: dict[str, tuple[str, dict[str, Any], int]] = {
            "component": ("render", {"components": [{"id": "", "type": "text", "props": {}}]}, 12),
            "patch": ("patch", {"ops": [{"op": "remove", "target": "nothing"}]}, 13),
            "unsupported": (
                "render",
                {"components": [{"id": "q", "type": "map", "props": {}}]},
                10,
            ),
            "props": (
                "render",
                {"components": [{"id": "q", "type": "table", "props": {"headers": 1}}]},
                12,
            ),
        }
        op, payload, code = bad[what]
        self.out.inject(surface, "render", {"components": [msgspec.to_builtins(text("n"))]}, 0)
        self.out.inject(surface, op, payload, self.now_s)
        (event,) = self.out.inject(surface, "commit", {}, self.now_s)
        assert isinstance(event, RefusedMessage)
        assert (int(event.error.code), event.object_id) == (code, surface), (
            event,
            pending[surface],
        )
        assert self.renderer.content(surface) == before
        assert pending[surface].components == pending[surface].ops == 0
        self.settle()

    @rule(data=st.data())
    def transfer_to_itself(self, data: st.DataObject) -> None:
        self.settle()
        session_id, found = self.renderer.objects.session_id, self.open()
        if session_id is not None and found:
            payload = {"to_session": session_id, "retain_content": True}
            self.refuses(self.out, self.pick(data, found), "transfer", payload, 9)

    @rule(serial=st.sampled_from([0, 999]))
    def ack_of_no_input(self, serial: int) -> None:
        self.refuses(self.out, self.agent.bound["ArpInput"], "ack", {"serial": serial}, 3)

    # -- illegal events --------------------------------------------------------------------------

    @rule()
    def event_on_nothing(self) -> None:
        self.refuses(self.back, 901, "closed", {}, 1)

    @rule()
    def event_that_is_none(self) -> None:
        self.refuses(self.back, self.agent.bound["ArpInput"], "ack", {"serial": 1}, 2)

    @rule(serial=st.sampled_from([0, 1]))
    def input_whose_serial_does_not_rise(self, serial: int) -> None:
        self.settle()
        found = [one for one in self.open() if one in self.agent.objects.entries]
        if found and self.agent.objects._last_serial >= serial:
            payload = {"surface_id": found[0], "serial": serial, "type": "text", "data": {}}
            self.refuses(self.back, self.agent.bound["ArpInput"], "input", payload, 3)

    @rule()
    def input_of_an_unknown_type(self) -> None:
        payload = {"surface_id": 1, "serial": 5000, "type": "telepathy", "data": {}}
        self.refuses(self.back, self.agent.bound["ArpInput"], "input", payload, 11)

    @rule(data=st.data())
    def frame_ack_of_no_commit(self, data: st.DataObject) -> None:
        self.settle()
        found = list(self.agent.objects.surfaces)
        if found:
            surface = self.pick(data, found)
            self.refuses(self.back, surface, "frame_ack", {"commit_seq": 2**40}, 3)

    @rule(data=st.data())
    def configure_without_role(self, data: st.DataObject) -> None:
        self.settle()
        found = [one for one in self.surfaces("new") if one in self.agent.objects.entries]
        if found:
            size = {"width": 1, "height": 1, "states": []}
            self.refuses(self.back, self.pick(data, found), "configure", size, 6)

    @rule(data=st.data())
    def transferred_without_being_asked(self, data: st.DataObject) -> None:
        self.settle()
        found = self.agent.objects.surfaces.items()
        owned = [key for key, one in found if one.ownership == "owned" and one.life != "closed"]
        if owned:
            self.refuses(self.back, self.pick(data, owned), "transferred", {}, 9)

    @rule()
    def global_under_a_number_that_is_taken(self) -> None:
        offer = {"name": 1, "interface": "ArpShell", "version": 1}
        self.refuses(self.back, 1, "global", offer, 1)

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def both_ends_are_open(self) -> None:
        assert self.agent.life == self.renderer.life == "open"

    def teardown(self) -> None:
        self.settle()
        self.agent.sync()
        self.settle()
        assert shape(self.agent.objects) == shape(self.renderer.objects)
        assert not self.agent.objects.dead
        self.agent._received_no += 1000
        number = self.agent._received_no
        raw = {"v": 1, "id": 0, "op": "error", "seq": number, "payload": {}}
        self.agent.receive(json.dumps(raw))
        assert self.agent.life == "failed"


def every_walk() -> None:
    """Do each thing in each state of a surface once."""
    machine = BothEnds()
    machine.handshake(3)
    for state in WALKS:
        for step in STEPS:
            machine.walk(state, step)
            machine.resume()
    refused_roles(machine)
    surface = machine.agent.create_surface()
    numbers = [machine.agent.send(surface, SurfaceCommitRequest()) for _ in range(3)]
    machine.settle()
    for number in numbers:
        machine.renderer.send(surface, SurfaceFrameAckEvent(number))
    for is_ending in (False, True):
        machine.session(is_ending)
    machine.teardown()


def refused_roles(machine: BothEnds) -> None:
    """Ask for each role when it is too late, which this side cannot know."""
    below, popup, overlay, toplevel = (machine.agent.create_surface() for _ in range(4))
    machine.settle()
    serial = machine.renderer.input(below, "text", {"text": "x"}, machine.now_s)
    machine.settle()
    machine.renderer.close(toplevel)
    machine.agent.get_toplevel(toplevel)
    machine.agent.get_popup(popup, below, serial)
    machine.agent.get_overlay(overlay, serial)
    machine.now_s += 6  # so long they are under way
    machine.settle()
    for surface, life in ((popup, "new"), (overlay, "new"), (toplevel, "closed")):
        assert machine.agent.objects.surface(surface).role == "none"
        assert machine.agent.objects.surface(surface).life == life
    assert shape(machine.agent.objects) == shape(machine.renderer.objects)
    for surface in (below, popup, overlay, toplevel):
        machine.agent.destroy(surface)
    machine.settle()


def test_surface_that_the_renderer_could_not_take_any_more_is_gone_on_both_sides() -> None:
    """The last place is taken by both at once: each refuses what the other has made. Spec: O8."""
    machine = BothEnds()
    machine.handshake(3)
    for _ in range(LIMITS.max_surfaces - 1):
        machine.agent.create_surface()
    machine.settle()
    mine = machine.agent.create_surface()
    theirs = machine.renderer.acquire([text("a")], "given")
    machine.settle()
    assert mine not in machine.agent.objects.entries
    assert theirs not in machine.renderer.objects.entries
    assert theirs not in machine.renderer._contents
    assert len(machine.agent.objects.surfaces) == LIMITS.max_surfaces - 1
    assert shape(machine.agent.objects) == shape(machine.renderer.objects)
    again = machine.agent.create_surface()  # there is room
    machine.settle()
    assert again in machine.renderer.objects.entries
    assert shape(machine.agent.objects) == shape(machine.renderer.objects)


@pytest.mark.usefixtures("tracked")
def test_both_ends_agree_whatever_happens_and_every_transition_is_visited() -> None:
    """docs/protocol.md, "Object dialect": states, errors, ids."""
    run_state_machine_as_test(
        BothEnds,
        settings=settings(
            max_examples=60,
            stateful_step_count=60,
            derandomize=True,
            phases=[Phase.generate],  # a failure of 60 steps takes minutes to shrink
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    every_walk()
    every = {
        (table, state, event)
        for table, machine in object_states.TABLES.items()
        for state, moves in machine.moves.items()
        for event in moves
    }
    assert every - SEEN == set()
