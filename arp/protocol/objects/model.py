"""The objects of one connection: which messages are allowed now, and what they change.

Theory of operation. Both sides keep an `Objects`. `request` and `event` apply one message each.
They check the whole message against the tables of `states` before they change anything. If they
raise, nothing has changed, and the sender of the message gets the error. The sender applies a
message before it sends it, the receiver on arrival. The two sides therefore differ only by the
messages in transit.

Ids. The side that ends an object remembers its id as *dead*, and ignores messages for it: the peer
sent them before it knew of the end. The agent side reuses such an id when a `sync`, sent after the
end of the object, is done. An id of an object that the renderer ended is free at once.
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
"""Maximum number of objects on one connection: enough for ten surfaces with roles, a dozen globals,
and the callbacks in transit."""

MAX_GLOBALS = 2000
"""Maximum number of globals of a renderer, which needs a few dozen."""

MAX_WAITING_INPUTS = 1000
"""Maximum number of inputs that the agent side has neither acknowledged nor refused."""

SERIAL_AGE_S = 5.0
"""Maximum age, in seconds, of the input that a request for a popup, overlay or fullscreen names."""


class ObjectSurface(Struct):
    """State of a surface that both sides know."""

    life: str = SurfaceLife.NEW
    role: str = RoleState.NONE
    role_id: int | None = None
    """Id of the object of its role."""
    flow: str = CommitFlow.IDLE
    ownership: str = Ownership.OWNED
    pending: list[int] = []
    """Message numbers of commits that are not displayed yet, oldest first."""
    transfer: int | None = None
    """Message number of the open transfer request."""
    components: int = 0
    """Number of components rendered since the last commit."""
    ops: int = 0
    """Number of patch operations since the last commit."""
    states: tuple[str, ...] = ()
    name: str = ""
    """Name given by the agent."""
    title: str = ""
    parent: int | None = None
    """Id of the surface below; popups only."""


class ObjectEntry(Struct):
    """One object."""

    interface: str
    version: int
    surface: ObjectSurface | None = None
    """State of the surface, if the object is an `ArpSurface`."""
    surface_id: int | None = None
    """Id of the surface, if the object is a role."""
    made_by: int | None = None
    """Number of the message that created the object."""


class GlobalEntry(Struct, frozen=True):
    """A global that the renderer offers."""

    interface: str
    version: int
    value: Json = None


class InputSerial(Struct, frozen=True):
    """The input that a serial names."""

    surface_id: int
    at_s: float
    serial_no: int
    """Number of its message."""


class Objects:
    """All objects of one connection.

    Args:
        limits: Limits of this connection.
        serial_age_s: Maximum age, in seconds, of an input that a serial names; `None` = this side
            does not check serials.
    """

    def __init__(self, limits: Limits, serial_age_s: float | None = None) -> None:
        self.limits = limits
        self.entries: dict[int, ObjectEntry] = {DISPLAY: ObjectEntry("ArpDisplay", 1)}
        self.dead: OrderedDict[int, None] = OrderedDict()
        """Ids of objects that this side has ended; the peer may not know of the end yet."""
        self.globals: dict[int, GlobalEntry] = {}
        self.session: str = SessionLife.NONE
        self.session_id: str | None = None
        self.focus: int | None = None
        self.waiting_inputs: dict[int, InputSerial] = {}
        """Inputs that are neither acknowledged nor refused, by serial."""
        self._refused_inputs: OrderedDict[int, None] = OrderedDict()
        """Serials of refused inputs. In version 1 of `ArpInput` an `ack` may follow the error."""
        self._serial_age_s = serial_age_s
        self._recent: OrderedDict[int, InputSerial] = OrderedDict()
        """Inputs that a serial may name, by serial."""
        self._last_serial = 0
        self._now_s = 0.0
        self._undone: list[int] = []
        """Ids of objects ended by `_undo_creation` since the last call of `pop_undone`."""
        self.apply_commit: Callable[[int], None] = lambda surface_id: None
        """Callback that applies the pending changes of a surface, if this side keeps content. It
        raises an `ArpError` and changes nothing if they do not fit."""

    # -- reading ---------------------------------------------------------------------------------

    def find(self, object_id: int, interface: str | None = None) -> ObjectEntry:
        """Return an object.

        Raises:
            UnknownObject: There is no such object, or it has another interface.
            SurfaceDestroyed: This side has ended the object.
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
        """Return the state of a surface; raise the errors of `find`."""
        entry = self.find(surface_id, "ArpSurface")
        assert entry.surface is not None
        return entry.surface

    def surface_of(self, object_id: int) -> int:
        """Return the surface id of a role; for a surface, its own id."""
        entry = self.entries[object_id]
        return object_id if entry.surface_id is None else entry.surface_id

    def operation(self, object_id: int, op: str, kind: str) -> Operation:
        """Return the definition of an operation.

        Args:
            object_id: The object.
            op: The name of the operation.
            kind: `requests` or `events`.

        Raises:
            UnknownObject, SurfaceDestroyed: See `find`.
            InvalidMethod: The bound version has no such operation.
        """
        # An event such as `surface_acquired` creates the object that it is sent on.
        if kind == "events" and object_id not in self.entries and object_id in RENDERER_IDS:
            creating = _CREATING.get(op)
            if creating is not None:
                return creating
        entry = self.find(object_id)
        interface = INTERFACES[entry.interface]
        found: Mapping[str, Operation] = getattr(interface, kind)
        operation = found.get(op)
        if operation is None or operation.since > entry.version:
            version = f"version {entry.version} of {entry.interface}"
            raise InvalidMethod(f"{version} has no {kind[:-1]} {op!r:.60}", detail=op)
        return operation

    def offered(self, interface: str) -> int | None:
        """Return the number of the first global with an interface; `None` if none is offered."""
        found = (name for name, one in self.globals.items() if one.interface == interface)
        return next(found, None)

    @property
    def surfaces(self) -> dict[int, ObjectSurface]:
        """All surfaces by id."""
        return {
            number: one.surface for number, one in self.entries.items() if one.surface is not None
        }

    # -- changing --------------------------------------------------------------------------------

    def request(
        self, object_id: int, operation: Operation, payload: Struct, serial_no: int, now_s: float
    ) -> None:
        """Apply a request.

        Raises:
            ArpError: The request is not allowed now. Nothing has changed.
        """
        self._now_s = now_s
        new_objects = self._check_ids(operation, payload)
        handle = _REQUESTS.get(type(payload))
        if handle is not None:
            handle(self, object_id, payload, serial_no)
        for new_id, interface in new_objects:
            self._make(new_id, interface, self._version_of(object_id, payload, interface))
            self.entries[new_id].made_by = serial_no
        if operation.destroys:
            self._end(object_id)

    def event(
        self, object_id: int, operation: Operation, payload: Struct, serial_no: int, now_s: float
    ) -> None:
        """Apply an event.

        Raises:
            ArpError: The event is not allowed now. Nothing has changed.
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
        """Reset the counts of pending changes of a surface, because their commit was refused."""
        surface = self.surface(surface_id)
        surface.components = surface.ops = 0

    def pop_undone(self) -> list[int]:
        """Return the ids of objects that ended because the message that created them was refused.

        Each id is returned once.
        """
        ended, self._undone = self._undone, []
        return ended

    def remember_dead(self, ended: Iterable[int]) -> None:
        """Remember ids of objects that this side has ended."""
        for one in ended:
            self.dead[one] = None
        while len(self.dead) > MAX_OBJECTS:
            self.dead.popitem(last=False)

    def forget_dead(self, ended: Iterable[int]) -> None:
        """Free ids, because no message for their objects is in transit any more."""
        for one in ended:
            self.dead.pop(one, None)

    def _check_ids(self, operation: Operation, payload: Struct) -> list[tuple[int, str]]:
        """Check all ids in a request; return the ids and interfaces of the objects it creates.

        Raises:
            ArpError: An id is in use, out of range or unknown, or there are too many objects.
        """
        new_objects: list[tuple[int, str]] = []
        for name, interface in operation.new_ids.items():
            new_id = getattr(payload, name)
            if new_id not in AGENT_IDS:
                wrong = f"{name}: the agent side makes ids in 1…{AGENT_IDS[-1]}, not {new_id}"
                raise UnknownObject(wrong, detail=name)
            if new_id in self.entries:
                wrong = f"{name}: {new_id} is the id of another object"
                raise UnknownObject(wrong, detail=name)
            # `bind` names the interface in its payload; for all others it is fixed.
            new_objects.append((new_id, interface or getattr(payload, "interface")))  # noqa: B009
        if new_objects and len(self.entries) >= MAX_OBJECTS:
            raise ResourceLimit(f"more than {MAX_OBJECTS} objects", detail="new_id")
        for name, interface in operation.ids.items():
            named = getattr(payload, name)
            if named is not None:
                self.find(named, interface)
        return new_objects

    def _version_of(self, maker: int, payload: Struct, interface: str) -> int:
        if isinstance(payload, RegistryBindRequest):
            return payload.version
        return min(self.entries[maker].version, INTERFACES[interface].version)

    def _make(self, new_id: int, interface: str, version: int) -> None:
        self.dead.pop(new_id, None)
        entry = self.entries.get(new_id)
        if entry is None:
            self.entries[new_id] = ObjectEntry(interface, version)
        else:
            entry.version = version  # the handler has created a surface or a role

    def ended_by(self, object_id: int) -> list[int]:
        """Return the ids that end together with an object: its own and that of its role."""
        entry = self.entries[object_id]
        role_id = entry.surface.role_id if entry.surface is not None else None
        return [object_id] if role_id is None else [object_id, role_id]

    def _end(self, object_id: int) -> None:
        for one in self.ended_by(object_id):
            del self.entries[one]
        if self.focus == object_id:
            self.focus = None

    def _check_serial(self, serial: int | None, surface_id: int | None, name: str) -> None:
        """Check that a serial names a recent input.

        Args:
            serial: The serial in the request.
            surface_id: Surface of the input; `None` = any surface.
            name: Name of the argument, for the error.

        Raises:
            InvalidSerial: No such input, or it is too old.

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
        # The commit that reaches the limit is still accepted; FULL then refuses the next one.
        event = "fill" if count >= most else "commit"
        if event not in COMMIT_FLOW[surface.flow]:
            wrong = f"{most} commits of surface {surface_id} are not displayed yet; wait"
            raise ResourceLimit(wrong, detail="max_pending_commits")
        self.apply_commit(surface_id)  # may raise, so it comes before every change
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
            wrong = "to_session: the surface is in that session already"
            raise TransferDenied(wrong, detail="to_session")
        if "transfer" not in OWNERSHIP[surface.ownership]:
            wrong = f"surface {surface_id} is being transferred already"
            raise TransferDenied(wrong, detail="to_session")
        surface.ownership = OWNERSHIP[surface.ownership]["transfer"]
        surface.transfer = number

    def _destroy_surface(self, surface_id: int, _: SurfaceDestroyRequest, __: int) -> None:
        surface = self.surface(surface_id)
        surface.life = SURFACE_LIFE[surface.life]["destroy"]

    def _toplevel(self, _: int, payload: ShellGetToplevelRequest, __: int) -> None:
        self._give_role(payload.surface_id, payload.new_id, "toplevel")

    def _popup(self, _: int, payload: ShellGetPopupRequest, __: int) -> None:
        # Without this first check, a wrong parent or serial would hide the role conflict.
        self._check_role(payload.surface_id, "popup")
        if payload.parent_id == payload.surface_id:
            raise UnknownObject("parent_id: a popup opens over another surface", detail="parent_id")
        self._open_surface(payload.parent_id)
        self._check_serial(payload.trigger_serial, payload.parent_id, "trigger_serial")
        self._give_role(payload.surface_id, payload.new_id, "popup")
        self.surface(payload.surface_id).parent = payload.parent_id

    def _overlay(self, _: int, payload: ShellGetOverlayRequest, __: int) -> None:
        self._check_role(payload.surface_id, "overlay")
        self._check_serial(payload.trigger_serial, None, "trigger_serial")
        self._give_role(payload.surface_id, payload.new_id, "overlay")

    def _check_role(self, surface_id: int, role: str) -> ObjectSurface:
        """Return a surface that may get a role.

        Raises:
            RoleConflict: The surface has a role already.
        """
        surface = self._open_surface(surface_id)
        if role not in SURFACE_ROLE[surface.role] or "role" not in SURFACE_LIFE[surface.life]:
            wrong = f"surface {surface_id} is a {surface.role} for its whole life"
            raise RoleConflict(wrong, detail="surface_id")
        return surface

    def _give_role(self, surface_id: int, role_id: int, role: str) -> None:
        surface = self._check_role(surface_id, role)
        surface.role = SURFACE_ROLE[surface.role][role]
        surface.life = SURFACE_LIFE[surface.life]["role"]
        surface.role_id = role_id
        interface = f"Arp{role.capitalize()}"
        self.entries[role_id] = ObjectEntry(interface, 1, surface_id=surface_id)

    def _check_open(self, role_id: int, _: Struct, __: int) -> None:
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
            # Version 1 of `ArpInput`: the error has already answered this input.
            del self._refused_inputs[payload.serial]
            return
        if payload.serial not in self.waiting_inputs:
            wrong = f"serial: no input {payload.serial} waits for an answer"
            raise InvalidSerial(wrong, detail="serial")
        del self.waiting_inputs[payload.serial]

    def _event_refused(self, _: int, payload: DisplayErrorRequest, __: int) -> None:
        """Undo a refused event: forget a refused input, or end a surface that was not accepted."""
        self._undo_creation(payload.refused_seq, RENDERER_IDS)
        for serial, one in list(self.waiting_inputs.items()):
            if one.serial_no == payload.refused_seq:
                del self.waiting_inputs[serial]
                self._refused_inputs[serial] = None
        while len(self._refused_inputs) > MAX_WAITING_INPUTS:
            self._refused_inputs.popitem(last=False)

    def _undo_creation(self, refused_no: int | None, ids: range) -> None:
        """End the surface or the role that a refused message created.

        Args:
            refused_no: The number of the message.
            ids: Ids that the sender of the message allocates. Each side numbers its own messages,
                so the number alone could name an object of the other side.
        """
        for key, one in list(self.entries.items()):
            was_created = one.made_by is not None and one.made_by == refused_no and key in ids
            if not was_created or (one.surface is None and one.surface_id is None):
                continue
            if one.surface_id is not None:
                surface = self.surface(one.surface_id)
                # A refused role ends only the role; the surface may get another one.
                surface.role = SURFACE_ROLE[surface.role]["refused"]
                if "refused" in SURFACE_LIFE[surface.life]:
                    surface.life = SURFACE_LIFE[surface.life]["refused"]
                surface.role_id = surface.parent = None
            self._undone += self.ended_by(key)
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
        if known is not None and known != offer:  # a second registry repeats the same global
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
        # An acknowledgement covers all earlier commits too.
        next_index = surface.pending.index(payload.commit_seq) + 1
        self._set_pending(surface, surface.pending[next_index:])

    @staticmethod
    def _set_pending(surface: ObjectSurface, pending: list[int]) -> None:
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
            wrong = f"surface {surface_id} has no open transfer"
            raise TransferDenied(wrong, detail=str(surface_id))
        surface.ownership = OWNERSHIP[surface.ownership]["transferred"]
        surface.life = SURFACE_LIFE[surface.life]["transferred"]

    def _acquired(self, new_id: int, payload: SurfaceSurfaceAcquiredEvent, serial_no: int) -> None:
        if len(self.surfaces) >= self.limits.max_surfaces:
            wrong = f"more than {self.limits.max_surfaces} surfaces"
            raise ResourceLimit(wrong, detail="max_surfaces")
        compositor = (one for one in self.entries.values() if one.interface == "ArpCompositor")
        version = max((one.version for one in compositor), default=1)
        # The renderer already shows the content, so the surface does not begin as NEW.
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
        """Undo a refused request: the object that it created, its commit or its transfer."""
        self._undo_creation(payload.refused_seq, AGENT_IDS)
        entry = self.entries.get(payload.object_id)
        if entry is None or entry.surface is None:
            return
        surface = entry.surface
        if payload.refused_seq in surface.pending:
            rest = [number for number in surface.pending if number != payload.refused_seq]
            self._set_pending(surface, rest)
        elif surface.transfer is not None and payload.refused_seq == surface.transfer:
            surface.ownership = OWNERSHIP[surface.ownership]["denied"]
            surface.transfer = None


def component_count(components: Iterable[Component]) -> int:
    """Count components and their descendants; malformed children are not counted."""
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
    OverlaySetTimeoutRequest: Objects._check_open,
    ToplevelSetTitleRequest: Objects._title,
    ToplevelUnsetFullscreenRequest: Objects._check_open,
    ToplevelSetFullscreenRequest: Objects._fullscreen,
    InputAckRequest: Objects._answer,
    InputRefuseRequest: Objects._answer,
    DisplayErrorRequest: Objects._event_refused,
    SessionCreateRequest: Objects._create_session,
    SessionStateUpdateRequest: Objects._state_update,
    SessionDestroyRequest: Objects._destroy_session,
}
"""Handlers of requests. Requests without a handler only create or end the objects they name."""

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
"""Events that create the object on which they are sent."""
