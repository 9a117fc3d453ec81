"""The sessions in memory: found, made, read from the store, and let go when idle."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from arp.hub.live import LiveSession
from arp.hub.replay import Replayer
from arp.hub.settings import HubSettings
from arp.ledger.fact import Fact, decode
from arp.protocol.errors import ArpError, InternalError, RateLimited, SessionNotFound
from arp.session.recovery import restore
from arp.session.session import Head, Session
from arp.store.store import SessionMeta, Store

logger = logging.getLogger(__name__)

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
        loaded: Callable[[LiveSession], None],
        now: Callable[[], str],
    ) -> None:
        self.sessions: dict[str, LiveSession] = {}
        self._store = store
        self._settings = settings
        self._replayer = replayer
        self._mark = mark
        self._loaded = loaded
        self._now = now
        self._loading: dict[str, asyncio.Future[LiveSession | None]] = {}

    async def find(self, session_id: str, principal: Principal) -> LiveSession:
        """Gives a session that exists and belongs to the principal.

        Raises:
            SessionNotFound: There is none, or it belongs to somebody else; the same error for both.
        """
        live = await self._known(session_id, principal)
        if live is None:
            raise _not_found(session_id)
        live.used_at = asyncio.get_running_loop().time()
        return live

    async def _known(self, session_id: str, principal: Principal) -> LiveSession | None:
        """Gives a session if there is one.

        Whose it is, is decided by its row alone: the answer "not yours" costs as much as "none".

        Raises:
            SessionNotFound: It belongs to somebody else.
        """
        live = self.sessions.get(session_id)
        if live is None:
            meta = await self._store.session(session_id)
            if meta is not None and meta.owner == principal.name:
                await self.load(session_id)
            elif meta is not None:
                raise _not_found(session_id)
            live = self.sessions.get(session_id)
        if live is not None and live.session.head.owner != principal.name:
            raise _not_found(session_id)
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
            live = await self._known(session_id, principal)
            if live is not None:
                live.used_at = asyncio.get_running_loop().time()
                return live
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
        """Reads a session from the store, once however many ask; `None` if there is none.

        Raises:
            StoreError, InternalError: It cannot be read, or its facts make no sense.
        """
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
        live = self._add(self._restored(meta, facts))
        self._loaded(live)
        return live

    def _restored(self, meta: SessionMeta, facts: Sequence[Fact]) -> Session:
        head = Head(meta.id, meta.epoch, meta.owner, meta.workflow, created_at=meta.created_at)
        try:
            return restore(head, facts, self._settings.limits, self._settings.policy)
        except Exception:
            # Facts that make no sense to this version must not keep the others from being served.
            logger.exception("session %s cannot be made from its facts", meta.id)
            raise InternalError(
                "the session cannot be read; the server's log has it", detail=meta.id
            ) from None

    def _add(self, session: Session) -> LiveSession:
        live = LiveSession(session, self._settings, self._mark)
        live.used_at = asyncio.get_running_loop().time()
        live.delivery.replay = self._replayer.start
        self.sessions[live.id] = live
        return live

    def idle(self, before: float) -> list[LiveSession]:
        """Gives the sessions that nobody needs and that were last used before a time."""
        return [live for live in self.sessions.values() if live.idle and live.used_at < before]

    def remove(self, live: LiveSession, why: ArpError | None = None) -> None:
        """Lets a session leave the memory: nothing of it is written any more.

        Args:
            live: The session.
            why: What those are told who still wait for something of it.
        """
        if not live.gone.done():
            live.gone.set_result(why or InternalError("the session left the memory; ask again"))
        if self.sessions.get(live.id) is live:
            del self.sessions[live.id]


def _not_found(session_id: str) -> SessionNotFound:
    return SessionNotFound(f"no session {session_id!r}", detail=session_id)
