"""The agent side of a connection in the object dialect, without I/O.

The agent side allocates ids and reuses them. After the end of an object it sends a `sync`; when the
`sync` is done, no message for the old object can arrive any more and its id is free.
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
"""Number of ended objects after which one `sync` is sent to free all their ids."""


class ObjectAgentConnection(ObjectConnection):
    """The agent side: sends requests to one renderer and receives its events."""

    def __init__(self, encoding: Encoding, limits: Limits) -> None:
        super().__init__(Objects(limits), "requests", encoding)
        self._own_limits = limits
        self.registry_id: int | None = None
        self.bound: dict[str, int] = {}
        """Object ids by bound interface."""
        self._next_id = AGENT_IDS[0]
        self._free: list[int] = []
        self._ended: list[int] = []
        """Ids of ended objects that wait for the next `sync`."""
        self._syncs: dict[int, list[int]] = {}
        """Ids that become free when a `sync` is done, by the id of its callback."""

    def new_id(self) -> int:
        """Return an unused id: the one freed last, or the next number."""
        if self._free:
            return self._free.pop()
        new_id, self._next_id = self._next_id, self._next_id + 1
        return new_id

    # -- out -------------------------------------------------------------------------------------

    def get_registry(self) -> int:
        """Request the list of globals; return the id of the registry."""
        self.registry_id = self._make(DISPLAY, DisplayGetRegistryRequest(self.new_id()))
        return self.registry_id

    def sync(self) -> int:
        """Ask the renderer to send `done` after all earlier messages; return the callback's id."""
        callback = self._make(DISPLAY, DisplaySyncRequest(self.new_id()), "callback_id")
        self._syncs[callback], self._ended = self._ended, []
        return callback

    def bind(self, interface: str, version: int | None = None) -> int:
        """Bind a global.

        Args:
            interface: The name of its interface.
            version: `None` = the newest that both sides know.

        Returns:
            The id of the object.

        Raises:
            UnknownObject: The renderer does not offer the interface.
            VersionMismatch: The renderer does not offer that version.
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
        """Propose a session; the renderer may choose another one with `resumed`."""
        self.send(self._of("ArpSession"), SessionCreateRequest(session_id, metadata))

    def create_surface(self, name: str | None = None) -> int:
        """Create a surface; return its id."""
        request = CompositorCreateSurfaceRequest(self.new_id(), name)
        return self._make(self._of("ArpCompositor"), request)

    def get_toplevel(self, surface_id: int) -> int:
        """Make a surface a toplevel; return the id of the role."""
        return self._make(self._of("ArpShell"), ShellGetToplevelRequest(surface_id, self.new_id()))

    def get_popup(
        self, surface_id: int, parent_id: int, serial: int, source: str | None = None
    ) -> int:
        """Make a surface a popup above its parent; return the id of the role."""
        request = ShellGetPopupRequest(surface_id, parent_id, self.new_id(), serial, source)
        return self._make(self._of("ArpShell"), request)

    def get_overlay(self, surface_id: int, serial: int | None) -> int:
        """Make a surface an overlay; return the id of the role."""
        request = ShellGetOverlayRequest(surface_id, self.new_id(), serial)
        return self._make(self._of("ArpShell"), request)

    def destroy(self, surface_id: int) -> None:
        """Destroy a surface and its role."""
        self.send(surface_id, SurfaceDestroyRequest())

    def _of(self, interface: str) -> int:
        if interface not in self.bound:
            raise UnknownObject(f"{interface} is not bound", detail=interface)
        return self.bound[interface]

    def _make(self, object_id: int, request: Struct, name: str = "new_id") -> int:
        new_id: int = getattr(request, name)
        try:
            self.send(object_id, request)
        except ArpError:
            self._free.append(new_id)  # the renderer has never seen it
            raise
        return new_id

    # -- in --------------------------------------------------------------------------------------

    def _accept(self, envelope: ObjectEnvelope, now_s: float) -> list[ObjectMessage]:
        """Apply an event; free the ids of a finished `sync`; adopt changed limits."""
        events = super()._accept(envelope, now_s)
        for event in events:
            match event:
                case ObjectMessage(object_id, payload=CallbackDoneEvent()):
                    freed = self._syncs.pop(object_id, [])
                    self.objects.forget_dead(freed)
                    self._free += [one for one in freed if one in AGENT_IDS]
                case ObjectMessage(payload=RegistryGlobalEvent() | RegistryGlobalRemoveEvent()):
                    self._adopt_limits()
                case _:
                    pass
        return events

    def _adopt_limits(self) -> None:
        """Adopt the limits that the renderer offers now; ignore limits unknown to this version."""
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

    def _on_ended_here(self, ended: list[int]) -> None:
        super()._on_ended_here(ended)
        self._ended += ended
        if len(self._ended) >= SYNC_AFTER:
            with suppress(ResourceLimit):  # too many objects: no room for a callback now
                self.sync()

    def _on_ended_by_peer(self, ended: list[int]) -> None:
        # The peer ended the object, so it sends nothing more to it: no `sync` is needed.
        self._free += [one for one in ended if one in AGENT_IDS]
