"""Sessions by their read models and facts: list, read, resume; and their threads."""

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
from arp.ledger.chain import Checked
from arp.protocol.errors import PermissionDenied, UnknownObject
from arp.protocol.json_value import JsonObject
from arp.store.errors import StoreDamaged
from arp.store.session_list import SessionMeta
from arp.store.store import facts

MOST_EVENTS = 1000
"""Facts in one page."""

READ_FACTS = 200
"""Facts read at once."""

PAGE_BYTES = 4 << 20
"""A page ends after the fact that exceeds this."""


class ListSessions(Params, frozen=True, kw_only=True):
    """Asks for a page of sessions, newest update first."""

    workflow: Id | None = None
    before: Annotated[str, Meta(max_length=1024, description="at most 1024 characters")] | None = (
        None
    )
    """The `next` of the page before."""
    limit: Annotated[int, Meta(ge=1, le=200, description="1 to 200")] = 50
    all_users: bool = False
    """The sessions of all users, without what was said in those of others; for admins."""


class ReadSession(SessionParams, frozen=True, kw_only=True):
    """Asks for a session's snapshot, or for one of its threads."""

    view: Literal["session", "thread"] = "session"
    thread_id: Id | None = None
    """With `view: thread`; `None` means the one that was active last."""


class ReadEvents(SessionParams, frozen=True, kw_only=True):
    """Asks for a page of facts."""

    after: Sequence = 0
    before: Sequence | None = None
    """Only facts before this one; `None` = up to the newest."""
    limit: Annotated[int, Meta(ge=1, le=MOST_EVENTS, description="1 to 1000")] = 200
    types: Kinds = ()

    def read_at_once(self, after: int) -> int:
        """Return how many facts after a sequence may be read at once."""
        if self.before is None:
            return READ_FACTS
        return max(0, min(READ_FACTS, self.before - after - 1))


class ResumeThread(SessionParams, frozen=True, kw_only=True):
    """Asks to resume a thread."""

    thread_id: Id | None = None
    after: Sequence | None = None
    """The last fact that the caller has. If the log continues from there, so may the caller; else
    it gets a snapshot."""
    epoch: Id | None = None
    """Of the log to which `after` belongs."""


class StartThread(Params, frozen=True, kw_only=True):
    """Asks for a thread: its turns share a history, apart from other threads."""

    session_id: SessionId | None = None
    """`None` makes a new session; so does the id of none."""
    thread_id: ThreadId | None = None
    """The id of the thread; a call with an id that exists changes nothing."""
    title: Annotated[str, Meta(max_length=80, description="at most 80 characters")] | None = None
    workflow: Id | None = None
    """The agent of a new session."""


class ThreadState(Struct, frozen=True, rename="camel"):
    """A thread that turns may join."""

    session_id: str
    epoch: str
    thread_id: str
    sequence: int
    """The session's newest fact at the time of the answer."""
    repeated: bool = False
    """It existed before: the call changed nothing."""


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
    """Of the newest fact."""
    active: bool
    """A turn runs or waits."""
    owner: str | None = None
    """Whose it is, in a list for an admin."""
    failed: bool = False
    """The newest turn that has ended has failed."""


class SessionPage(Struct, frozen=True, omit_defaults=True):
    """Some sessions, and where the list continues."""

    sessions: list[SessionRow]
    next: str | None = None


class EventPage(Struct, frozen=True, rename="camel"):
    """Some facts, byte for byte as they are stored."""

    session_id: str
    epoch: str
    events: list[Raw]
    next: int
    """`after` of the next page; the same as before if there are no more."""


