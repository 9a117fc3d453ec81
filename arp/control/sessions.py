"""Sessions as their read models tell them: listed, read, gone on with."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from collections.abc import Sequence as Several
from contextlib import aclosing
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from arp.control.asked import Asked, Id, Kinds, OfSession, Sequence, SessionId, ThreadId
from arp.control.desk import Desk
from arp.control.follow import follow, wanted
from arp.ledger.chain import Checked
from arp.protocol.errors import UnknownObject
from arp.protocol.json_value import JsonObject
from arp.store.errors import StoreDamaged
from arp.store.session_meta import SessionMeta

MOST_EVENTS = 1000
"""Facts in one page."""

READ_FACTS = 200
"""Facts read at once."""

PAGE_BYTES = 4 << 20
"""A page ends behind the fact that takes it over this."""


class ListSessions(Asked, frozen=True, kw_only=True):
    """Asks for a page of sessions, newest update first."""

    workflow: Id | None = None
    before: Annotated[str, Meta(max_length=1024)] | None = None
    """The `next` of the page before."""
    limit: Annotated[int, Meta(ge=1, le=200, description="1 to 200")] = 50


class ReadSession(OfSession, frozen=True, kw_only=True):
    """Asks for a session's snapshot, or for one of its threads."""

    view: Literal["session", "thread"] = "session"
    thread_id: Id | None = None
    """With `view: thread`; `None` means the one that was heard of last."""


class ReadEvents(OfSession, frozen=True, kw_only=True):
    """Asks for a page of facts."""

    after: Sequence = 0
    before: Sequence | None = None
    """Only facts before this one; `None` = up to the newest."""
    limit: Annotated[int, Meta(ge=1, le=MOST_EVENTS, description="1 to 1000")] = 200
    types: Kinds = ()

    def left(self, place: int) -> int:
        """Tells how many facts behind a place may be read at once."""
        return (
            READ_FACTS if self.before is None else max(0, min(READ_FACTS, self.before - place - 1))
        )


class ResumeThread(OfSession, frozen=True, kw_only=True):
    """Asks to go on with a thread."""

    thread_id: Id | None = None
    after: Sequence | None = None
    """The last fact that the caller has. If the log goes on from there, so may the caller; else it
    gets a snapshot."""
    epoch: Id | None = None
    """Of the log that `after` is of."""


class StartThread(Asked, frozen=True, kw_only=True):
    """Asks for a thread: turns that name it know of one another, and of no others."""

    session_id: SessionId | None = None
    """`None` makes a new session; so does one that there is not."""
    thread_id: ThreadId | None = None
    """What the thread is to be called. A call with an id that there is changes nothing."""
    title: Annotated[str, Meta(max_length=80, description="at most 80 characters")] | None = None
    workflow: Id | None = None
    """The agent of a new session."""


class ThreadState(Struct, frozen=True, rename="camel"):
    """A thread that turns may join."""

    session_id: str
    epoch: str
    thread_id: str
    sequence: int
    """The session's newest fact when this was said."""
    repeated: bool = False
    """It was there before: the call changed nothing."""


class SessionRow(Struct, frozen=True, rename="camel"):
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


class SessionPage(Struct, frozen=True, omit_defaults=True):
    """Some sessions, and where the list goes on."""

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
    """Where a thread stands, and how it came there."""

    session_id: str
    thread_id: str
    epoch: str
    sequence: int
    """What follows comes behind this."""
    recovery: list[Raw]
    """First what the server had to mend when it read the session from the ledger: none, if nothing
    was interrupted."""
    thread: JsonObject
    resume: Literal["events", "snapshot"]
    snapshot: JsonObject | None = None


