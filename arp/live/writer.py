"""The group commit: one durable write serves all sessions that wait.

Theory of operation. `mark` adds a session to the next write. While one write is running, everything
new is collected for the next one. So the duration of a write sets the frame rate: under load, the
deltas that arrive during a write are delivered together, and durability costs once per write, not
once per token.

One write has four steps: gather the facts of each session, store them all, deliver them, and update
the lists of sessions. A failure is limited to as few sessions as possible: a session that cannot be
gathered is left out, and the store refuses single sessions, not whole writes. Sessions that were
marked together are one unit in all of this.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from arp.live.listing import Listing, texts_in
from arp.live.live_session import LiveSession, SessionWriteBatch
from arp.live.tasks import Service
from arp.protocol.connection.screen import TurnScreen
from arp.protocol.errors import ArpError, InternalError
from arp.protocol.messages import FINAL_STATUSES
from arp.session.input.receive import is_only_greeted
from arp.session.recording.recorded import Batch, TextBatch
from arp.store.batch import merge_units
from arp.store.errors import InvalidWrite, SessionMoved, StoreUnwritable
from arp.store.session_list import SessionMeta
from arp.store.store import SessionWrite, Store

logger = logging.getLogger(__name__)


class Rounds:
    """Counter of writes, for callers that wait for the end of one."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self._event = asyncio.Event()

    @property
    def is_under_way(self) -> bool:
        """Whether a write is running."""
        return self.ended < self.begun

    def end(self) -> None:
        """End the running write, if any, and wake the callers that wait."""
        self.ended = self.begun
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def next(self) -> None:
        """Wait for the next call of `end`."""
        await self._event.wait()


