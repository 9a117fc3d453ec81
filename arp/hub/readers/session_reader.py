"""Sessions for requests that only look at them, in memory or not.

Theory of operation. Loading a session does more than reading it: the session is recovered, which
may end a turn and record facts, and it stays in memory. A request that only looks gets the session
in memory if there is one. Otherwise it gets a *copy*: a session that is restored from the store for
this request and dropped after it. Nothing is recovered, recorded or stored. A copy shows the ledger
as it is, so a turn that a crash interrupted is still running in it.

A copy takes several reads of the store, and the session may be deleted between two of them, also by
another process. So its row is read again after the copy is made. If the row is gone, the copy may
have only some of the facts, and is not used.
"""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from msgspec import Struct

from arp.access.principal import Principal
from arp.hub.directory import Directory, not_found
from arp.live.live_session import LiveSession
from arp.live.tasks import start_task
from arp.session.session import Session
from arp.store.session_list import SessionMeta
from arp.store.store import Store

MAX_RESTORING = 8
"""Maximum number of sessions that are restored at the same time; more requests wait.

Sessions that are only read do not count against `max_sessions`, so they have this limit.
"""


class SessionCopy(Struct, frozen=True):
    """A session that is not in memory, restored to be read.

    Requests share it, so nothing may change it.
    """

    session: Session
    stored: int
    """Sequence number of its newest fact; all of them are durable."""


ReadableSession: TypeAlias = LiveSession | SessionCopy
"""Both have `session`, and `stored`: the sequence number of its newest durable fact."""


class SessionReader:
    """Returns sessions of a hub to requests of their owners, without loading them."""

    def __init__(self, store: Store, directory: Directory) -> None:
        self._store = store
        self._directory = directory
        self._slots = asyncio.Semaphore(MAX_RESTORING)
        self._copying: dict[tuple[str, str, int], asyncio.Task[Session]] = {}
        """Tasks that restore a session, by its id, epoch and newest fact.

        Concurrent requests share a task. The newest fact is in the key so that each request sees
        everything that was durable when it came.
        """

    async def read(self, session_id: str, principal: Principal) -> ReadableSession:
        """Return an existing session of the principal, without loading it.

        The owner is read from the row of the session before anything else, as in `Directory.find`,
        so that the response time reveals nothing about sessions of others.

        Raises:
            SessionNotFound: It does not exist or belongs to another user; the same error for both.
            StoreError, InternalError: It cannot be read, or its facts are not valid.

        Cancel: Safe.
        """
        directory = self._directory
        copy: Session | None = None
        while True:
            if session_id in directory.sessions:
                return self._in_memory(session_id, principal)
            row = await self._store.session(session_id)
            if row is not None and row.owner != principal.name:
                raise not_found(session_id)
            if session_id in directory.sessions:
                continue
            if (under_way := directory.under_way(session_id)) is not None:
                # Wait for a removal, because half of a session must not be shown, and for a load,
                # because it ends soon and may record facts.
                await asyncio.wait([under_way])
                continue
            if row is None:
                raise not_found(session_id)
            if copy is not None and copy.epoch == row.epoch:
                return SessionCopy(copy, copy.sequence)
            copy = await self._copy(row)

    async def settled(self) -> None:
        """Wait until no session is being restored."""
        await asyncio.gather(*self._copying.values(), return_exceptions=True)

    def _in_memory(self, session_id: str, principal: Principal) -> LiveSession:
        live = self._directory.sessions[session_id]
        if live.is_provisional or live.session.owner != principal.name:
            raise not_found(session_id)
        live.touch()
        return live

    async def _copy(self, row: SessionMeta) -> Session:
        """Restore the session of a row; requests that saw the same row share the result."""
        key = (row.id, row.epoch, row.last_sequence)
        task = self._copying.get(key)
        if task is None:
            task = self._copying[key] = start_task(self._restored(row), "arp-session-reader")
            task.add_done_callback(lambda _: self._copying.pop(key, None))
        # Shielded: one request that is cancelled must not cancel the others.
        return await asyncio.shield(task)

    async def _restored(self, row: SessionMeta) -> Session:
        async with self._slots:
            return await self._directory.peek(row)