class Sessions:
    """Sessions that belong to one principal."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def page(self, asked: ListSessions) -> SessionPage:
        """Lists sessions, newest update first."""
        metas = await self._desk.hub.metas(
            self._desk.principal, workflow=asked.workflow, before=asked.before, limit=asked.limit
        )
        is_full = len(metas) == asked.limit
        return SessionPage([_row(meta) for meta in metas], metas[-1].cursor if is_full else None)

    async def read(self, asked: ReadSession) -> JsonObject:
        """Gives the snapshot of a session or the read model of a thread, as far as it is durable.

        Raises:
            SessionNotFound, UnknownObject: There is no such session, no such thread.

        Source: ledger.md 5, get_session and get_thread_read.
        """
        model = await self._desk.model(asked.session_id)
        if asked.view == "session":
            return model.snapshot(self._desk.now())
        thread = model.thread(asked.thread_id, self._desk.now())
        if thread is None:
            raise UnknownObject(f"no thread {asked.thread_id!r:.80}", detail="threadId")
        return thread

    async def events(self, asked: ReadEvents) -> EventPage:
        """Gives facts behind a sequence, and before another, as far as they are durable.

        Raises:
            SessionNotFound: There is no such session.
            StoreDamaged: The very next fact cannot be read.
        """
        head = await self._desk.head(asked.session_id)
        choice, place, size = wanted(asked.types), asked.after, 0
        events: list[Raw] = []
        while len(events) < asked.limit and size < PAGE_BYTES:
            most = asked.left(place)
            try:
                chunk = (
                    await self._desk.hub.store.read(asked.session_id, place, most) if most else []
                )
            except StoreDamaged:
                if place == asked.after:
                    raise
                break  # the page behind this one tells it
            if not chunk:
                break
            for place, fact in chunk:  # noqa: B007 - the page goes on where the loop ends
                if choice.takes(fact):
                    events.append(Raw(fact))
                    size += len(fact)
                    if len(events) == asked.limit or size >= PAGE_BYTES:
                        break
        return EventPage(asked.session_id, head.epoch, events, place)

    async def verify(self, asked: OfSession) -> Checked:
        """Compare a session's facts with the hashes that the ledger keeps of them.

        Raises:
            SessionNotFound: There is no such session.
            StoreError: The ledger cannot be read.
        """
        head = await self._desk.head(asked.session_id)
        return await self._desk.hub.verifier.check(head.session_id, head.epoch)

    async def follow(
        self, session_id: str, after: int = 0, types: Several[str] = ()
    ) -> AsyncGenerator[tuple[int, bytes], None]:
        """Gives sequence and bytes of each fact behind `after`, stored ones and then live ones.

        Raises:
            SessionNotFound: There is no such session.
            ArpError: As `arp.control.follow.follow`.
        """
        live = await self._desk.live(session_id)
        async with aclosing(follow(self._desk.hub.store, live, after, wanted(types))) as facts:
            async for entry in facts:
                yield entry

    async def start_thread(self, asked: StartThread) -> ThreadState:
        """Begins a thread in a session.

        Raises:
            ResourceLimit: The session has too many; nothing has changed.
            ArpError: The agent or the session is refused; nothing has changed.

        Source: the profile's `thread.started`.
        """
        live = await self._desk.open(asked.session_id, asked.workflow)
        session, name = live.session, asked.thread_id
        is_known = name is not None and name in session.threads
        if name is None:
            name = session.threads.new_name()
        if not is_known:
            session.begin_thread(name, asked.title)
            self._desk.carry_out(live, [])
        state = ThreadState(live.id, session.head.epoch, name, session.sequence, is_known)
        await live.written()
        return state

    async def resume(self, asked: ResumeThread) -> Resumed:
        """Brings a thread back to work and tells how it stands: what was mended comes first.

        Raises:
            SessionNotFound, UnknownObject: There is no such session, no such thread.

        Source: ledger.md 5, resume_thread.
        """
        live = await self._desk.live(asked.session_id)
        await live.written()
        recovery = [Raw(fact) for fact in await self._mended(live.id)]
        model, now = await self._desk.model(asked.session_id), self._desk.now()
        thread = model.thread(asked.thread_id, now)
        if thread is None:
            raise UnknownObject(f"no thread {asked.thread_id!r:.80}", detail="threadId")
        epoch, last = live.session.head.epoch, model.sequence
        is_same = asked.epoch in (None, epoch)
        goes_on = is_same and asked.after is not None and asked.after <= last
        how: Literal["events", "snapshot"] = "events" if goes_on else "snapshot"
        snapshot = None if goes_on else model.snapshot(now)
        thread_id: str = thread["threadId"]
        return Resumed(live.id, thread_id, epoch, last, recovery, thread, how, snapshot)

    async def _mended(self, session_id: str) -> Several[bytes]:
        """Gives the facts that were written when the session was last read from the ledger."""
        hub = self._desk.hub
        first, last = hub.mended.get(session_id, (0, 0))
        if not last:
            return []
        return [fact for _, fact in await hub.store.read(session_id, first, last - first)]


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
    )
