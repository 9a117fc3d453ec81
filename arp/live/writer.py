"""The group commit: one durable write serves every session that waits, and is the frame clock.

Theory of operation. While one write is under way, everything new gathers for the next; so under
load neighbouring deltas merge by themselves, and the cost of durability is paid per write, not per
token.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from arp.live.listing import Listing, texts_in
from arp.live.live_session import Gathered, LiveSession
from arp.live.tasks import Service
from arp.protocol.errors import ArpError, InternalError
from arp.protocol.screen import TurnScreen
from arp.session.inputs import is_only_greeted
from arp.session.recorded import Batch, TextBatch
from arp.store.errors import StoreError, StoreUnwritable
from arp.store.session_list import SessionMeta
from arp.store.store import SessionWrite, Store

logger = logging.getLogger(__name__)


class Rounds:
    """Counts writes from their beginning to their end, for those who wait for one."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self._event = asyncio.Event()

    @property
    def is_under_way(self) -> bool:
        """Whether a write has begun and not ended."""
        return self.ended < self.begun

    def end(self) -> None:
        """End the write that is under way, if one is, and tell those who wait."""
        self.ended = self.begun
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def next(self) -> None:
        """Wait until `end` is called."""
        await self._event.wait()


class Writer:
    """Writes what sessions record, then lets them deliver it."""

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
        """Sessions, by id, of which the next write is stored whole or not at all."""
        self._wake = asyncio.Event()
        self._rounds = Rounds()
        self.service = Service("arp-writer", self._run, broken)
        self.writes = 0
        """Durable writes so far."""
        self.facts = 0
        """Facts written so far."""

    def start(self) -> None:
        """Begin to write."""
        self.service.start()

    async def aclose(self) -> None:
        """Write what is left, then end."""
        while self.service.is_open and (self._dirty or self._rounds.is_under_way):
            await self.turnover()
        await self.service.aclose()

    def mark(self, live: LiveSession) -> None:
        """Take a session into the next write."""
        if not self._dirty:
            self._wake.set()
        self._dirty.append(live)

    def mark_together(self, sessions: Sequence[LiveSession]) -> None:
        """Take sessions into the next write, which is stored for all of them or for none.

        For what they have recorded just now, with nothing awaited in between.
        """
        for live in sessions:
            live.mark()
        self._together.append(frozenset(live.id for live in sessions))

    async def turnover(self) -> None:
        """Wait until a write that takes what is recorded now has been delivered, or has failed."""
        rounds = self._rounds
        mine = rounds.begun + (1 if self._dirty else 0)
        while rounds.ended < mine:
            self._wake.set()
            await rounds.next()

    async def room(self) -> None:
        """Wait until what is recorded now is on its way to the disk."""
        self._wake.set()
        await self._rounds.next()

    async def _run(self) -> None:
        if self._dirty:  # left by one that was started before
            self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._dirty:
                await self._write()
            self._rounds.end()

    async def _write(self) -> None:
        self._rounds.begun += 1
        dirty, self._dirty = self._dirty, []
        together, self._together = self._together, []
        try:
            gathered, writes = self._gather(dirty, self._now())
            if together:
                gathered, writes = self._only_whole(gathered, writes, together)
            refused: Mapping[str, ArpError] = {}
            if writes:
                try:
                    await self._store.append(writes)
                    self.writes += 1
                except Exception as error:  # noqa: BLE001 - it is logged there
                    refused = await self._refused(_units(writes, together), error)
            self._deliver(gathered, refused)
            for write in writes:
                if write.meta is not None and write.session_id not in refused:
                    self._listing.changed(write.meta.owner, write.meta)
        except BaseException:
            # What they recorded is taken, and nobody knows whether it is stored.
            self._failed([live for live in dirty if not live.gone.done()], _fault())
            raise
        finally:
            self._rounds.end()

    def _gather(
        self, dirty: Sequence[LiveSession], at: str
    ) -> tuple[list[Gathered], list[SessionWrite]]:
        """Take what sessions recorded, and what of it the store gets."""
        gathered: list[Gathered] = []
        writes: list[SessionWrite] = []
        for live in dirty:
            if live.gone.done():
                continue
            try:
                one = live.gather(at)
                if isinstance(one.batch, TextBatch):
                    writes.append(SessionWrite(live.id, one.expected, one.batch.facts))
                elif one.batch.facts:
                    writes.append(self._with_row(one, one.batch, at))
                gathered.append(one)
            except Exception:
                # One session's fault must not stop the loop that serves all: it is let go, and
                # comes back from the store.
                logger.exception("gathering session %s failed", live.id)
                self._failed([live], _fault())
        return gathered, writes

    def _with_row(self, one: Gathered, batch: Batch, at: str) -> SessionWrite:
        """Return what one session has for a write, with what lists of sessions show."""
        live, known = one.live, self._listing.rows.get(one.live.id)
        row = _row(one, known, at)
        if live.listed_choice is not live.session.settings.chosen:
            # No list shows what is set for a session, but panels of settings follow it this way.
            live.listed_choice = live.session.settings.chosen
            if row is None and known is not None:
                row = msgspec.structs.replace(known, last_sequence=batch.sequence)
        if row is not None:
            self._listing.rows[live.id] = row
        return SessionWrite(live.id, one.expected, batch.facts, row, texts_in(live.session, batch))

    def _only_whole(
        self,
        gathered: list[Gathered],
        writes: list[SessionWrite],
        together: Sequence[frozenset[str]],
    ) -> tuple[list[Gathered], list[SessionWrite]]:
        """Leave out the sessions of which another that belongs to them could not be gathered."""
        here = {one.live.id for one in gathered}
        for unit in _joined(together):
            if unit <= here:
                continue
            self._failed([one.live for one in gathered if one.live.id in unit], _fault())
            gathered = [one for one in gathered if one.live.id not in unit]
            writes = [one for one in writes if one.session_id not in unit]
        return gathered, writes

    async def _refused(
        self, writes: Sequence[Sequence[SessionWrite]], error: Exception
    ) -> dict[str, ArpError]:
        """Return the sessions whose facts are not stored, with why.

        A call is stored whole or not at all. So when one session is at fault, each goes alone, and
        takes no other with it but those that belong to it.
        """
        names = [one.session_id for unit in writes for one in unit]
        if isinstance(error, StoreUnwritable):
            logger.error("%s", error)
            return dict.fromkeys(names, error)
        if len(writes) == 1:
            logger.error("session %s cannot be written", ", ".join(names), exc_info=error)
            return dict.fromkeys(names, error if isinstance(error, StoreError) else _fault())
        refused: dict[str, ArpError] = {}
        for unit in writes:
            try:
                await self._store.append(unit)
                self.writes += 1
            except Exception as alone:  # noqa: BLE001 - it is logged there
                refused |= await self._refused([unit], alone)
        return refused

    def _deliver(self, gathered: Sequence[Gathered], refused: Mapping[str, ArpError]) -> None:
        for one in gathered:
            if refused and (error := refused.get(one.live.id)) is not None:
                self._failed([one.live], error)
                continue
            self.facts += len(one.batch.facts)
            try:
                one.live.deliver(one)
            except Exception:
                # As in `_gather`.
                logger.exception("delivering session %s failed", one.live.id)
                self._failed([one.live], _fault())


