"""The sessions in memory: found, made, read from the store, and let go when idle."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct

from arp.hub.live import LiveSession
from arp.hub.replay import Replayer
from arp.hub.settings import HubSettings
from arp.ledger.fact import Fact, decode
from arp.protocol.errors import RateLimited, SessionNotFound
from arp.session.recovery import restore
from arp.session.session import Head, Session
from arp.store.store import Store

READ_CHUNK = 1000
"""Facts read at once while a session is loaded."""


class Principal(Struct, frozen=True):
    """Who is at the other end of a connection; sessions belong to one."""

    name: str = ""


def utc_now() -> str:
    """Gives the time as RFC 3339 with microseconds, so that texts sort as times do."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Directory:
    """Gives sessions by id, to those to whom they belong."""

    def __init__(
        self,
        store: Store,
        settings: HubSettings,
        replayer: Replayer,
        mark: Callable[[LiveSession], None],
        now: Callable[[], str],
    ) -> None:
        self.sessions: dict[str, LiveSession] = {}
        self._store = store
        self._settings = settings
        self._replayer = replayer
        self._mark = mark
        self._now = now
        self._loading: dict[str, asyncio.Future[LiveSession | None]] = {}

    async def find(self, session_id: str, principal: Principal) -> LiveSession:
        """Gives a session that exists and belongs to the principal.

        Raises:
            SessionNotFound: There is none, or it belongs to somebody else; the same error for both.
        """
        live = self.sessions.get(session_id) or await self.load(session_id)
        if live is None or live.session.head.owner != principal.name:
            raise SessionNotFound(f"no session {session_id!r}", detail=session_id)
        live.used_at = asyncio.get_running_loop().time()
        return live

    async def open(
        self, session_id: str | None, principal: Principal, workflow: str
    ) -> LiveSession:
        """Gives a session, made if there is none.

        Raises:
            SessionNotFound: It belongs to somebody else.
            RateLimited: Too many sessions are in memory.
        """
        if session_id is not None:
            live = self.sessions.get(session_id) or await self.load(session_id)
            if live is not None:
                return await self.find(session_id, principal)
        if len(self.sessions) >= self._settings.max_sessions:
            raise RateLimited("too many sessions; try again later")
        epoch, created_at = secrets.token_hex(8), self._now()
        name = session_id or secrets.token_urlsafe(16)
        head = Head(name, epoch, principal.name, workflow, created_at=created_at)
        session = Session(head, self._settings.limits, self._settings.policy)
        owner = {"owner": principal.name} if principal.name else {}
        session.record("session.created", {"epoch": epoch, "workflow": workflow, **owner})
        return self._add(session)

    async def load(self, session_id: str) -> LiveSession | None:
        """Reads a session from the store, once however many ask; `None` if there is none."""
        loading = self._loading.get(session_id)
        if loading is None:
            loading = asyncio.ensure_future(self._read(session_id))
            self._loading[session_id] = loading
            loading.add_done_callback(lambda _: self._loading.pop(session_id, None))
        return await asyncio.shield(loading)

    async def _read(self, session_id: str) -> LiveSession | None:
        meta = await self._store.session(session_id)
        if meta is None:
            return None
        facts: list[Fact] = []
        after = 0
        while chunk := await self._store.read(session_id, after, READ_CHUNK):
            facts.extend(decode(body) for _, body in chunk)
            after = chunk[-1][0]
        if session_id in self.sessions:
            return self.sessions[session_id]
        head = Head(meta.id, meta.epoch, meta.owner, meta.workflow, created_at=meta.created_at)
        return self._add(restore(head, facts, self._settings.limits, self._settings.policy))

    def _add(self, session: Session) -> LiveSession:
        live = LiveSession(session, self._settings, self._mark)
        live.used_at = asyncio.get_running_loop().time()
        live.delivery.replay = self._replayer.start
        self.sessions[live.id] = live
        return live

    def idle(self, before: float) -> list[LiveSession]:
        """Gives the sessions that nobody needs and that were last used before a time."""
        return [live for live in self.sessions.values() if live.idle and live.used_at < before]

    def remove(self, live: LiveSession) -> None:
        """Lets a session leave the memory: nothing of it is written any more."""
        live.closed = True
        if self.sessions.get(live.id) is live:
            del self.sessions[live.id]