class Writer:
    """Stores what sessions record and then lets them deliver it."""

    def __init__(
        self,
        store: Store,
        now: Callable[[], str],
        listing: Listing,
        failed: Callable[[Sequence[LiveSession], ArpError], None],
        broken: Callable[[str], None],
    ) -> None:
        self._store = store
        self._now = now
        self._listing = listing
        self._failed = failed
        self._dirty: list[LiveSession] = []
        self._together: list[frozenset[str]] = []
        """Sets of session ids; the next write stores each set as a whole or not at all."""
        self._wake = asyncio.Event()
        self._rounds = Rounds()
        self.service = Service("arp-writer", self._run, broken)
        self.writes = 0
        """Number of durable writes so far."""
        self.facts = 0
        """Number of facts written so far."""

    def start(self) -> None:
        """Start writing."""
        self.service.start()

    async def aclose(self) -> None:
        """Write what is left, then end."""
        while self.service.is_open and (self._dirty or self._rounds.is_under_way):
            await self.turnover()
        await self.service.aclose()

    def mark(self, live: LiveSession) -> None:
        """Add a session to the next write."""
        if not self._dirty:
            self._wake.set()
        self._dirty.append(live)

    def mark_together(self, sessions: Sequence[LiveSession]) -> None:
        """Add sessions to the next write, which stores all of them or none.

        Call it right after recording, without an await in between.
        """
        for live in sessions:
            live.mark()
        self._together.append(frozenset(live.id for live in sessions))

    async def turnover(self) -> None:
        """Wait until everything recorded so far is delivered or has failed."""
        rounds = self._rounds
        # A running write does not include what was recorded after its start, so the caller waits
        # for the next write too.
        mine = rounds.begun + (1 if self._dirty else 0)
        while rounds.ended < mine:
            self._wake.set()
            await rounds.next()

    async def room(self) -> None:
        """Wait until the running write ends, or the next one if none is running.

        When this returns, the write of every fact recorded before the call has at least begun. An
        agent that outputs faster than the store can write waits here.
        """
        self._wake.set()
        await self._rounds.next()

    async def _run(self) -> None:
        # A previous task of this service may have ended and left sessions unwritten.
        if self._dirty:
            self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            # A caller may wait for the end of a write though nothing is left to write.
            if not self._dirty:
                self._rounds.end()
            while self._dirty:
                await self._write()

    async def _write(self) -> None:
        """Write everything that is marked, deliver what is stored, and report what is not."""
        self._rounds.begun += 1
        dirty, self._dirty = self._dirty, []
        together, self._together = self._together, []
        try:
            gathered, writes = self._gather(dirty, self._now())
            if together:
                gathered, writes = self._drop_incomplete(gathered, writes, together)
            is_awaited = any(one.actions for one in gathered)
            refused = await self._append(writes, together, is_awaited) if writes else {}
            self._deliver(gathered, refused)
            for write in writes:
                if write.meta is not None and write.session_id not in refused:
                    self._listing.changed(write.meta.owner, write.meta)
        except BaseException:
            # The sessions have handed out these facts, and it is unknown whether they are stored.
            # Only the store can tell, so the sessions are loaded again.
            self._failed([live for live in dirty if not live.gone.done()], _internal_error())
            raise
        finally:
            self._rounds.end()

    def _gather(
        self, dirty: Sequence[LiveSession], at: str
    ) -> tuple[list[SessionWriteBatch], list[SessionWrite]]:
        """Collect the facts of the sessions; return them with the writes for the store."""
        gathered: list[SessionWriteBatch] = []
        writes: list[SessionWrite] = []
        for live in dirty:
            # It left memory after it was marked. Its facts are stored or dropped already.
            if live.gone.done():
                continue
            try:
                one = live.gather(at)
                if isinstance(one.batch, TextBatch):
                    facts = one.batch.facts
                    writes.append(SessionWrite(live.id, one.expected, facts, fence=live.fence))
                elif one.batch.facts:
                    writes.append(self._with_row(one, one.batch, at))
                gathered.append(one)
            except Exception:
                # A fault of one session must not stop the loop that serves all. The session is
                # removed from memory and restored from the store.
                logger.exception("gathering session %s failed", live.id)
                self._failed([live], _internal_error())
        return gathered, writes

    def _with_row(self, one: SessionWriteBatch, batch: Batch, at: str) -> SessionWrite:
        """Return the write of one session, with its row in the list of sessions if that changed."""
        live, known = one.live, self._listing.rows.get(one.live.id)
        row = _changed_row(one, known, at)
        chosen = live.session.chosen_settings
        if live.listed_choice is not chosen:
            # Lists do not show the settings of a session, but settings panels follow its row.
            live.listed_choice = chosen
            if row is None and known is not None:
                row = msgspec.structs.replace(known, last_sequence=batch.sequence)
        if row is not None:
            self._listing.rows[live.id] = row
        texts = texts_in(live.session, batch)
        return SessionWrite(live.id, one.expected, batch.facts, row, texts, live.fence)

    def _drop_incomplete(
        self,
        gathered: list[SessionWriteBatch],
        writes: list[SessionWrite],
        together: Sequence[frozenset[str]],
    ) -> tuple[list[SessionWriteBatch], list[SessionWrite]]:
        """Leave out each unit with a session that could not be gathered.

        Storing the rest of the unit would, for example, put a transferred surface in two sessions.
        """
        here = {one.live.id for one in gathered}
        for unit in merge_units(together):
            if unit <= here:
                continue
            self._failed([one.live for one in gathered if one.live.id in unit], _internal_error())
            gathered = [one for one in gathered if one.live.id not in unit]
            writes = [one for one in writes if one.session_id not in unit]
        return gathered, writes

    async def _append(
        self,
        writes: Sequence[SessionWrite],
        together: Sequence[frozenset[str]],
        is_awaited: bool,
    ) -> Mapping[str, ArpError]:
        """Store the writes; return the sessions whose facts are not stored, each with its error."""
        try:
            refused = await self._store.append(writes, together, is_awaited=is_awaited)
        except StoreUnwritable as error:
            logger.error("%s", error)
            return dict.fromkeys((one.session_id for one in writes), error)
        except Exception:
            # A fault of the store itself, so none of the facts are known to be stored.
            logger.exception("%d sessions cannot be written", len(writes))
            return dict.fromkeys((one.session_id for one in writes), _internal_error())
        self.writes += 1
        for name, reason in refused.items():
            if isinstance(reason, SessionMoved):
                logger.info("%s", reason)
            else:
                logger.error("session %s cannot be written: %s", name, reason)
        # An invalid write is a fault of this program; people who use the screen need no details.
        return {
            name: _internal_error() if isinstance(reason, InvalidWrite) else reason
            for name, reason in refused.items()
        }

    def _deliver(
        self, gathered: Sequence[SessionWriteBatch], refused: Mapping[str, ArpError]
    ) -> None:
        """Deliver the facts of each session, unless the store refused them."""
        for one in gathered:
            if refused and (error := refused.get(one.live.id)) is not None:
                self._failed([one.live], error)
                continue
            self.facts += len(one.batch.facts)
            try:
                one.live.deliver(one)
            except Exception:
                # See `_gather`.
                logger.exception("delivering session %s failed", one.live.id)
                self._failed([one.live], _internal_error())


def _changed_row(one: SessionWriteBatch, known: SessionMeta | None, at: str) -> SessionMeta | None:
    """Return the session's row if a change in it matters for lists or recovery, else `None`.

    A new name or pin does not move a session in the list. A session that only has a greeting
    counts no turns, so lists omit it like an empty one.
    """
    session = one.live.session
    head, settings = session.head, session.settings
    turns = 0 if is_only_greeted(session) else session.screen.count
    active = session.turns.is_active
    is_news = known is None or (known.turn_count, known.active) != (turns, active)
    row = SessionMeta(
        id=head.session_id,
        epoch=head.epoch,
        owner=head.owner,
        workflow=head.workflow,
        title=settings.title,
        created_at=head.created_at or at,
        updated_at=at if known is None or is_news else known.updated_at,
        turn_count=turns,
        last_sequence=one.batch.sequence,
        active=active,
        pinned=settings.pinned,
        is_named=bool(settings.name),
        failed=_has_failed(session.screen.turns),
    )
    if known is not None and row == msgspec.structs.replace(
        known, last_sequence=row.last_sequence, created_at=row.created_at
    ):
        return None
    return row


def _has_failed(turns: dict[str, TurnScreen]) -> bool:
    """Return whether the newest ended turn has failed."""
    for turn in reversed(turns.values()):
        if turn.status in FINAL_STATUSES:
            return turn.status == "failed"
    return False


def _internal_error() -> InternalError:
    return InternalError("Internal error. The server's log has it.")
