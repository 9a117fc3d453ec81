"""Sessions and threads: list, read, follow, verify and resume them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from collections.abc import Sequence as Several
from contextlib import aclosing
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from arp.access.principal import Principal
from arp.control.context import ControlContext
from arp.control.facts import FactFilter, follow
from arp.control.method import (
    Id,
    Kinds,
    Params,
    Sequence,
    SessionId,
    SessionParams,
    ThreadId,
    method,
)
from arp.hub.runner import DebugDetails
from arp.ledger.chain import ChainCheck
from arp.protocol.errors import PermissionDenied, UnknownObject
from arp.protocol.json_value import JsonObject
from arp.store.errors import StoreDamaged
from arp.store.session_list import SessionMeta
from arp.store.store import facts

MOST_EVENTS = 1000
"""Largest number of facts in a page."""

READ_FACTS = 200
"""Number of facts that are read from the store at once."""

PAGE_BYTES = 4 << 20
"""Size of a page in bytes; a page ends after the fact that reaches it."""


class ListSessions(Params, frozen=True, kw_only=True):
    """Parameters of `agentSession/list`."""

    workflow: Id | None = None
    before: Annotated[str, Meta(max_length=1024, description="at most 1024 characters")] | None = (
        None
    )
    """`next` of the previous page."""
    limit: Annotated[int, Meta(ge=1, le=200, description="1 to 200")] = 50
    all_users: bool = False
    """Whether to list the sessions of all users, without the titles of others; admins only."""


class ReadSession(SessionParams, frozen=True, kw_only=True):
    """Parameters of `agentSession/read`: a snapshot of the session, or one of its threads."""

    view: Literal["session", "thread"] = "session"
    thread_id: Id | None = None
    """Thread for `view: thread`; `None` means the thread that was active last."""


class ReadEvents(SessionParams, frozen=True, kw_only=True):
    """Parameters of `agentSession/events`: a page of facts."""

    after: Sequence = 0
    before: Sequence | None = None
    """Sequence number of the first fact after the range; `None` means no end."""
    limit: Annotated[int, Meta(ge=1, le=MOST_EVENTS, description="1 to 1000")] = 200
    types: Kinds = ()

    def read_at_once(self, after: int) -> int:
        """Return how many facts to read at once after a sequence number."""
        if self.before is None:
            return READ_FACTS
        return max(0, min(READ_FACTS, self.before - after - 1))


class ResumeThread(SessionParams, frozen=True, kw_only=True):
    """Parameters of `agentSession/thread/resume`."""

    thread_id: Id | None = None
    after: Sequence | None = None
    """Sequence number of the last fact that the caller has. The caller gets a snapshot if this is
    `None` or if the log does not contain that fact."""
    epoch: Id | None = None
    """Epoch of the log that `after` refers to."""


class StartThread(Params, frozen=True, kw_only=True):
    """Parameters of `agentSession/thread/start`; the turns of a thread share one history."""

    session_id: SessionId | None = None
    """Session of the thread; a new session if this is `None` or the session does not exist."""
    thread_id: ThreadId | None = None
    """Id of the thread. A call with an existing id changes nothing. `None` makes an id."""
    title: Annotated[str, Meta(max_length=80, description="at most 80 characters")] | None = None
    workflow: Id | None = None
    """Agent of a new session."""


class ThreadState(Struct, frozen=True, rename="camel"):
    """State of a thread after it was started."""

    session_id: str
    epoch: str
    thread_id: str
    sequence: int
    """Sequence number of the session's newest fact at the time of the answer."""
    repeated: bool = False
    """Whether the thread existed before; then the call changed nothing."""


