"""The sessions in memory: creating, loading, finding and evicting them.

Theory of operation. A session is identified by its id and belongs to one owner. At most one task
loads it from the store at any time; all callers that need the session wait for that task. A removal
uses the same mechanism, so no caller can load a session that is half removed.

Several processes may use a `SharedStore`. A process becomes the owner of a session when it loads it
or creates it with an id from a client: it raises the fence of the session, and from then on the
store refuses the writes of the earlier owner.

Loading is for callers that change a session or follow it. To look at a session, use `SessionReader`
(`readers/session_reader.py`), which loads nothing.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from arp.access.principal import Key, Principal, keys_of
from arp.live.live_session import LiveSession
from arp.live.quotas import SessionQuota
from arp.live.settings import HubSettings
from arp.live.states import States
from arp.live.tasks import start_task
from arp.protocol.errors import (
    ArpError,
    InternalError,
    InvalidMessage,
    RateLimited,
    SessionNotFound,
)
from arp.session.session import Head, Session
from arp.session.tracking.threads import THREAD
from arp.store.errors import StoreError
from arp.store.session_list import SessionMeta
from arp.store.store import SharedStore, Store

logger = logging.getLogger(__name__)

T = TypeVar("T")


def utc_now() -> str:
    """Return the time as RFC 3339 with microseconds, so that it sorts as text."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Directory:
    """Sessions by id; each is available to its owner only."""

    def __init__(
        self,
        store: Store,
        settings: HubSettings,
        workflows: Mapping[str, object],
        make: Callable[[Session, int], LiveSession],
        loaded: Callable[[LiveSession, SessionMeta], None],
        now: Callable[[], str],
    ) -> None:
        """Create an empty directory.

        Args:
            store: Store of the sessions.
            settings: Limits of the hub.
            workflows: Agents by name. If an agent has a `runtime_name`, it runs in an external
                runtime, which facts then name too.
            make: Returns the live session of a session and the sequence of its newest stored fact.
            loaded: Called with each session that was read from the store, and its row.
            now: Clock of facts, RFC 3339.
        """
        self.sessions: dict[str, LiveSession] = {}
        self.states = States(store, self.sessions, settings)
        self.quota = SessionQuota(settings, asyncio.get_running_loop().time)
        self._store = store
        self._shared = store if isinstance(store, SharedStore) else None
        self._settings = settings
        self._workflows = workflows
        self._make = make
        self._loaded = loaded
        self.runtime_id = settings.runtime_id or "arp"
        """Name of this runtime in the facts of sessions that are loaded from now on."""
        self._now = now
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Locks of sessions that are being created in a shared store, by session id."""
        self._under_way: dict[str, asyncio.Future[LiveSession | None]] = {}
        """Tasks that load or remove a session, by session id; the result is the loaded session."""

    async def find(self, session_id: str, principal: Principal) -> LiveSession:
        """Return an existing session of the principal.

        Raises:
            SessionNotFound: It does not exist or belongs to another user; the same error for both.
        """
        live = await self._find_own(session_id, principal)
        if live is None or live.is_provisional:
            raise not_found(session_id)
        live.touch()
        return live

    async def head(self, session_id: str, principal: Principal) -> Head:
        """Return the head of a session without loading the session.

        Raises:
            SessionNotFound: See `find`.
        """
        live = self.sessions.get(session_id)
        if live is not None and live.session.owner == principal.name:
            if live.is_provisional:
                raise not_found(session_id)
            return live.session.head
        meta = await self._store.session(session_id) if live is None else None
        if meta is None or meta.owner != principal.name:
            raise not_found(session_id)
        return self._head(meta)

    async def owner(self, session_id: str) -> str | None:
        """Return the owner of a session; `None` if the session does not exist. Admins only."""
        live = self.sessions.get(session_id)
        if live is not None:
            return None if live.is_provisional else live.session.owner
        meta = await self._store.session(session_id)
        return meta.owner if meta is not None else None

    async def _find_own(self, session_id: str, principal: Principal) -> LiveSession | None:
        """Return a session, or `None` if it does not exist.

        The owner is read from the row of the session before anything is loaded. Otherwise the
        response time would reveal that a session of another user exists.

        Raises:
            SessionNotFound: It belongs to another user.
        """
        live = self.sessions.get(session_id)
        if live is None:
            meta = await self._store.session(session_id)
            if meta is not None and meta.owner != principal.name:
                raise not_found(session_id)
            if meta is not None or session_id in self._under_way:
                await self.load(session_id)
            live = self.sessions.get(session_id)
        if live is not None and live.session.owner != principal.name:
            raise not_found(session_id)
        return live

    async def open(
        self,
        session_id: str | None,
        principal: Principal,
        workflow: str,
        *,
        provisional: bool = False,
    ) -> tuple[LiveSession, bool]:
        """Return a session, and whether it was created.

        Args:
            session_id: Id of the session; `None` creates one.
            principal: Its owner.
            workflow: Agent of a new session.
            provisional: A session that is created here is neither written nor listed before a
                caller opens it without this flag.

        Raises:
            SessionNotFound: It belongs to another user.
            InvalidMessage: Neither the session nor an agent of that name exists; the message lists
                the agents.
            RateLimited: The server, the user or the address has too many sessions in memory, or the
                user or address created too many.
            StoreError: It cannot be read, or its fence cannot be raised.
        """
        if session_id is not None:
            live = await self._find_own(session_id, principal)
            if live is not None:
                return _reopened(live, provisional), False
        if workflow not in self._workflows:
            shown = f"{workflow:.60}"
            known = ", ".join(self._workflows)
            raise InvalidMessage(
                f"No agent named {shown!r}. Available: {known}.", detail="workflow"
            )
        self._check_room(principal)
        if session_id is None or self._shared is None or provisional:
            # An id that is generated here needs no fence, because no other process knows it. For a
            # provisional session nothing may be stored: anyone could fill the store with fences.
            # Its first write is refused if another process has the session.
            name = session_id or secrets.token_urlsafe(16)
            return self._create(name, principal, workflow, provisional), True
        async with self._lock_of(session_id):
            fence = 0
            if session_id not in self.sessions:
                fence = await self._shared.raise_fence(session_id)
            # The session may exist now: another caller created it while this one waited, or another
            # process created it before the fence was raised.
            live = await self._find_own(session_id, principal)
            if live is not None:
                live.fence = max(live.fence, fence)
                return _reopened(live, provisional), False
            # Other sessions may have taken the room while the store was asked.
            self._check_room(principal)
            return self._create(session_id, principal, workflow, provisional, fence), True

    def _check_room(self, principal: Principal) -> None:
        """Check that the principal may create another session now.

        Raises:
            RateLimited: See `open`.
        """
        self.quota.check(keys_of(principal))
        if len(self.sessions) >= self._settings.max_sessions:
            raise RateLimited("too many sessions; try again later")

    def _lock_of(self, session_id: str) -> asyncio.Lock:
        """Return the lock under which a session is created in a shared store.

        Without the lock, two callers that create the same session would both raise its fence, and
        the store would refuse writes with the lower of the two.
        """
        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = asyncio.Lock()
        return lock

    def _create(
        self,
        session_id: str,
        principal: Principal,
        workflow: str,
        provisional: bool,
        fence: int = 0,
    ) -> LiveSession:
        """Create a session and add it to those in memory."""
        epoch, created_at = secrets.token_hex(8), self._now()
        runtime_id = self._runtime_of(workflow)
        head = Head(session_id, epoch, principal.name, workflow, runtime_id, created_at)
        session = self.states.new(head)
        owner = {"owner": principal.name} if principal.name else {}
        created = {"epoch": epoch, "workflow": workflow, **owner}
        session.record("session.created", created, thread_id=THREAD)
        keys = keys_of(principal)
        self.quota.made(keys)
        made = self._add_live(session, keys, fence=fence)
        made.is_provisional = provisional
        return made

    async def load(self, session_id: str) -> LiveSession | None:
        """Load a session from the store; `None` if it does not exist.

        Concurrent calls share one read.

        Raises:
            StoreError, InternalError: It cannot be read, or its facts are not valid.
        """
        under_way = self._under_way.get(session_id)
        # Shielded: one caller that is cancelled must not cancel the read of the others.
        return await asyncio.shield(under_way or self._start(session_id, self._read(session_id)))

    async def removed(self, session_id: str, removal: Coroutine[Any, Any, T]) -> T:
        """Run the removal of a session and return its result; callers that need the session wait.

        Args:
            session_id: Id of the session.
            removal: Removes the session from memory and store; begins when no read is running.

        Raises:
            StoreError: It could not be removed.

        Cancel: Safe; the removal continues, so that no half of a session remains.
        """
        before, done = self._under_way.get(session_id), list[T]()

        async def run() -> None:
            if before is not None:
                await asyncio.wait([before])
            done.append(await removal)

        await asyncio.shield(self._start(session_id, run()))
        return done[0]

    async def settled(self) -> None:
        """Wait until no session is being loaded or removed."""
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    def under_way(self, session_id: str) -> asyncio.Future[LiveSession | None] | None:
        """Return the task that loads or removes a session now; `None` if there is none."""
        return self._under_way.get(session_id)

    def _start(
        self, session_id: str, doing: Coroutine[Any, Any, LiveSession | None]
    ) -> asyncio.Future[LiveSession | None]:
        """Start a load or a removal; callers that need the session wait for it."""
        task = start_task(doing, "arp-directory")
        self._under_way[session_id] = task

        def forget(_: object) -> None:
            # A removal that waited for a load replaced its entry.
            if self._under_way.get(session_id) is task:
                del self._under_way[session_id]

        task.add_done_callback(forget)
        return task

    async def _read(self, session_id: str) -> LiveSession | None:
        """Load a session and add it to those in memory; `None` if it is not stored."""
        meta = await self._store.session(session_id)
        # It may have been created here meanwhile. If its fence were raised now, the store would
        # refuse its writes.
        if session_id in self.sessions:
            return self.sessions[session_id]
        fence = 0
        if meta is not None and self._shared is not None:
            fence = await self._shared.raise_fence(session_id)
            # Read the row again: until the fence was raised, the earlier owner could change the row
            # or delete the session.
            meta = await self._store.session(session_id)
        if meta is None:
            return None
        session = await self._restore(meta, self.states.read)
        # A session with this id may have come into memory while the store was read.
        if (here := self.sessions.get(session_id)) is not None:
            here.fence = max(here.fence, fence)
            return here
        keys = keys_of(Principal(meta.owner))
        live = self._add_live(session, keys, session.sequence, fence)
        self._loaded(live, meta)
        return live

    async def peek(self, meta: SessionMeta) -> Session:
        """Restore the session of a row without adding it to those in memory; see `States.peek`.

        Raises:
            StoreError, InternalError: See `load`.
        """
        return await self._restore(meta, self.states.peek)

    async def _restore(
        self, meta: SessionMeta, read: Callable[[Head], Awaitable[Session]]
    ) -> Session:
        """Return the session of a row; map foreign exceptions to one error."""
        try:
            return await read(self._head(meta))
        except StoreError:
            raise
        except Exception:
            # A session that this version cannot interpret must not keep others from being served.
            logger.exception("session %s cannot be made from its facts", meta.id)
            raise InternalError(
                "The session cannot be read. The server's log has the reason.", detail=meta.id
            ) from None

    def _head(self, meta: SessionMeta) -> Head:
        runtime_id = self._runtime_of(meta.workflow)
        return Head(meta.id, meta.epoch, meta.owner, meta.workflow, runtime_id, meta.created_at)

    def _runtime_of(self, workflow: str) -> str:
        """Return the runtime name of an agent for facts; a name set by the operator comes first."""
        outside = getattr(self._workflows.get(workflow), "runtime_name", "")
        if not outside or self._settings.runtime_id is not None:
            return self.runtime_id
        return f"{outside}@{self.runtime_id}"

    async def take_from_owner(self, session_id: str) -> None:
        """Raise the fence of a session before its deletion, so its owner cannot write to it."""
        if self._shared is not None:
            await self._shared.raise_fence(session_id)

    async def is_still_owner(self, live: LiveSession) -> bool:
        """Return whether this process still owns a session; `True` if the store is not shared."""
        return self._shared is None or await self._shared.fence(live.id) == live.fence

    def _add_live(
        self, session: Session, keys: Sequence[Key], stored: int = 0, fence: int = 0
    ) -> LiveSession:
        """Add a session to those in memory, and count it for its user and address."""
        live = self._make(session, stored)
        live.fence = fence
        live.touch()
        self.sessions[live.id] = live
        live.shares = keys
        self.quota.opened(keys)
        return live

    def idle(self, before: float) -> list[LiveSession]:
        """Return sessions that are idle and were last used before a time of the loop's clock."""
        return [live for live in self.sessions.values() if live.idle and live.used_at < before]

    def remove(self, live: LiveSession, why: ArpError | None = None) -> bool:
        """Remove a session from memory; nothing of it is written after this.

        Args:
            live: The session.
            why: Error for callers that still wait for the session.

        Returns:
            Whether it was in memory.
        """
        live.leave(why or InternalError("the session was removed from memory; try again"))
        if self.sessions.get(live.id) is not live:
            return False
        del self.sessions[live.id]
        self.quota.left(live.shares)
        return True


def _reopened(live: LiveSession, provisional: bool) -> LiveSession:
    """Return an existing session that a caller opens, after recording its use.

    A provisional session stays provisional only if this caller opens it as provisional too.
    """
    live.touch()
    live.is_provisional = live.is_provisional and provisional
    return live


def not_found(session_id: str) -> SessionNotFound:
    """Return the error for a session that does not exist or belongs to another user."""
    return SessionNotFound(f"no session {session_id!r}", detail=session_id)
