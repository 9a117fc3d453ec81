"""Loading of sessions: a stored state and the facts after it.

Theory of operation. Reading a session folds its log, which takes minutes for a long one. So its
state is stored beside the log (`cache`): when the session leaves memory, when the server stops, and
while the session grows. The facts after the stored state are read from the log. A state that does
not fit the facts is ignored, and the session is restored from the facts alone.

Two special cases. If a fact is unreadable, the session is restored up to that fact and sealed: it
can be read, but not continued. If the log has several branches, a first pass (`survey`) finds the
turns of the shown branch, and a second pass (`branch`) folds only those.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing

from arp.live.archive import Archive
from arp.live.cache import SHORT, Cache, fact_of, slices
from arp.live.live_session import LiveSession
from arp.live.settings import HubSettings
from arp.protocol.errors import ArpError
from arp.redact.redactor import Redactor
from arp.session.recovery import apply_stored, end_plan, seal
from arp.session.session import Head, Session
from arp.session.session_settings import Rules
from arp.session.state import UnreadableState, decode_state, encode_state
from arp.session.tracking.branches import BranchNotLoaded, Survey
from arp.session.tracking.window import PastTurn
from arp.store.errors import FactUnreadable, StoreError
from arp.store.store import Store, pages

logger = logging.getLogger(__name__)

MANY_TURNS = 200
"""Turns evicted while a long log is read; at this number they are stored, to bound the memory."""

MISFIT = "it did not fit the facts after it"
"""Reason why a stored state was unusable, if the facts after it could not be applied."""

STOP_S = 3.0
"""Seconds that a stopping server may spend on storing states."""


_BRANCH_TYPES = (b'"turn.submitted"', b'"queue.changed"', b'"session.updated"')
"""Type names that occur in every fact about branches, as bytes of its JSON."""


class States(Cache):
    """Stored states of a hub's sessions."""

    name, what = "live", "state"

    def __init__(
        self, store: Store, sessions: Mapping[str, LiveSession], settings: HubSettings
    ) -> None:
        super().__init__(store, sessions, settings)
        self._rules = Rules(settings.limits, settings.policy, settings.telemetry)
        self.redactor = Redactor(settings.redaction)
        """Redactor that all sessions share."""
        self.archive = Archive(store)
        """Store of turns that left memory."""
        self._unreadable: dict[str, FactUnreadable] = {}
        """Unreadable facts, by session id; such a session is read up to that fact."""
        self._reported: set[str] = set()
        """Sessions whose unusable state has already been reported."""

    def new(self, head: Head) -> Session:
        """Return an empty session; it collects evicted turns for the archive."""
        rules = self._rules
        session = Session(head, rules.limits, rules.policy, self.redactor, rules.traced)
        session.screen.collect_departed()
        return session

    # -- reading ---------------------------------------------------------------------------------

    async def read(self, head: Head) -> Session:
        """Restore a session from the store.

        If a fact cannot be read, the session ends before that fact and is sealed.

        Raises:
            StoreError: The log cannot be read.

        Cancel: Safe.
        """
        # The ledger may have been repaired since the last attempt.
        self._unreadable.pop(head.session_id, None)
        while True:
            try:
                session = await self._read(head)
            except FactUnreadable as error:
                known = self._unreadable.get(head.session_id)
                if known is not None and known.sequence <= error.sequence:
                    # This attempt read only the facts before the known unreadable one, so its error
                    # has to be about an earlier fact. If not, another attempt would read the same
                    # facts and fail in the same way, for ever.
                    raise
                self._unreadable[head.session_id] = error
                continue
            unreadable = self._unreadable.get(head.session_id)
            if unreadable is not None:
                logger.error("%s; the session can be read up to that fact", unreadable)
                seal(session, unreadable.message)
            return session

    async def _read(self, head: Head) -> Session:
        """Restore a session from its stored state, or from its facts alone if that fails."""
        name = head.session_id
        self._unusable.pop(name, None)
        session = await self._stored_session(head)
        if session is not None:
            try:
                session.screen.collect_departed()
                return await self._apply_missing(session)
            except FactUnreadable as error:
                # The damage may be in the state or in the log. Only the log alone can show that.
                logger.warning("session %s: its state does not fit its facts: %s", name, error)
                self._mark_unusable(name, MISFIT)
            except StoreError:
                raise
            except BranchNotLoaded:
                logger.debug("session %s turned to another branch", name)
            except Exception:  # noqa: BLE001 - whatever it is, the facts are the truth
                # The damage may be in the state or in the log, as above.
                logger.warning("session %s: its state does not fit its facts", name)
                self._mark_unusable(name, MISFIT)
        self._stored.pop(name, None)
        meta = await self._store.session(name)
        try:
            return await self._apply_missing(
                self.new(head), meta.last_sequence if meta is not None else 0
            )
        except BranchNotLoaded:
            survey = await self.survey(head)
            session = await self.branch(head, survey.branches.shown)
            end_plan(session)
            return session

    async def survey(self, head: Head) -> Survey:
        """Scan all facts that the log of a session has now for branches.

        Raises:
            StoreError: See `read`.
        """
        survey, session_id = Survey(), head.session_id
        async with aclosing(pages(self._store, session_id, 0, self._end_of(session_id))) as found:
            async for page in found:
                for sequence, body in page:
                    # Only few facts are about branches, and decoding all of them would be slow.
                    if any(name in body for name in _BRANCH_TYPES):
                        survey.add(fact_of(session_id, sequence, body))
                await asyncio.sleep(0)
        return survey

    def planned(self, head: Head, shown: Iterable[str]) -> Session:
        """Return an empty session that will show certain turns."""
        session = self.new(head)
        session.settings.begin_plan(shown)
        return session

    async def branch(self, head: Head, shown: Iterable[str]) -> Session:
        """Restore a session that shows certain turns, from all facts that its log has now.

        The session may receive more facts; call `end_plan` after the last one.

        Raises:
            StoreError: See `read`.
        """
        return await self._apply_missing(self.planned(head, shown))

    async def _stored_session(self, head: Head) -> Session | None:
        """Return the session of the stored state; `None` if there is none or it is unusable."""
        stored = await self._stored_model(head.session_id)
        if stored is None:
            return None
        try:
            session = decode_state(stored[1], head, self._rules, self.redactor)
        except UnreadableState as error:
            self._mark_unusable(head.session_id, str(error))
            return None
        if session.sequence != stored[0]:
            self._mark_unusable(head.session_id, "a stored state of something else")
            return None
        return session

    async def _apply_missing(self, session: Session, durable: int = 0) -> Session:
        """Apply the facts after the state; store turns that are evicted meanwhile, if many."""
        screen = session.screen
        async with aclosing(self.follow(session)) as pieces:
            async for _ in pieces:
                if durable and len(screen.departed or ()) >= MANY_TURNS:
                    await self.store_turns(session.head, durable, screen.take_departed())
        return session

    async def store_turns(self, head: Head, sequence: int, turns: list[PastTurn]) -> None:
        """Store evicted turns; a failure only costs time at the next read."""
        try:
            await self.archive.save(head, sequence, turns)
        except StoreError as error:
            logger.warning("turns of session %s are not stored: %s", head.session_id, error)

    async def follow(self, session: Session) -> AsyncGenerator[None]:
        """Apply the facts after the newest one of a session, in slices, to the end of the log.

        Raises:
            StoreError: See `read`.
        """
        name = session.id
        through = self._end_of(name)
        async with aclosing(slices(self._store, name, session.sequence, through)) as found:
            async for facts in found:
                try:
                    apply_stored(session, facts)
                except BranchNotLoaded:
                    raise
                except Exception as error:
                    # `apply_stored` counts the facts that it has applied: the next one is at fault.
                    logger.debug("session %s", name, exc_info=True)
                    reason = f"it makes no sense here: {type(error).__name__}"
                    raise FactUnreadable(name, session.sequence + 1, reason) from error
                yield

    def _end_of(self, session_id: str) -> int | None:
        """Return the last readable sequence number; `None` if no unreadable fact is known."""
        unreadable = self._unreadable.get(session_id)
        return unreadable.after if unreadable is not None else None

    def repaired(self, session_id: str) -> str | None:
        """Return why the stored state of a session was unusable, once for each rebuild.

        `None` if it was usable or has been reported.
        """
        if session_id in self._reported or session_id not in self._unusable:
            return None
        self._reported.add(session_id)
        return self._unusable[session_id]

    # -- storing ---------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Store states of sessions in memory, within `STOP_S`; all facts are written already."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._store_evicted()
                for live in list(self._sessions.values()):
                    if live.stored == live.session.sequence:
                        await self._keep(live.id, live, SHORT)

    def forget(self, session_id: str) -> None:
        """Drop what is known of a deleted session; see `Cache.forget`."""
        super().forget(session_id)
        self._unreadable.pop(session_id, None)

    def _clear_unusable(self, session_id: str) -> str | None:
        self._reported.discard(session_id)
        return super()._clear_unusable(session_id)

    async def _make(
        self, session_id: str, live: LiveSession | None, least: int
    ) -> tuple[int, bytes] | None:
        """Return the state of a session; archive its evicted turns before the state is stored."""
        # A sealed session ends before an unreadable fact. Once the ledger is repaired, the session
        # has to be read from its facts.
        if live is None or live.session.sealed is not None:
            return None
        if not self._has_grown(session_id, live.stored, least):
            return None
        session = live.session
        # A fact gets its time when it is written. A state from before that would lack times that
        # the screen shows.
        while not session.log.is_timed:
            await live.written()
        data, sequence = encode_state(session), session.sequence
        turns = session.screen.take_departed()
        try:
            # The state may cover only durable facts: after a crash it would be ahead of the log.
            if live.stored < sequence:
                await live.written()
            # Turns first: after a crash between the two, turns are stored twice, never lost. With
            # several branches the numbers of turns are ambiguous, so nothing is archived.
            if session.branches is None:
                await self.archive.save(session.head, sequence, turns)
        except ArpError:
            # The turns are not stored. They are kept for the next attempt.
            session.screen.collect_departed(turns)
            raise
        return sequence, data