class Resumed(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The state of a thread, and how it was recovered."""

    session_id: str
    thread_id: str
    epoch: str
    sequence: int
    """Further facts come after this."""
    recovery: list[Raw]
    """The facts with which the server repaired the session when it read it from the ledger; none
    if nothing was interrupted."""
    thread: JsonObject
    resume: Literal["events", "snapshot"]
    snapshot: JsonObject | None = None


class DebugPage(Struct, frozen=True):
    """What went wrong in the code of agents, oldest first."""

    details: list[DebugDetails]


class Sessions:
    """Sessions that belong to one principal."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context

    @method("agentSession/list")
    async def page(self, request: ListSessions) -> SessionPage:
        """Return a page of sessions, newest update first.

        Raises:
            PermissionDenied: Somebody who is no admin asks for the sessions of all users.
        """
        hub, who = self._context.hub, self._context.principal
        if request.all_users and not who.is_admin:
            raise PermissionDenied("only an admin may list the sessions of all users")
        find = hub.all_metas if request.all_users else partial(hub.metas, who)
        metas = await find(workflow=request.workflow, before=request.before, limit=request.limit)
        is_full = len(metas) == request.limit
        rows = [_row_of(meta, who) if request.all_users else _row(meta) for meta in metas]
        return SessionPage(rows, metas[-1].cursor if is_full else None)

    @method("agentSession/read")
    async def read(self, request: ReadSession) -> JsonObject:
        """Return the snapshot of a session or the read model of a thread, as far as it is durable.

        Raises:
            UnknownObject: No such thread.

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
        """Return facts after a sequence, and before another, as far as they are durable.

        Raises:
            StoreDamaged: The very next fact cannot be read.
        """
        head = await (await self._context.reader(request.session_id)).head(request.session_id)
        choice, place, size = FactFilter.of(request.types), request.after, 0
        events: list[Raw] = []
        while len(events) < request.limit and size < PAGE_BYTES:
            most = request.read_at_once(place)
            if most == 0:
                break
            try:
                chunk = await self._context.hub.store.read(request.session_id, place, most)
            except StoreDamaged:
                if place == request.after:
                    raise
                break  # the request for the next page reports it
            if not chunk:
                break
            for place, fact in chunk:  # noqa: B007 - the next page continues where the loop ends
                if choice.matches(fact):
                    events.append(Raw(fact))
                    size += len(fact)
                    if len(events) == request.limit or size >= PAGE_BYTES:
                        break
        return EventPage(request.session_id, head.epoch, events, place)

    @method("agentSession/debug")
    async def debug(self, request: SessionParams) -> DebugPage:
        """Return the tracebacks of a session's turns since the server started.

        Only `arp serve --debug` keeps any. They are not in the ledger.
        """
        context = await self._context.reader(request.session_id)
        head = await context.head(request.session_id)
        return DebugPage(self._context.hub.runner.debug_details(head.session_id))

    async def verify(self, request: SessionParams) -> Checked:
        """Compare a session's facts with the hashes that the ledger keeps of them."""
        head = await (await self._context.reader(request.session_id)).head(request.session_id)
        return await self._context.hub.verifier.check(head.session_id, head.epoch)

    async def follow(
        self, session_id: str, after: int = 0, types: Several[str] = ()
    ) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield sequence and bytes of each fact after `after`, stored ones and then live ones.

        Raises:
            ArpError: As `arp.control.facts.follow`.
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
            ResourceLimit: The session has too many; nothing has changed.
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
    async def resume(self, request: ResumeThread) -> Resumed:
        """Load the session of a thread and return its state, with what was repaired.

        Raises:
            UnknownObject: No such thread.

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
        return Resumed(live.id, thread_id, epoch, last, recovery, thread, how, snapshot)

    async def _repair_facts(self, session_id: str) -> Several[bytes]:
        """Return the facts that were written when the session was last read from the ledger."""
        hub = self._context.hub
        first, last = hub.lifetimes.mended.get(session_id, (0, 0))
        if not last:
            return []
        async with aclosing(facts(hub.store, session_id, first, last)) as found:
            return [fact async for _, fact in found]


def _row_of(meta: SessionMeta, reader: Principal) -> SessionRow:
    """Return a row for an admin: a title is the beginning of what was said, which is a look."""
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
