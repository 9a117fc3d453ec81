"""The agent side's end of a connection in the object dialect, without I/O.

It makes ids and uses them again: an id is free once a `sync` that was sent behind the end of its
object is done, since then nothing for the old object is under way any more.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec import Struct

from arp.protocol.codec import Encoding
from arp.protocol.errors import ArpError, ResourceLimit, UnknownObject
from arp.protocol.json_value import JsonObject
from arp.protocol.limits import Limits
from arp.protocol.objects.connection import ObjectConnection
from arp.protocol.objects.messages import (
    INTERFACES,
    CallbackDoneEvent,
    CompositorCreateSurfaceRequest,
    DisplayGetRegistryRequest,
    DisplaySyncRequest,
    RegistryBindRequest,
    RegistryGlobalEvent,
    RegistryGlobalRemoveEvent,
    SessionCreateRequest,
    ShellGetOverlayRequest,
    ShellGetPopupRequest,
    ShellGetToplevelRequest,
    SurfaceDestroyRequest,
)
from arp.protocol.objects.model import Objects
from arp.protocol.objects.wire import AGENT_IDS, DISPLAY, ObjectEnvelope, ObjectMessage

SYNC_AFTER = 16
"""Ids that wait to be free before a `sync` is sent for them."""


class ObjectAgentConnection(ObjectConnection):
    """Sends requests to one renderer, and takes its events."""

    def __init__(self, encoding: Encoding, limits: Limits) -> None:
        super().__init__(Objects(limits), "requests", encoding)
        self._own_limits = limits
        self.registry_id: int | None = None
        self.bound: dict[str, int] = {}
        """The object of each interface that is bound."""
        self._next_id = AGENT_IDS[0]
        self._free: list[int] = []
        self._ended: list[int] = []
        """Ids that no `sync` was sent for yet."""
        self._syncs: dict[int, list[int]] = {}
        """The ids that are free when a callback is done."""

    def new_id(self) -> int:
        """Return an id that no object has; the newest that is free."""
        if self._free:
            return self._free.pop()
        made, self._next_id = self._next_id, self._next_id + 1
        return made

    # -- out -------------------------------------------------------------------------------------

    def get_registry(self) -> int:
        """Ask what the renderer offers; return the id of the registry."""
        self.registry_id = self._make(DISPLAY, DisplayGetRegistryRequest(self.new_id()))
        return self.registry_id

    def sync(self) -> int:
        """Ask for `done` when everything before is processed; return the id of the callback."""
        callback = self._make(DISPLAY, DisplaySyncRequest(self.new_id()), "callback_id")
        self._syncs[callback], self._ended = self._ended, []
        return callback

    def bind(self, interface: str, version: int | None = None) -> int:
        """Bind a global.

        Args:
            interface: Its name.
            version: `None` = the newest that both sides know.

        Returns:
            The id of the object.

        Raises:
            UnknownObject: The renderer does not offer it.
            VersionMismatch: It does not offer that version.
        """
        name = self.objects.offered(interface)
        if name is None or self.registry_id is None:
            raise UnknownObject(f"the renderer does not offer {interface}", detail=interface)
        if version is None:
            version = min(self.objects.globals[name].version, INTERFACES[interface].version)
        request = RegistryBindRequest(name, interface, version, self.new_id())
        self.bound[interface] = self._make(self.registry_id, request)
        return self.bound[interface]

    def create_session(self, session_id: str, metadata: JsonObject) -> None:
        """Name the session; the renderer may choose another by `resumed`."""
        self.send(self._of("ArpSession"), SessionCreateRequest(session_id, metadata))

    def create_surface(self, name: str | None = None) -> int:
        """Make a surface; return its id."""
        request = CompositorCreateSurfaceRequest(self.new_id(), name)
        return self._make(self._of("ArpCompositor"), request)

    def get_toplevel(self, surface_id: int) -> int:
        """Make a surface a window; return the id of the role."""
        return self._make(self._of("ArpShell"), ShellGetToplevelRequest(surface_id, self.new_id()))

    def get_popup(
        self, surface_id: int, parent_id: int, serial: int, source: str | None = None
    ) -> int:
        """Make a surface a popup over another; return the id of the role."""
        request = ShellGetPopupRequest(surface_id, parent_id, self.new_id(), serial, source)
        return self._make(self._of("ArpShell"), request)

    def get_overlay(self, surface_id: int, serial: int | None) -> int:
        """Make a surface an overlay; return the id of the role."""
        request = ShellGetOverlayRequest(surface_id, self.new_id(), serial)
        return self._make(self._of("ArpShell"), request)

    def destroy(self, surface_id: int) -> None:
        """Remove a surface with its role."""
        self.send(surface_id, SurfaceDestroyRequest())

    def _of(self, interface: str) -> int:
        if interface not in self.bound:
            raise UnknownObject(f"{interface} is not bound", detail=interface)
        return self.bound[interface]

    def _make(self, object_id: int, request: Struct, name: str = "new_id") -> int:
        made: int = getattr(request, name)
        try:
            self.send(object_id, request)
        except ArpError:
            self._free.append(made)
            raise
        return made

    # -- in --------------------------------------------------------------------------------------

    def _taken(self, envelope: ObjectEnvelope, now_s: float) -> list[ObjectMessage]:
        """Take an event; ids that are free now may be used again."""
        events = super()._taken(envelope, now_s)
        for event in events:
            match event:
                case ObjectMessage(object_id, payload=CallbackDoneEvent()):
                    freed = self._syncs.pop(object_id, [])
                    self.objects.forget_dead(freed)
                    self._free += [one for one in freed if one in AGENT_IDS]
                case ObjectMessage(payload=RegistryGlobalEvent() | RegistryGlobalRemoveEvent()):
                    self._keep_limits()
                case _:
                    pass
        return events

    def _keep_limits(self) -> None:
        """Keep to the limits that the renderer offers now, as far as this version knows them."""
        given = {
            one.interface.removeprefix("limit:"): one.value
            for one in self.objects.globals.values()
            if one.interface.startswith("limit:")
        }
        known = {
            name: value
            for name, value in given.items()
            if name in Limits.__struct_fields__ and type(value) is int and value > 0
        }
        self.objects.limits = msgspec.structs.replace(self._own_limits, **known)

    def _have_ended(self, ended: list[int]) -> None:
        super()._have_ended(ended)
        self._ended += ended
        if len(self._ended) >= SYNC_AFTER:
            with suppress(ResourceLimit):  # so many objects that there is no room for a callback
                self.sync()

    def _were_ended(self, ended: list[int]) -> None:
        self._free += [one for one in ended if one in AGENT_IDS]
