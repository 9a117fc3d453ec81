"""The renderer side of a connection in the object dialect, without I/O.

The connection answers `get_registry` and `sync` itself and keeps the content of each surface. A
renderer that shows a conversation (`keeps_content=False`) keeps the content in its own `Screen`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from arp.protocol.codec import Encoding
from arp.protocol.components import Component
from arp.protocol.errors import ArpError, InvalidMethod, TransferDenied
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.limits import Limits
from arp.protocol.messages import Input, InputType
from arp.protocol.objects.connection import ObjectConnection, ObjectEvent
from arp.protocol.objects.content import SurfaceChange, SurfaceContent
from arp.protocol.objects.messages import (
    INTERFACES,
    CallbackDoneEvent,
    DisplayErrorEvent,
    DisplayGetRegistryRequest,
    DisplaySyncRequest,
    InputFocusEvent,
    InputInputEvent,
    InputUnfocusEvent,
    OverlayConfigureEvent,
    OverlayDismissedEvent,
    PopupConfigureEvent,
    PopupPopupDoneEvent,
    Rectangle,
    RegistryGlobalEvent,
    RegistryGlobalRemoveEvent,
    SessionResumedEvent,
    SurfaceClosedEvent,
    SurfaceConfigureEvent,
    SurfaceFrameAckEvent,
    SurfacePatchRequest,
    SurfaceRenderRequest,
    SurfaceSurfaceAcquiredEvent,
    SurfaceTransferredEvent,
    ToplevelConfigureEvent,
)
from arp.protocol.objects.model import SERIAL_AGE_S, Objects
from arp.protocol.objects.states import RoleState
from arp.protocol.objects.wire import (
    DISPLAY,
    RENDERER_IDS,
    ObjectEnvelope,
    ObjectMessage,
    RefusedEnvelope,
)


class Offer(Struct, frozen=True):
    """A global: an interface, a component, a feature or a limit."""

    interface: str
    version: int = 1
    value: Json = None


def offers(
    components: dict[str, int],
    features: Iterable[str] = (),
    limits: JsonObject | None = None,
    *,
    has_conversation: bool = False,
) -> list[Offer]:
    """Return the globals of a renderer.

    Args:
        components: Component types that it shows, with their newest versions.
        features: Names of its features.
        limits: Its limits, by name.
        has_conversation: Whether it shows turns, tool calls and streamed text
            (`ArpConversation`).
    """
    # Not globals: the display exists from the start, and requests create objects of the others.
    hidden = {"ArpDisplay", "ArpCallback", "ArpRegistry", "ArpSurface"}
    hidden |= {"ArpToplevel", "ArpPopup", "ArpOverlay"}
    if not has_conversation:
        hidden.add("ArpConversation")
    made = [Offer(one.name, one.version) for one in INTERFACES.values() if one.name not in hidden]
    made += [Offer(f"component:{name}", version) for name, version in components.items()]
    made += [Offer(f"feature:{name}") for name in features]
    made += [Offer(f"limit:{name}", 1, value) for name, value in (limits or {}).items()]
    return made


class ObjectRendererConnection(ObjectConnection):
    """The renderer side: receives requests of one agent and sends events to it.

    Args:
        encoding: Encoding of all frames.
        limits: Limits that this renderer enforces.
        globals: Globals that it offers.
        serial_age_s: Maximum age, in seconds, of the input that a request for a popup, an overlay
            or fullscreen names.
        keeps_content: Whether this object keeps the components of each surface.
    """

    def __init__(
        self,
        encoding: Encoding,
        limits: Limits,
        globals: Sequence[Offer],  # named as in the protocol
        *,
        serial_age_s: float = SERIAL_AGE_S,
        keeps_content: bool = True,
    ) -> None:
        super().__init__(Objects(limits, serial_age_s), "events", encoding)
        self._globals = dict(enumerate(globals, 1))
        self._next_global = len(self._globals) + 1
        self._contents: dict[int, SurfaceContent] = {}
        self._keeps_content = keeps_content
        self._next_id = RENDERER_IDS[0]
        self._next_serial = 1
        self._registries: list[int] = []
        if keeps_content:
            self.keep_content()

    def keep_content(self) -> None:
        """Keep the components of each surface from now on; refuse commits that do not fit."""
        self._keeps_content = True
        self.objects.apply_commit = self._apply_commit

    # -- reading ---------------------------------------------------------------------------------

    def applied(self, surface_id: int) -> list[SurfaceChange]:
        """Return the changes of the last commit of a surface, with fallbacks resolved."""
        return self._content(surface_id).applied

    def content(self, surface_id: int) -> list[Component]:
        """Return the root components of a surface, in order."""
        self.objects.surface(surface_id)
        kept = self._contents.get(surface_id)
        return kept.components if kept is not None else []

    @property
    def components(self) -> dict[str, int]:
        """Component types on offer, with their versions."""
        return {
            one.interface.removeprefix("component:"): one.version
            for one in self._globals.values()
            if one.interface.startswith("component:")
        }

    def bound(self, interface: str) -> int:
        """Return the id of the newest object of an interface.

        Raises:
            InvalidMethod: The agent side has not bound the interface.
        """
        found = [
            number for number, one in self.objects.entries.items() if one.interface == interface
        ]
        if not found:
            raise InvalidMethod(f"{interface} is not bound", detail=interface)
        return found[-1]

    # -- out -------------------------------------------------------------------------------------

    def offer(self, added: Offer) -> int:
        """Offer another global; return its number."""
        name, self._next_global = self._next_global, self._next_global + 1
        self._globals[name] = added
        for registry_id in self._registries:
            self._announce(registry_id, name)
        return name

    def withdraw(self, name: int) -> None:
        """Withdraw a global."""
        del self._globals[name]
        # A second `global_remove` would name a global that the agent side has already removed.
        for registry_id in self._registries[:1]:
            self.send(registry_id, RegistryGlobalRemoveEvent(name))

    def _announce(self, registry_id: int, name: int) -> None:
        one = self._globals[name]
        event = RegistryGlobalEvent(name, one.interface, one.version, one.value)
        self.send(registry_id, event)

    def configure(
        self, surface_id: int, width: int, height: int, states: Sequence[str] = ()
    ) -> None:
        """Send the size and the states of a surface."""
        surface = self.objects.surface(surface_id)
        if surface.role == RoleState.POPUP:
            assert surface.role_id is not None
            self.send(surface.role_id, PopupConfigureEvent(0, 0, width, height))
        elif surface.role == RoleState.OVERLAY:
            assert surface.role_id is not None
            bounds = Rectangle(0, 0, width, height)
            self.send(surface.role_id, OverlayConfigureEvent(bounds))
        elif surface.role_id is not None:
            event = ToplevelConfigureEvent(width, height, list(states))
            self.send(surface.role_id, event)
        else:
            self.send(surface_id, SurfaceConfigureEvent(width, height, list(states)))

    def displayed(self, surface_id: int) -> None:
        """Acknowledge all pending commits of a surface; do nothing if there are none."""
        pending = self.objects.surface(surface_id).pending
        if pending:
            self.send(surface_id, SurfaceFrameAckEvent(pending[-1]))

    def refuse(self, message: ObjectMessage, error: ArpError) -> None:
        """Send an error for a request that cannot be shown, with its message number."""
        event = DisplayErrorEvent(
            message.object_id, int(error.code), error.message, message.serial_no
        )
        self.send(DISPLAY, event)

    def close(self, surface_id: int) -> None:
        """Report that the user closed a surface, with the event for the surface's role."""
        surface = self.objects.surface(surface_id)
        if surface.role == RoleState.POPUP and surface.role_id is not None:
            self.send(surface.role_id, PopupPopupDoneEvent())
        elif surface.role == RoleState.OVERLAY and surface.role_id is not None:
            self.send(surface.role_id, OverlayDismissedEvent())
        else:
            self.send(surface_id, SurfaceClosedEvent())

    def input(
        self,
        surface_id: int,
        input_type: InputType,
        data: JsonObject,
        now_s: float,
        *,
        source: str | None = None,
        input_id: str | None = None,
    ) -> int:
        """Send an input of the user; return its serial."""
        message = Input(input_type=input_type, data=data, source_component=source, id=input_id)
        return self.send_input(surface_id, message, now_s)

    def send_input(self, surface_id: int, message: Input, now_s: float) -> int:
        """Send an input of the session dialect; return its serial."""
        serial = self._next_serial
        event = InputInputEvent(
            surface_id,
            serial,
            message.input_type,
            message.data,
            message.source_component,
            message.id,
            message.edits,
        )
        self.send(self.bound("ArpInput"), event, now_s)
        self._next_serial += 1
        return serial

    def focus(self, surface_id: int | None) -> None:
        """Report the surface that has the focus; `None` means no surface of this agent."""
        before = self.objects.focus
        if before is not None and before != surface_id:
            self.send(self.bound("ArpInput"), InputUnfocusEvent(before))
        if surface_id is not None and before != surface_id:
            self.send(self.bound("ArpInput"), InputFocusEvent(surface_id))

    def resume(
        self, session_id: str, last_commit_seq: int, state: Json = None, token: str | None = None
    ) -> None:
        """Answer `create` with the session that the renderer chose."""
        event = SessionResumedEvent(session_id, last_commit_seq, state, token)
        self.send(self.bound("ArpSession"), event)

    def hand_over(self, surface_id: int) -> None:
        """Send `transferred`: the surface has a new owner, and its object ends."""
        self.send(surface_id, SurfaceTransferredEvent())

    def deny_transfer(self, message: ObjectMessage, error: ArpError | None = None) -> None:
        """Refuse to transfer a surface.

        Args:
            message: The `transfer` request.
            error: The reason. The default does not reveal whether the other session exists.
                `SessionBusy` means that the outcome is unknown: the other agent was asked and
                disconnected before it answered.
        """
        self.refuse(message, error or TransferDenied("to_session: not transferred"))

    def acquire(
        self,
        components: list[Component] | None,
        title: str | None = None,
        transfer_id: str | None = None,
    ) -> int:
        """Offer this agent a surface of another agent; return the id of the surface.

        The agent accepts the surface by giving it a role, and declines it by destroying it.
        """
        made = self._next_id
        self.send(made, SurfaceSurfaceAcquiredEvent(components, title, transfer_id))
        self._next_id += 1
        if self._keeps_content:
            self._content(made).show(components or [])
        return made

    # -- in --------------------------------------------------------------------------------------

    def _accept(self, envelope: ObjectEnvelope, now_s: float) -> list[ObjectMessage]:
        events = super()._accept(envelope, now_s)
        for event in events:
            self._respond(event)
        return events

    def _respond(self, message: ObjectMessage) -> None:
        """Answer an accepted request, or keep its content."""
        match message.payload:
            case DisplayGetRegistryRequest(new_id):
                self._open_registry(new_id)
            case DisplaySyncRequest(callback_id):
                self.send(callback_id, CallbackDoneEvent(message.serial_no))
            case SurfaceRenderRequest() | SurfacePatchRequest() as change if self._keeps_content:
                self._content(message.object_id).add(change)
            case _:
                pass

    def _open_registry(self, registry_id: int) -> None:
        self._registries.append(registry_id)
        for name in self._globals:
            self._announce(registry_id, name)

    def _refuse(self, refused: RefusedEnvelope, op: str = "") -> list[ObjectEvent]:
        surface_id = refused.object_id
        if op in ("render", "patch") and surface_id in self.objects.surfaces:
            # Its commit is still to come, and would show the rest without this change.
            self._content(surface_id).spoil()
        elif op == "commit" and surface_id in self.objects.surfaces:
            # The agent side counts from zero after a commit; so must this side, refused or not.
            self._content(surface_id).drop()
            self.objects.drop_pending(surface_id)
        return super()._refuse(refused, op)

    def _apply_commit(self, surface_id: int) -> None:
        self._content(surface_id).commit()

    def _content(self, surface_id: int) -> SurfaceContent:
        kept = self._contents.get(surface_id)
        if kept is None:
            kept = self._contents[surface_id] = SurfaceContent(lambda: self.components)
        return kept

    def _on_ended_here(self, ended: list[int]) -> None:
        super()._on_ended_here(ended)
        self._on_ended_by_peer(ended)

    def _on_ended_by_peer(self, ended: list[int]) -> None:
        for one in ended:
            self._contents.pop(one, None)
