"""What every method works with: the hub, and who calls.

There is one `Plane` per hub and one `ControlContext` per client. What a client may see is decided
here and nowhere else in this package: a session is found for its owner alone.

An admin may read the session of another user, by the methods that use `reader`, and nothing more.
Each such look is a fact of that session, and durable before anything is shown. One connection looks
at a session once, however often it asks; so does one request over HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from weakref import WeakValueDictionary

from arp.access.guard import ADMIN
from arp.access.principal import Principal
from arp.audit.models.read_model import ReadModel
from arp.hub.hub import Hub
from arp.live.live_session import LiveSession
from arp.protocol.errors import UnknownObject
from arp.session.effects import Effect
from arp.session.session import Head

EXPORTS = 2
"""How many are made at the same time. Each occupies a thread for as long as it takes."""


class Plane:
    """What all clients of one hub share.

    Args:
        hub: A started one.
        workflows: Names of its agents; the first is that of a session that names none.
    """

    def __init__(self, hub: Hub, workflows: Sequence[str]) -> None:
        self.hub = hub
        self.workflows = tuple(workflows)
        self.exporting = asyncio.Semaphore(EXPORTS)
        """Held while an export is made."""
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, session_id: str) -> asyncio.Lock:
        """Return the lock that is held while a session's tasks are read and changed."""
        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = asyncio.Lock()
        return lock


class ControlContext:
    """A plane, and the principal who calls; raises what `arp.control.control` says."""

    def __init__(self, plane: Plane, principal: Principal) -> None:
        self.plane = plane
        self.hub = plane.hub
        self.principal = principal
        self._viewed: set[str] = set()
        """Sessions of others at which this client has looked."""

    async def reader(self, session_id: str) -> ControlContext:
        """Return a context in which a session may be read, and nothing else be done.

        For all but admins that is this one, which finds the client's own sessions.

        Raises:
            ReadOnly: The look of an admin cannot be recorded; then nothing is shown.
        """
        if not self.principal.is_admin:
            return self
        owner = await self.hub.directory.owner(session_id)
        if owner is None or owner == self.principal.name:
            return self
        other = ControlContext(self.plane, Principal(owner))
        live = await other.live(session_id)
        if session_id not in self._viewed:
            self.hub.check_takes_input()
            # The list of types is closed, so it is a field of one that there is.
            live.session.record("session.updated", {"viewer": self.principal.name or ADMIN})
            other.carry_out(live, [])
        # Also for a second request that comes before the fact of the first is durable.
        self._viewed.add(session_id)
        await live.written()
        return other

    async def live(self, session_id: str) -> LiveSession:
        """Return a session, loaded into memory."""
        return await self.hub.find(session_id, self.principal)

    async def to_change(self, session_id: str) -> LiveSession:
        """Return a session, for a call that records something in it."""
        self.hub.check_takes_input()
        return await self.live(session_id)

    async def head(self, session_id: str) -> Head:
        """Return the head of a session, which need not be in memory."""
        return await self.hub.directory.head(session_id, self.principal)

    async def model(self, session_id: str) -> ReadModel:
        """Return the read model of a session, up to its newest durable fact.

        It changes with further facts: copy what you need before you await anything.
        """
        await self.head(session_id)
        return await self.hub.models.read(session_id)

    def now(self) -> str:
        """Return the time, RFC 3339, by the clock of the ledger."""
        return self.hub.now()

    async def open(self, session_id: str | None, workflow: str | None) -> LiveSession:
        """Return a session that is to get input; a new one if there is none.

        Raises:
            UnknownObject: There is no agent of that name.
        """
        self.hub.check_takes_input()
        name = (workflow or self.plane.workflows[0]).lstrip("/")
        if name not in self.plane.workflows:
            known = ", ".join(self.plane.workflows)
            raise UnknownObject(f"no agent {name!r:.80}; there are {known}", detail="workflow")
        return await self.hub.open(session_id, self.principal, name)

    def carry_out(self, live: LiveSession, effects: Sequence[Effect]) -> None:
        """Carry out the effects of a session when what it recorded is durable."""
        live.touch()
        self.hub.carry_out(live, effects)
