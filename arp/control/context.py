"""Context of a method call: the hub and the calling principal.

There is one `Plane` per hub and one `ControlContext` per client. This is the only place in the
package that decides what a client may see: only the owner finds a session.

An admin may also read the sessions of other users, but only through the methods that use `reader`.
Each such access is recorded in the session, and the fact is durable before anything is returned. A
connection, or a request over HTTP, records one access per session, however often it reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from weakref import WeakValueDictionary

from arp.access.guard import ADMIN
from arp.access.principal import Principal
from arp.audit.models.read_model import ReadModel
from arp.hub.hub import Hub
from arp.hub.readers.session_reader import ReadableSession
from arp.live.live_session import LiveSession
from arp.protocol.errors import UnknownObject
from arp.session.effects import Effect
from arp.session.session import Head

EXPORTS = 2
"""Number of exports that run at the same time. Each occupies a thread until it is complete."""


class Plane:
    """State that all clients of one hub share.

    Args:
        hub: A started hub.
        workflows: Names of its agents; the first is the default.
    """

    def __init__(self, hub: Hub, workflows: Sequence[str]) -> None:
        self.hub = hub
        self.workflows = tuple(workflows)
        self.exporting = asyncio.Semaphore(EXPORTS)
        """Held while an export runs."""
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, session_id: str) -> asyncio.Lock:
        """Return the lock of a session; hold it to read and then change tasks or trials.

        `Exports` adds a suffix to the id and so has a lock of its own.
        """
        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = asyncio.Lock()
        return lock


class ControlContext:
    """A plane and the calling principal. Its methods raise the errors in `arp.control.control`."""

    def __init__(self, plane: Plane, principal: Principal) -> None:
        self.plane = plane
        self.hub = plane.hub
        self.principal = principal
        self._viewed: dict[str, bool] = {}
        """Other users' sessions that have recorded the access of this client, by id; the value says
        whether the fact is known to be durable."""

    async def reader(self, session_id: str) -> ControlContext:
        """Return a context that may be used only to read a session.

        For an admin and a session of another user, it is the context of the owner; otherwise it is
        this context. Only the first access loads the session, to record the access.

        Raises:
            ReadOnly: The access of an admin cannot be recorded, so it is refused.
        """
        if not self.principal.is_admin:
            return self
        owner = await self.hub.directory.owner(session_id)
        if owner is None or owner == self.principal.name:
            return self
        other = ControlContext(self.plane, Principal(owner))
        if self._viewed.get(session_id, False):
            return other
        live = await other.live(session_id)
        if session_id not in self._viewed:
            self.hub.check_takes_input()
            # The profile has a closed list of fact types, so no new type can record the access.
            live.session.record("session.updated", {"viewer": self.principal.name or ADMIN})
            other.carry_out(live, [])
        # Added before the wait, so that a concurrent second request does not record it again; that
        # request waits for the same fact below.
        self._viewed[session_id] = False
        try:
            await live.written()
        except BaseException:
            # The fact may not be stored. Without this, the next request would show the session
            # without a record of the access.
            self._viewed.pop(session_id, None)
            raise
        self._viewed[session_id] = True
        return other

    async def live(self, session_id: str) -> LiveSession:
        """Return a session, loaded into memory."""
        return await self.hub.find(session_id, self.principal)

    async def read(self, session_id: str) -> ReadableSession:
        """Return a session to look at; everything recorded so far is durable. It is not loaded."""
        source = await self.hub.reader.read(session_id, self.principal)
        if isinstance(source, LiveSession):
            await source.written()
        return source

    async def to_change(self, session_id: str) -> LiveSession:
        """Return a session for a call that records facts.

        Raises:
            PermissionDenied: The hub replays a recording.
        """
        self.hub.check_takes_input()
        return await self.live(session_id)

    async def head(self, session_id: str) -> Head:
        """Return the head of a session without loading the session."""
        return await self.hub.directory.head(session_id, self.principal)

    async def model(self, session_id: str) -> ReadModel:
        """Return the read model of a session, up to its newest durable fact.

        The model changes with further facts: copy the parts that you need before the next await.
        """
        await self.head(session_id)
        return await self.hub.models.read(session_id)

    def now(self) -> str:
        """Return the time of the ledger's clock in RFC 3339 format."""
        return self.hub.now()

    async def open(self, session_id: str | None, workflow: str | None) -> LiveSession:
        """Return the session for an input; create it if there is none.

        Raises:
            UnknownObject: There is no agent with that name.
        """
        self.hub.check_takes_input()
        name = (workflow or self.plane.workflows[0]).lstrip("/")
        if name not in self.plane.workflows:
            known = ", ".join(self.plane.workflows)
            raise UnknownObject(f"no agent {name!r:.80}; there are {known}", detail="workflow")
        return await self.hub.open(session_id, self.principal, name)

    def carry_out(self, live: LiveSession, effects: Sequence[Effect]) -> None:
        """Carry out effects of a session after the facts that it recorded are durable."""
        live.touch()
        self.hub.carry_out(live, effects)