class SessionRow(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A session in a list."""

    session_id: str
    epoch: str
    workflow: str
    title: str
    created_at: str
    updated_at: str
    turns: int
    sequence: int
    """Sequence number of the newest fact."""
    active: bool
    """Whether a turn runs or waits."""
    owner: str | None = None
    """Name of the owner, in the list for an admin."""
    failed: bool = False
    """Whether the last turn that ended has failed."""


class SessionPage(Struct, frozen=True, omit_defaults=True):
    """A page of sessions, and the cursor of the next page."""

    sessions: list[SessionRow]
    next: str | None = None


class EventPage(Struct, frozen=True, rename="camel"):
    """A page of facts, byte for byte as they are stored."""

    session_id: str
    epoch: str
    events: list[Raw]
    next: int
    """`after` of the next page; equal to the `after` of this page if there are no more facts."""


class ResumedThread(Struct, frozen=True, rename="camel", omit_defaults=True):
    """State of a thread, and the repairs that were made when its session was loaded."""

    session_id: str
    thread_id: str
    epoch: str
    sequence: int
    """Sequence number of the last fact that the state includes."""
    recovery: list[Raw]
    """Facts that the server recorded to repair the session when it loaded it from the ledger;
    empty if nothing was interrupted."""
    thread: JsonObject
    resume: Literal["events", "snapshot"]
    snapshot: JsonObject | None = None


class DebugPage(Struct, frozen=True):
    """Errors in the code of agents, oldest first."""

    details: list[DebugDetails]


class Sessions:
    """Sessions of one principal."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context

    @method("agentSession/list")
    async def page(self, request: ListSessions) -> SessionPage:
        """Return a page of sessions, newest update first.

        Raises:
            PermissionDenied: Only an admin may list the sessions of all users.
        """
        hub, who = self._context.hub, self._context.principal
        if request.all_users and not who.is_admin:
            raise PermissionDenied("only an admin may list the sessions of all users")
        find = hub.all_metas if request.all_users else partial(hub.metas, who)
        metas = await find(workflow=request.workflow, before=request.before, limit=request.limit)
        is_full = len(metas) == request.limit
        rows = [_admin_row(meta, who) if request.all_users else _row(meta) for meta in metas]
        return SessionPage(rows, metas[-1].cursor if is_full else None)

    @method("agentSession/read")
    async def read(self, request: ReadSession) -> JsonObject:
        """Return the snapshot of a session or the read model of a thread, from durable facts.

        Raises:
            UnknownObject: There is no such thread.

        Source: control-plane.md 4.
        """
        context = await self._context.reader(request.session_id)
        model = await context.model(request.session_id)
        if request.view == "session":
            return model.snapshot(self._context.now())
        thread = model.thread(request.thread_id, self._context.now())
        if thread is None:
            raise UnknownObject(f"no thread {request.thread_id!r:.80}", detail="threadId")
        return thread

    @method("agentSession/events")
    async def events(self, request: ReadEvents) -> EventPage:
        """Return a page of durable facts between two sequence numbers.

        Raises:
            StoreDamaged: The first fact of the page is damaged.
        """
        head = await (await self._context.reader(request.session_id)).head(request.session_id)
        choice, cursor, size = FactFilter.of(request.types), request.after, 0
        events: list[Raw] = []
        while len(events) < request.limit and size < PAGE_BYTES:
            most = request.read_at_once(cursor)
            if most == 0:
                break
            try:
                chunk = await self._context.hub.store.read(request.session_id, cursor, most)
            except StoreDamaged:
                # The facts before the damaged one are still returned; the next page raises.
                if cursor == request.after:
                    raise
                break
            if not chunk:
                break
            for cursor, fact in chunk:  # noqa: B007 - the next page starts where the loop ends
                if choice.matches(fact):
                    events.append(Raw(fact))
                    size += len(fact)
                    if len(events) == request.limit or size >= PAGE_BYTES:
                        break
        return EventPage(request.session_id, head.epoch, events, cursor)

    @method("agentSession/debug")
    async def debug(self, request: SessionParams) -> DebugPage:
        """Return the tracebacks of a session's turns since the server started.

        Only `arp serve --debug` keeps tracebacks. They are not in the ledger.
        """
        context = await self._context.reader(request.session_id)
        head = await context.head(request.session_id)
        return DebugPage(self._context.hub.runner.debug_details(head.session_id))

    async def verify(self, request: SessionParams) -> ChainCheck:
        """Compare a session's facts with the hashes that the ledger keeps of them."""
        head = await (await self._context.reader(request.session_id)).head(request.session_id)
        return await self._context.hub.verifier.check(head.session_id, head.epoch)

    async def follow(
        self, session_id: str, after: int = 0, types: Several[str] = ()
    ) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield sequence number and bytes of each fact after `after`: stored facts, then live ones.

        Raises:
            ArpError: See `arp.control.facts.follow`.
        """
        live = await (await self._context.reader(session_id)).live(session_id)
        choice = FactFilter.of(types)
        async with aclosing(follow(self._context.hub.store, live, after, choice)) as found:
            async for entry in found:
                yield entry

    @method("agentSession/thread/start")
    async def start_thread(self, request: StartThread) -> ThreadState:
        """Start a thread in a session.

        Raises:
            ResourceLimit: The session has too many threads; nothing has changed.
            ArpError: The agent or the session is refused; nothing has changed.

        Source: the profile's `thread.started`.
        """
        live = await self._context.open(request.session_id, request.workflow)
        session, name = live.session, request.thread_id
        is_known = name is not None and name in session.threads
        if name is None:
            name = session.threads.new_name()
        if not is_known:
            session.begin_thread(name, request.title)
            self._context.carry_out(live, [])
        state = ThreadState(live.id, session.epoch, name, session.sequence, is_known)
        await live.written()
        return state

    @method("agentSession/thread/resume")
    async def resume(self, request: ResumeThread) -> ResumedThread:
        """Load the session of a thread; return the state of the thread and the repairs.

        Raises:
            UnknownObject: There is no such thread.

        Source: control-plane.md 3.
        """
        live = await self._context.live(request.session_id)
        await live.written()
        recovery = [Raw(fact) for fact in await self._repair_facts(live.id)]
        model, now = await self._context.model(request.session_id), self._context.now()
        thread = model.thread(request.thread_id, now)
        if thread is None:
            raise UnknownObject(f"no thread {request.thread_id!r:.80}", detail="threadId")
        epoch, last = live.session.epoch, model.sequence
        is_same = request.epoch in (None, epoch)
        continues = is_same and request.after is not None and request.after <= last
        how: Literal["events", "snapshot"] = "events" if continues else "snapshot"
        snapshot = None if continues else model.snapshot(now)
        thread_id: str = thread["threadId"]
        return ResumedThread(live.id, thread_id, epoch, last, recovery, thread, how, snapshot)

    async def _repair_facts(self, session_id: str) -> Several[bytes]:
        """Return the facts that repaired the session when it was last loaded from the ledger."""
        hub = self._context.hub
        first, last = hub.lifetimes.repairs.get(session_id, (0, 0))
        if not last:
            return []
        async with aclosing(facts(hub.store, session_id, first, last)) as found:
            return [fact async for _, fact in found]


def _admin_row(meta: SessionMeta, reader: Principal) -> SessionRow:
    """Return a row for an admin, without the title of a session that belongs to another user.

    A title is the beginning of a message. Reading it would be an unrecorded access.
    """
    title = meta.title if meta.owner == reader.name else ""
    return msgspec.structs.replace(_row(meta), title=title, owner=meta.owner)


def _row(meta: SessionMeta) -> SessionRow:
    return SessionRow(
        meta.id,
        meta.epoch,
        meta.workflow,
        meta.title,
        meta.created_at,
        meta.updated_at,
        meta.turn_count,
        meta.last_sequence,
        meta.active,
        failed=meta.failed,
    )
