"""The objects of one connection, as either end sees them: what may be done, and what it changes.

Theory of operation. `request` and `event` take one message each. They check everything first, by
the tables of `object_states`, and change something only then; what they raise is the error that its
sender gets, and nothing has changed. The end that sends a message calls them before it sends, the
other when it arrives, so that both have the same objects but for what is under way.

Ids. The sender of the message that ends an object goes on knowing its id as *dead*: what the other
end had sent before it heard of that is dropped. The agent side may use an id again once a `sync`
behind the end of its object is done; an id that the renderer ended is free at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from arp.protocol.catalog import slot_names
from arp.protocol.components import Component
from arp.protocol.errors import (
    InvalidMethod,
    InvalidSerial,
    ResourceLimit,
    RoleConflict,
    SessionNotFound,
    SurfaceDestroyed,
    TransferDenied,
    UnknownObject,
    VersionMismatch,
)
from arp.protocol.json_value import Json, JsonObject, check_count
from arp.protocol.limits import Limits
from arp.protocol.objects.messages import (
    INTERFACES,
    CompositorCreateSurfaceRequest,
    DisplayErrorEvent,
    DisplayErrorRequest,
    InputAckRequest,
    InputFocusEvent,
    InputInputEvent,
    InputRefuseRequest,
    InputUnfocusEvent,
    Operation,
    OverlayConfigureEvent,
    OverlayDismissedEvent,
    OverlaySetAnchorRequest,
    OverlaySetTimeoutRequest,
    PopupConfigureEvent,
    PopupPopupDoneEvent,
    RegistryBindRequest,
    RegistryGlobalEvent,
    RegistryGlobalRemoveEvent,
    SessionCreateRequest,
    SessionDestroyRequest,
    SessionResumedEvent,
    SessionStateUpdateRequest,
    ShellGetOverlayRequest,
    ShellGetPopupRequest,
    ShellGetToplevelRequest,
    SurfaceClosedEvent,
    SurfaceCommitRequest,
    SurfaceConfigureEvent,
    SurfaceDestroyRequest,
    SurfaceFrameAckEvent,
    SurfacePatchRequest,
    SurfaceRenderRequest,
    SurfaceSetTitleRequest,
    SurfaceSurfaceAcquiredEvent,
    SurfaceTransferredEvent,
    SurfaceTransferRequest,
    ToplevelCloseEvent,
    ToplevelConfigureEvent,
    ToplevelSetFullscreenRequest,
    ToplevelSetTitleRequest,
    ToplevelUnsetFullscreenRequest,
)
from arp.protocol.objects.states import (
    COMMIT_FLOW,
    OWNERSHIP,
    SESSION_LIFE,
    SURFACE_LIFE,
    SURFACE_ROLE,
    CommitFlow,
    Ownership,
    RoleState,
    SessionLife,
    SurfaceLife,
)
from arp.protocol.objects.wire import AGENT_IDS, DISPLAY, RENDERER_IDS

MAX_OBJECTS = 1000
"""On one connection: ten surfaces with their roles, a dozen globals, and callbacks under way."""

MAX_GLOBALS = 2000
"""That one renderer may announce: some dozens of components, features and limits, with margin."""

MAX_WAITING_INPUTS = 1000
"""Inputs that the agent side may not have answered yet."""

SERIAL_AGE_S = 5.0
"""How old the input may be that a popup, an overlay or fullscreen is the answer to."""


class ObjectSurface(Struct):
    """What both ends know of a surface."""

    life: str = SurfaceLife.NEW
    role: str = RoleState.NONE
    role_id: int | None = None
    """The object of its role."""
    flow: str = CommitFlow.IDLE
    ownership: str = Ownership.OWNED
    pending: list[int] = []
    """Numbers of its commits that are not displayed yet, oldest first."""
    transfer: int | None = None
    """The number of the message that asked to hand it over."""
    components: int = 0
    """Rendered since the last commit."""
    ops: int = 0
    """Patched since the last commit."""
    states: tuple[str, ...] = ()
    name: str = ""
    """What its agent calls it."""
    title: str = ""
    parent: int | None = None
    """Of a popup: the surface below."""


class ObjectEntry(Struct):
    """One object."""

    interface: str
    version: int
    surface: ObjectSurface | None = None
    """Of an `ArpSurface`."""
    surface_id: int | None = None
    """Of a role: its surface."""
    made_by: int | None = None
    """The number of the message that made it."""


class GlobalEntry(Struct, frozen=True):
    """Something that the renderer offers."""

    interface: str
    version: int
    value: Json = None


class InputSerial(Struct, frozen=True):
    """One input, as serials name it."""

    surface_id: int
    at_s: float
    serial_no: int
    """The number of its message."""


class Objects:
    """All objects of one connection.

    Args:
        limits: That hold for this connection.
        serial_age_s: How old an input may be that a serial names; `None` = not checked here.
    """

    def __init__(self, limits: Limits, serial_age_s: float | None = None) -> None:
        self.limits = limits
        self.entries: dict[int, ObjectEntry] = {DISPLAY: ObjectEntry("ArpDisplay", 1)}
        self.dead: OrderedDict[int, None] = OrderedDict()
        """Ids whose objects this end has ended, while the other may not know it."""
        self.globals: dict[int, GlobalEntry] = {}
        self.session: str = SessionLife.NONE
        self.session_id: str | None = None
        self.focus: int | None = None
        self.waiting_inputs: dict[int, InputSerial] = {}
        """Those that are neither acknowledged nor refused, by serial."""
        self._refused_inputs: OrderedDict[int, None] = OrderedDict()
        """Serials of inputs that got an error: version 1 of `ArpInput` lets an `ack` follow."""
        self._serial_age_s = serial_age_s
        self._recent: OrderedDict[int, InputSerial] = OrderedDict()
        """Inputs that a serial may name, by serial."""
        self._last_serial = 0
        self._now_s = 0.0
        self._taken_back: list[int] = []
        self.apply_commit: Callable[[int], None] = lambda surface_id: None
        """Shows what a surface has pending, where this end keeps content; raises an `ArpError` if
        it does not fit, and then nothing of it shows."""

    # -- reading ---------------------------------------------------------------------------------

    def find(self, object_id: int, interface: str | None = None) -> ObjectEntry:
        """Return an object.

        Raises:
            UnknownObject: There is none, or it has another interface.
            SurfaceDestroyed: It was one, and this end has ended it.
        """
        entry = self.entries.get(object_id)
        if entry is None:
            if object_id in self.dead:
                raise SurfaceDestroyed(f"object {object_id} has ended", detail=str(object_id))
            raise UnknownObject(f"no object has the id {object_id}", detail=str(object_id))
        if interface is not None and entry.interface != interface:
            wrong = f"object {object_id} is no {interface} but an {entry.interface}"
            raise UnknownObject(wrong, detail=str(object_id))
        return entry

    def surface(self, surface_id: int) -> ObjectSurface:
        """Return a surface; raise as `find`."""
        entry = self.find(surface_id, "ArpSurface")
        assert entry.surface is not None
        return entry.surface

    def surface_of(self, object_id: int) -> int:
        """Return the id of the surface of a role, or of the surface itself."""
        entry = self.entries[object_id]
        return object_id if entry.surface_id is None else entry.surface_id

    def operation(self, object_id: int, op: str, kind: str) -> Operation:
        """Return what an operation of an object is.

        Args:
            object_id: The object.
            op: The name of the operation.
            kind: `requests` or `events`.

        Raises:
            ArpError: As `find`, or there is no such operation in the bound version.
        """
        if kind == "events" and object_id not in self.entries and object_id in RENDERER_IDS:
            made = _CREATING.get(op)
            if made is not None:
                return made
        entry = self.find(object_id)
        interface = INTERFACES[entry.interface]
        found: Mapping[str, Operation] = getattr(interface, kind)
        operation = found.get(op)
        if operation is None or operation.since > entry.version:
            version = f"version {entry.version} of {entry.interface}"
            raise InvalidMethod(f"{version} has no {kind[:-1]} {op!r:.60}", detail=op)
        return operation

    def offered(self, interface: str) -> int | None:
        """Return the number of the first global of an interface; `None` if it is not offered."""
        found = (name for name, one in self.globals.items() if one.interface == interface)
        return next(found, None)

    @property
    def surfaces(self) -> dict[int, ObjectSurface]:
        """Every surface by its id."""
        return {
            number: one.surface for number, one in self.entries.items() if one.surface is not None
        }

    # -- changing --------------------------------------------------------------------------------

    def request(
        self, object_id: int, operation: Operation, payload: Struct, serial_no: int, now_s: float
    ) -> None:
        """Take a request.

        Raises:
            ArpError: It is not possible now. Nothing has changed.
        """
        self._now_s = now_s
        made = self._check_ids(operation, payload)
        handle = _REQUESTS.get(type(payload))
        if handle is not None:
            handle(self, object_id, payload, serial_no)
        for new_id, interface in made:
            self._make(new_id, interface, self._version_of(object_id, payload, interface))
            self.entries[new_id].made_by = serial_no
        if operation.destroys:
            self._end(object_id)

    def event(
        self, object_id: int, operation: Operation, payload: Struct, serial_no: int, now_s: float
    ) -> None:
        """Take an event.

        Raises:
            ArpError: It is not possible now. Nothing has changed.
        """
        self._now_s = now_s
        for name, interface in operation.ids.items():
            self.find(getattr(payload, name), interface)
        handle = _EVENTS.get(type(payload))
        if handle is not None:
            handle(self, object_id, payload, serial_no)
        if operation.destroys:
            self._end(object_id)

    def drop_pending(self, surface_id: int) -> None:
        """Count anew what a surface has pending: the commit that it was for was refused."""
        surface = self.surface(surface_id)
        surface.components = surface.ops = 0

    def taken_back(self) -> list[int]:
        """Return the ids of what has ended since the last call because its message was refused."""
        ended, self._taken_back = self._taken_back, []
        return ended

    def remember_dead(self, ended: Iterable[int]) -> None:
        """Go on knowing ids whose objects this end has ended."""
        for one in ended:
            self.dead[one] = None
        while len(self.dead) > MAX_OBJECTS:
            self.dead.popitem(last=False)

    def forget_dead(self, ended: Iterable[int]) -> None:
        """Free ids: what was on its way has arrived."""
        for one in ended:
            self.dead.pop(one, None)

    def _check_ids(self, operation: Operation, payload: Struct) -> list[tuple[int, str]]:
        made: list[tuple[int, str]] = []
        for name, interface in operation.new_ids.items():
            new_id = getattr(payload, name)
            if new_id not in AGENT_IDS:
                wrong = f"{name}: the agent side makes ids in 1…{AGENT_IDS[-1]}, not {new_id}"
                raise UnknownObject(wrong, detail=name)
            if new_id in self.entries:
                wrong = f"{name}: {new_id} is the id of another object"
                raise UnknownObject(wrong, detail=name)
            made.append((new_id, interface or getattr(payload, "interface")))  # noqa: B009
        if made and len(self.entries) >= MAX_OBJECTS:
            raise ResourceLimit(f"more than {MAX_OBJECTS} objects", detail="new_id")
        for name, interface in operation.ids.items():
            named = getattr(payload, name)
            if named is not None:
                self.find(named, interface)
        return made

    def _version_of(self, maker: int, payload: Struct, interface: str) -> int:
        if isinstance(payload, RegistryBindRequest):
            return payload.version
        return min(self.entries[maker].version, INTERFACES[interface].version)

    def _make(self, new_id: int, interface: str, version: int) -> None:
        self.dead.pop(new_id, None)
        entry = self.entries.get(new_id)
        if entry is None:  # else its handler has made it
            self.entries[new_id] = ObjectEntry(interface, version)
        else:
            entry.version = version

    def ended_by(self, object_id: int) -> list[int]:
        """Return the ids that end with an object: its own and that of its role."""
        entry = self.entries[object_id]
        role_id = entry.surface.role_id if entry.surface is not None else None
        return [object_id] if role_id is None else [object_id, role_id]

    def _end(self, object_id: int) -> None:
        for one in self.ended_by(object_id):
            del self.entries[one]
        if self.focus == object_id:
            self.focus = None

    def _check_serial(self, serial: int | None, surface_id: int | None, name: str) -> None:
        """Check that a serial is that of a recent input.

        Args:
            serial: As the agent side names it.
            surface_id: Of which surface; `None` = of any.
            name: The argument.

        Source: docs/protocol.md, "Serials".
        """
        if self._serial_age_s is None:
            return
        found = self._recent.get(serial) if serial is not None else None
        if found is None or (surface_id is not None and found.surface_id != surface_id):
            wrong = f"{name}: {serial} is no recent input of that surface"
            raise InvalidSerial(wrong, detail=name)
        if self._now_s - found.at_s > self._serial_age_s:
            wrong = f"{name}: the input {serial} is older than {self._serial_age_s:g} s"
            raise InvalidSerial(wrong, detail=name)

    # -- requests --------------------------------------------------------------------------------

    def _bind(self, _: int, payload: RegistryBindRequest, __: int) -> None:
        offer = self.globals.get(payload.name)
        if offer is None or offer.interface != payload.interface:
            wrong = f"name: no global {payload.name} with the interface {payload.interface!r:.60}"
            raise UnknownObject(wrong, detail="name")
        if payload.interface not in INTERFACES:
            raise UnknownObject(f"interface: {payload.interface!r:.60} has no objects")
        most = min(offer.version, INTERFACES[payload.interface].version)
        if not 1 <= payload.version <= most:
            wrong = f"version: {payload.version} is not offered; at most {most}"
            raise VersionMismatch(wrong, detail="version")

    def _create_surface(self, _: int, payload: CompositorCreateSurfaceRequest, __: int) -> None:
        if len(self.surfaces) >= self.limits.max_surfaces:
            wrong = f"more than {self.limits.max_surfaces} surfaces"
            raise ResourceLimit(wrong, detail="max_surfaces")
        surface = ObjectSurface(name=payload.name or "")
        self.entries[payload.new_id] = ObjectEntry("ArpSurface", 1, surface)

    def _open_surface(self, surface_id: int) -> ObjectSurface:
        surface = self.surface(surface_id)
        if surface.life == SurfaceLife.CLOSED:
            raise SurfaceDestroyed(f"surface {surface_id} was closed", detail=str(surface_id))
        return surface

    def _render(self, surface_id: int, payload: SurfaceRenderRequest, _: int) -> None:
        surface, most = self._open_surface(surface_id), self.limits.max_components_per_commit
        count = surface.components + component_count(payload.components)
        if count > most:
            wrong = f"components: more than {most} in one commit"
            raise ResourceLimit(wrong, detail="max_components_per_commit")
        surface.components = count

    def _patch(self, surface_id: int, payload: SurfacePatchRequest, _: int) -> None:
        surface, most = self._open_surface(surface_id), self.limits.max_patch_ops
        count = surface.ops + len(payload.ops)
        if count > most:
            raise ResourceLimit(f"ops: more than {most} in one commit", detail="max_patch_ops")
        surface.ops = count

    def _commit(self, surface_id: int, _: SurfaceCommitRequest, serial_no: int) -> None:
        surface, most = self._open_surface(surface_id), self.limits.max_pending_commits
        count = len(surface.pending) + 1
        event = "fill" if count >= most else "commit"
        if event not in COMMIT_FLOW[surface.flow]:
            wrong = f"{most} commits of surface {surface_id} are not displayed yet; wait"
            raise ResourceLimit(wrong, detail="max_pending_commits")
        self.apply_commit(surface_id)
        surface.flow = COMMIT_FLOW[surface.flow][event]
        surface.life = SURFACE_LIFE[surface.life]["commit"]
        surface.pending = [*surface.pending, serial_no]
        surface.components = surface.ops = 0

    def _title(
        self, object_id: int, payload: SurfaceSetTitleRequest | ToplevelSetTitleRequest, _: int
    ) -> None:
        self._open_surface(self.surface_of(object_id)).title = payload.title

    def _transfer(self, surface_id: int, payload: SurfaceTransferRequest, number: int) -> None:
        surface = self._open_surface(surface_id)
        if surface.role in (RoleState.POPUP, RoleState.OVERLAY):
            raise TransferDenied(f"surface {surface_id} is a {surface.role}", detail="to_session")
        if payload.to_session == self.session_id:
            raise TransferDenied("to_session: it is on that session", detail="to_session")
        if "transfer" not in OWNERSHIP[surface.ownership]:
            wrong = f"surface {surface_id} is being handed over already"
            raise TransferDenied(wrong, detail="to_session")
        surface.ownership = OWNERSHIP[surface.ownership]["transfer"]
        surface.transfer = number

    def _destroy_surface(self, surface_id: int, _: SurfaceDestroyRequest, __: int) -> None:
        surface = self.surface(surface_id)
        surface.life = SURFACE_LIFE[surface.life]["destroy"]

    def _toplevel(self, _: int, payload: ShellGetToplevelRequest, __: int) -> None:
        self._give_role(payload.surface_id, payload.new_id, "toplevel")

    def _popup(self, _: int, payload: ShellGetPopupRequest, __: int) -> None:
        self._may_have_role(payload.surface_id, "popup")
        if payload.parent_id == payload.surface_id:
            raise UnknownObject("parent_id: a popup opens over another surface", detail="parent_id")
        self._open_surface(payload.parent_id)
        self._check_serial(payload.trigger_serial, payload.parent_id, "trigger_serial")
        self._give_role(payload.surface_id, payload.new_id, "popup")
        self.surface(payload.surface_id).parent = payload.parent_id

    def _overlay(self, _: int, payload: ShellGetOverlayRequest, __: int) -> None:
        self._may_have_role(payload.surface_id, "overlay")
        self._check_serial(payload.trigger_serial, None, "trigger_serial")
        self._give_role(payload.surface_id, payload.new_id, "overlay")

    def _may_have_role(self, surface_id: int, role: str) -> ObjectSurface:
        surface = self._open_surface(surface_id)
        if role not in SURFACE_ROLE[surface.role] or "role" not in SURFACE_LIFE[surface.life]:
            wrong = f"surface {surface_id} is a {surface.role} for its whole life"
            raise RoleConflict(wrong, detail="surface_id")
        return surface

    def _give_role(self, surface_id: int, role_id: int, role: str) -> None:
        surface = self._may_have_role(surface_id, role)
        surface.role = SURFACE_ROLE[surface.role][role]
        surface.life = SURFACE_LIFE[surface.life]["role"]
        surface.role_id = role_id
        interface = f"Arp{role.capitalize()}"
        self.entries[role_id] = ObjectEntry(interface, 1, surface_id=surface_id)

    def _role(self, role_id: int, _: Struct, __: int) -> None:
        self._open_surface(self.surface_of(role_id))

    def _anchor(self, overlay_id: int, payload: OverlaySetAnchorRequest, _: int) -> None:
        if payload.surface_id == self.surface_of(overlay_id):
            raise UnknownObject("surface_id: an overlay is anchored to another surface")
        self._open_surface(self.surface_of(overlay_id))
        self._open_surface(payload.surface_id)

    def _fullscreen(self, toplevel: int, payload: ToplevelSetFullscreenRequest, _: int) -> None:
        surface_id = self.surface_of(toplevel)
        self._open_surface(surface_id)
        self._check_serial(payload.trigger_serial, surface_id, "trigger_serial")

    def _answer(self, _: int, payload: InputAckRequest | InputRefuseRequest, __: int) -> None:
        if isinstance(payload, InputAckRequest) and payload.serial in self._refused_inputs:
            del self._refused_inputs[payload.serial]
            return
        if payload.serial not in self.waiting_inputs:
            wrong = f"serial: no input {payload.serial} waits for an answer"
            raise InvalidSerial(wrong, detail="serial")
        del self.waiting_inputs[payload.serial]

    def _event_refused(self, _: int, payload: DisplayErrorRequest, __: int) -> None:
        """Forget an input that was refused as a message, and a surface that was not taken."""
        self._take_back(payload.refused_seq, RENDERER_IDS)
        for serial, one in list(self.waiting_inputs.items()):
            if one.serial_no == payload.refused_seq:
                del self.waiting_inputs[serial]
                self._refused_inputs[serial] = None
        while len(self._refused_inputs) > MAX_WAITING_INPUTS:
            self._refused_inputs.popitem(last=False)

    def _take_back(self, refused_no: int | None, ids: range) -> None:
        """End the surface or the role that a refused message has made.

        Args:
            refused_no: The number of the message.
            ids: Of objects that the sender of that message makes; the other side numbers its
                messages as well.
        """
        for key, one in list(self.entries.items()):
            is_made = one.made_by is not None and one.made_by == refused_no and key in ids
            if not is_made or (one.surface is None and one.surface_id is None):
                continue
            if one.surface_id is not None:
                surface = self.surface(one.surface_id)
                surface.role = SURFACE_ROLE[surface.role]["refused"]
                if "refused" in SURFACE_LIFE[surface.life]:
                    surface.life = SURFACE_LIFE[surface.life]["refused"]
                surface.role_id = surface.parent = None
            self._taken_back += self.ended_by(key)
            self._end(key)

    def _create_session(self, _: int, payload: SessionCreateRequest, __: int) -> None:
        self._move_session("create")
        self.session_id = payload.session_id

    def _state_update(self, _: int, __: SessionStateUpdateRequest, ___: int) -> None:
        self._move_session("state_update")

    def _destroy_session(self, _: int, __: SessionDestroyRequest, ___: int) -> None:
        self._move_session("destroy")
        self.session_id = None

    def _move_session(self, event: str) -> None:
        moves = SESSION_LIFE[self.session]
        if event not in moves:
            wrong = f"the session is {self.session}: no {event} is possible now"
            raise SessionNotFound(wrong, detail=event)
        self.session = moves[event]

    # -- events ----------------------------------------------------------------------------------

    def _global(self, _: int, payload: RegistryGlobalEvent, __: int) -> None:
        offer = GlobalEntry(payload.interface, payload.version, payload.value)
        known = self.globals.get(payload.name)
        if known is not None and known != offer:  # the same may come on a second registry
            raise UnknownObject(f"name: {payload.name} is another global", detail="name")
        if known is None and len(self.globals) >= MAX_GLOBALS:
            raise ResourceLimit(f"more than {MAX_GLOBALS} globals", detail="name")
        self.globals[payload.name] = offer

    def _global_remove(self, _: int, payload: RegistryGlobalRemoveEvent, __: int) -> None:
        if payload.name not in self.globals:
            raise UnknownObject(f"name: there is no global {payload.name}", detail="name")
        del self.globals[payload.name]

    def _frame_ack(self, surface_id: int, payload: SurfaceFrameAckEvent, _: int) -> None:
        surface = self.surface(surface_id)
        if payload.commit_seq not in surface.pending:
            wrong = f"commit_seq: no commit {payload.commit_seq} waits to be displayed"
            raise InvalidSerial(wrong, detail="commit_seq")
        place = surface.pending.index(payload.commit_seq) + 1
        self._still_pending(surface, surface.pending[place:])

    @staticmethod
    def _still_pending(surface: ObjectSurface, pending: list[int]) -> None:
        surface.pending = pending
        surface.flow = COMMIT_FLOW[surface.flow]["ack" if pending else "drain"]

    def _configure(
        self,
        object_id: int,
        payload: (
            SurfaceConfigureEvent
            | ToplevelConfigureEvent
            | PopupConfigureEvent
            | OverlayConfigureEvent
        ),
        _: int,
    ) -> None:
        surface_id = self.surface_of(object_id)
        surface = self._open_surface(surface_id)
        if "configure" not in SURFACE_LIFE[surface.life]:
            wrong = f"surface {surface_id} has no role, so it is not configured"
            raise RoleConflict(wrong, detail=str(surface_id))
        surface.life = SURFACE_LIFE[surface.life]["configure"]
        if isinstance(payload, SurfaceConfigureEvent | ToplevelConfigureEvent):
            surface.states = tuple(payload.states)

    def _close(self, object_id: int, _: Struct, __: int) -> None:
        surface = self._open_surface(self.surface_of(object_id))
        surface.life = SURFACE_LIFE[surface.life]["close"]

    def _want_close(self, object_id: int, _: ToplevelCloseEvent, __: int) -> None:
        self._open_surface(self.surface_of(object_id))

    def _transferred(self, surface_id: int, _: SurfaceTransferredEvent, __: int) -> None:
        surface = self._open_surface(surface_id)
        if "transferred" not in OWNERSHIP[surface.ownership]:
            wrong = f"surface {surface_id} was not to be handed over"
            raise TransferDenied(wrong, detail=str(surface_id))
        surface.ownership = OWNERSHIP[surface.ownership]["transferred"]
        surface.life = SURFACE_LIFE[surface.life]["transferred"]

    def _acquired(self, new_id: int, payload: SurfaceSurfaceAcquiredEvent, serial_no: int) -> None:
        if len(self.surfaces) >= self.limits.max_surfaces:
            wrong = f"more than {self.limits.max_surfaces} surfaces"
            raise ResourceLimit(wrong, detail="max_surfaces")
        compositor = (one for one in self.entries.values() if one.interface == "ArpCompositor")
        version = max((one.version for one in compositor), default=1)
        surface = ObjectSurface(life=SurfaceLife.SHOWN, title=payload.title or "")
        self.dead.pop(new_id, None)
        self.entries[new_id] = ObjectEntry("ArpSurface", version, surface, made_by=serial_no)

    def _input(self, _: int, payload: InputInputEvent, serial_no: int) -> None:
        self._open_surface(payload.surface_id)
        if payload.serial <= self._last_serial:
            wrong = f"serial: {payload.serial} does not rise; the last one was {self._last_serial}"
            raise InvalidSerial(wrong, detail="serial")
        if len(self.waiting_inputs) >= MAX_WAITING_INPUTS:
            wrong = f"more than {MAX_WAITING_INPUTS} inputs wait for an answer"
            raise ResourceLimit(wrong, detail="serial")
        check_count(payload.data, "data", "data")
        self._last_serial = payload.serial
        serial = InputSerial(payload.surface_id, self._now_s, serial_no)
        self.waiting_inputs[payload.serial] = self._recent[payload.serial] = serial
        while len(self._recent) > MAX_WAITING_INPUTS:
            self._recent.popitem(last=False)

    def _focus(self, _: int, payload: InputFocusEvent, __: int) -> None:
        self._open_surface(payload.surface_id)
        self.focus = payload.surface_id

    def _unfocus(self, _: int, payload: InputUnfocusEvent, __: int) -> None:
        if self.focus != payload.surface_id:
            wrong = f"surface {payload.surface_id} has not the focus"
            raise UnknownObject(wrong, detail="surface_id")
        self.focus = None

    def _resumed(self, _: int, payload: SessionResumedEvent, __: int) -> None:
        self._move_session("resumed")
        self.session_id = payload.session_id

    def _refused(self, _: int, payload: DisplayErrorEvent, __: int) -> None:
        """Take back what a refused request has made, and what waited for it."""
        self._take_back(payload.refused_seq, AGENT_IDS)
        entry = self.entries.get(payload.object_id)
        if entry is None or entry.surface is None:
            return
        surface = entry.surface
        if payload.refused_seq in surface.pending:
            rest = [number for number in surface.pending if number != payload.refused_seq]
            self._still_pending(surface, rest)
        elif surface.transfer is not None and payload.refused_seq == surface.transfer:
            surface.ownership = OWNERSHIP[surface.ownership]["denied"]
            surface.transfer = None


def component_count(components: Iterable[Component]) -> int:
    """Count components, nested ones included; what fits no schema counts as nothing in it."""
    count, level = 0, [(one.type, one.props) for one in components]
    while level:
        count += len(level)
        level = [child for kind, props in level for child in _children(kind, props)]
    return count


def _children(kind: str, props: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for name in slot_names(kind):
        given = props.get(name)
        for item in given if isinstance(given, list) else [given]:
            child = item.get("component") if name == "tabs" and isinstance(item, dict) else item
            if not isinstance(child, dict):
                continue
            child_kind, child_props = child.get("type"), child.get("props")
            if isinstance(child_kind, str) and isinstance(child_props, dict):
                yield child_kind, child_props


Handler = Callable[[Objects, int, Any, int], None]

_REQUESTS: Mapping[type[Struct], Handler] = {
    RegistryBindRequest: Objects._bind,
    CompositorCreateSurfaceRequest: Objects._create_surface,
    SurfaceRenderRequest: Objects._render,
    SurfacePatchRequest: Objects._patch,
    SurfaceCommitRequest: Objects._commit,
    SurfaceSetTitleRequest: Objects._title,
    SurfaceTransferRequest: Objects._transfer,
    SurfaceDestroyRequest: Objects._destroy_surface,
    ShellGetToplevelRequest: Objects._toplevel,
    ShellGetPopupRequest: Objects._popup,
    ShellGetOverlayRequest: Objects._overlay,
    OverlaySetAnchorRequest: Objects._anchor,
    OverlaySetTimeoutRequest: Objects._role,
    ToplevelSetTitleRequest: Objects._title,
    ToplevelUnsetFullscreenRequest: Objects._role,
    ToplevelSetFullscreenRequest: Objects._fullscreen,
    InputAckRequest: Objects._answer,
    InputRefuseRequest: Objects._answer,
    DisplayErrorRequest: Objects._event_refused,
    SessionCreateRequest: Objects._create_session,
    SessionStateUpdateRequest: Objects._state_update,
    SessionDestroyRequest: Objects._destroy_session,
}
"""What a request checks and changes besides the ids in it; the others change nothing else."""

_EVENTS: Mapping[type[Struct], Handler] = {
    RegistryGlobalEvent: Objects._global,
    RegistryGlobalRemoveEvent: Objects._global_remove,
    SurfaceFrameAckEvent: Objects._frame_ack,
    SurfaceConfigureEvent: Objects._configure,
    ToplevelConfigureEvent: Objects._configure,
    PopupConfigureEvent: Objects._configure,
    OverlayConfigureEvent: Objects._configure,
    SurfaceClosedEvent: Objects._close,
    PopupPopupDoneEvent: Objects._close,
    OverlayDismissedEvent: Objects._close,
    ToplevelCloseEvent: Objects._want_close,
    SurfaceTransferredEvent: Objects._transferred,
    SurfaceSurfaceAcquiredEvent: Objects._acquired,
    InputInputEvent: Objects._input,
    InputFocusEvent: Objects._focus,
    InputUnfocusEvent: Objects._unfocus,
    SessionResumedEvent: Objects._resumed,
    DisplayErrorEvent: Objects._refused,
}

_CREATING: Mapping[str, Operation] = {
    name: operation
    for interface in INTERFACES.values()
    for name, operation in interface.events.items()
    if operation.creates is not None
}
"""Events that make the object that they are sent on."""
