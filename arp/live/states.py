"""What sessions are made of when they come into memory: a stored state, and the facts behind it.

Theory of operation. Reading a session folds its log; that of a long one takes minutes. So its state
is stored behind the log (`cache`): when it leaves the memory, when the server stops, and while it
grows. What is not covered by it, or does not fit it, is read from the facts.
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
from arp.session.branches import Forked, Survey
from arp.session.recovery import end_plan, go_on, seal
from arp.session.session import Head, Session
from arp.session.session_settings import Rules
from arp.session.state import UnreadableState, decode_state, encode_state
from arp.session.window import PastTurn
from arp.store.errors import FactUnreadable, StoreError
from arp.store.store import Store, pages

logger = logging.getLogger(__name__)

MANY_TURNS = 200
"""That left while a long log is read: they are stored, so as not to fill the memory."""

MISFIT = "it did not fit the facts behind it"

STOP_S = 3.0
"""How long a server that stops goes on storing states."""


_OF_BRANCHES = (b'"turn.submitted"', b'"queue.changed"', b'"session.updated"')
"""What a fact that says anything of branches holds."""


class States(Cache):
    """The stored states of a hub's sessions."""

    name, what = "live", "state"

    def __init__(
        self, store: Store, sessions: Mapping[str, LiveSession], settings: HubSettings
    ) -> None:
        super().__init__(store, sessions, settings)
        self._rules = Rules(settings.limits, settings.policy, settings.telemetry)
        self.redactor = Redactor(settings.redaction)
        """Of all sessions."""
        self.archive = Archive(store)
        """Where turns go that leave the memory."""
        self._unreadable: dict[str, FactUnreadable] = {}
        """Sessions with a fact that cannot be read; they are read up to it."""
        self._noted: set[str] = set()
        """Sessions whose stored state could not be used, and somebody has been told."""

    def new(self, head: Head) -> Session:
        """Return a session in which nothing has happened; turns that leave it are archived."""
        rules = self._rules
        session = Session(head, rules.limits, rules.policy, self.redactor, rules.traced)
        session.screen.collect_departed()
        return session

    # -- reading ---------------------------------------------------------------------------------

    async def read(self, head: Head) -> Session:
        """Make a session from the store as its log leaves it.

        One with a fact that cannot be read is what it was before that fact, and is sealed.

        Raises:
            StoreError: The log cannot be read.

        Cancel: Safe.
        """
        self._unreadable.pop(head.session_id, None)  # somebody may have mended the ledger
        while True:
            try:
                session = await self._read(head)
            except FactUnreadable as error:
                known = self._unreadable.get(head.session_id)
                if known is not None and known.sequence <= error.sequence:
                    raise  # what was read before is not there any more
                self._unreadable[head.session_id] = error
                continue
            unreadable = self._unreadable.get(head.session_id)
            if unreadable is not None:
                logger.error("%s; it is open to be read up to there", unreadable)
                seal(session, unreadable.message)
            return session

    async def _read(self, head: Head) -> Session:
        name = head.session_id
        self._broken.pop(name, None)
        session = await self._stored_session(head)
        if session is not None:
            try:
                session.screen.collect_departed()
                return await self._rest(session)
            except FactUnreadable as error:
                # Behind this state, or at all: the log alone tells which.
                logger.warning("session %s: its state does not fit its facts: %s", name, error)
                self._pass_over(name, MISFIT)
            except StoreError:
                raise
            except Forked:
                logger.debug("session %s turned to another branch", name)
            except Exception:  # noqa: BLE001 - whatever it is, the facts are the truth
                # The state, or what is behind it: the log alone tells which.
                logger.warning("session %s: its state does not fit its facts", name)
                self._pass_over(name, MISFIT)
        self._stored.pop(name, None)
        meta = await self._store.session(name)
        try:
            return await self._rest(self.new(head), meta.last_sequence if meta is not None else 0)
        except Forked:
            survey = await self.survey(head)
            session = await self.branch(head, survey.branches.shown)
            end_plan(session)
            return session

    async def survey(self, head: Head) -> Survey:
        """Look at all facts that the log of a session has now.

        Raises:
            StoreError: As `read`.
        """
        survey, session_id = Survey(), head.session_id
        async with aclosing(pages(self._store, session_id, 0, self._end_of(session_id))) as found:
            async for page in found:
                for sequence, body in page:
                    if any(name in body for name in _OF_BRANCHES):
                        survey.take(fact_of(session_id, sequence, body))
                await asyncio.sleep(0)
        return survey

    def planned(self, head: Head, shown: Iterable[str]) -> Session:
        """Return a session in which nothing has happened, and which will show certain turns."""
        session = self.new(head)
        session.settings.begin_plan(shown)
        return session

    async def branch(self, head: Head, shown: Iterable[str]) -> Session:
        """Make a session from all facts that its log has now, which shows certain turns.

        It may take more of them; `end_plan` is to be called behind the last.

        Raises:
            StoreError: As `read`.
        """
        return await self._rest(self.planned(head, shown))

    async def _stored_session(self, head: Head) -> Session | None:
        stored = await self._stored_model(head.session_id)
        if stored is None:
            return None
        try:
            session = decode_state(stored[1], head, self._rules, self.redactor)
        except UnreadableState as error:
            self._pass_over(head.session_id, str(error))
            return None
        if session.sequence != stored[0]:
            self._pass_over(head.session_id, "a stored state of something else")
            return None
        return session

    async def _rest(self, session: Session, durable: int = 0) -> Session:
        """Take the facts that are missing; turns that leave on the way are stored, if many."""
        screen = session.screen
        async with aclosing(self.follow(session)) as pieces:
            async for _ in pieces:
                if durable and len(screen.departed or ()) >= MANY_TURNS:
                    await self.store_turns(session.head, durable, screen.take_departed())
        return session

    async def store_turns(self, head: Head, sequence: int, turns: list[PastTurn]) -> None:
        """Store turns that left; a failure costs only time."""
        try:
            await self.archive.save(head, sequence, turns)
        except StoreError as error:
            logger.warning("turns of session %s are not stored: %s", head.session_id, error)

    async def follow(self, session: Session) -> AsyncGenerator[None]:
        """Take the facts behind what a session was made of, piece by piece, to the end.

        Raises:
            StoreError: As `read`.
        """
        name = session.head.session_id
        through = self._end_of(name)
        async with aclosing(slices(self._store, name, session.sequence, through)) as found:
            async for facts in found:
                try:
                    go_on(session, facts)
                except Forked:
                    raise
                except Exception as error:
                    # Each fact that was taken is counted: the next one makes no sense.
                    logger.debug("session %s", name, exc_info=True)
                    reason = f"it makes no sense here: {type(error).__name__}"
                    raise FactUnreadable(name, session.sequence + 1, reason) from error
                yield

    def _end_of(self, session_id: str) -> int | None:
        """Return the last fact before one that is known not to be readable."""
        unreadable = self._unreadable.get(session_id)
        return unreadable.after if unreadable is not None else None

    def repaired(self, session_id: str) -> str | None:
        """Return why the stored state of a session could not be used.

        Each time that it is made again from the facts this is told once; `None` otherwise.
        """
        if session_id in self._noted or session_id not in self._broken:
            return None
        self._noted.add(session_id)
        return self._broken[session_id]

    # -- storing ---------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Store the states of what is in memory, for a bounded time. All is written."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._keep_rested()
                for live in list(self._sessions.values()):
                    if live.stored == live.session.sequence:
                        await self._keep(live.id, live, SHORT)

    def forget(self, session_id: str) -> None:
        """As `Cache.forget`."""
        super().forget(session_id)
        self._unreadable.pop(session_id, None)

    def _mended(self, session_id: str) -> str | None:
        self._noted.discard(session_id)
        return super()._mended(session_id)

    async def _make(
        self, session_id: str, live: LiveSession | None, least: int
    ) -> tuple[int, bytes] | None:
        if live is None or live.session.log.sealed is not None:
            return None
        if not self._has_grown(session_id, live.stored, least):
            return None
        session = live.session
        while not session.log.is_timed:
            await live.written()
        data, sequence = encode_state(session), session.sequence
        turns = session.screen.take_departed()
        try:
            if live.stored < sequence:
                await live.written()
            if session.branches is None:
                await self.archive.save(session.head, sequence, turns)
        except ArpError:
            session.screen.collect_departed(turns)
            raise
        return sequence, data