def _units(
    writes: Sequence[SessionWrite], together: Sequence[frozenset[str]]
) -> list[list[SessionWrite]]:
    """Divide a write into those that may be stored without the others."""
    unit_of = {name: number for number, unit in enumerate(_joined(together)) for name in unit}
    out: dict[int | str, list[SessionWrite]] = {}
    for one in writes:
        out.setdefault(unit_of.get(one.session_id, one.session_id), []).append(one)
    return list(out.values())


def _joined(together: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Return sets that have nothing in common: those that share a session are one."""
    out: list[frozenset[str]] = []
    for unit in together:
        shared = [one for one in out if one & unit]
        out = [*(one for one in out if not one & unit), unit.union(*shared)]
    return out


def _row(one: Gathered, known: SessionMeta | None, at: str) -> SessionMeta | None:
    """Return the session's row when something in it changed that lists and recovery need.

    A name or a pin is no news of what was said: such a row keeps its place. A session with a
    greeting alone has no turns yet, so that lists leave it out as they do an empty one.
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
        failed=_has_failed(session.screen.turns.values()),
    )
    if known is not None and row == msgspec.structs.replace(
        known, last_sequence=row.last_sequence, created_at=row.created_at
    ):
        return None
    return row


def _has_failed(turns: Iterable[TurnScreen]) -> bool:
    """Return whether the newest turn that has ended has failed."""
    ended = ("completed", "failed", "cancelled")
    return (
        next((turn.status for turn in reversed([*turns]) if turn.status in ended), "") == "failed"
    )


def _fault() -> InternalError:
    return InternalError("Internal error. The server's log has it.")
