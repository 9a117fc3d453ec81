"""What sessions are made of when they come into memory: a stored state, and the facts behind it.

Theory of operation. Reading a session folds its log; that of a long one takes minutes. So its
state is stored *behind* the log: when it leaves the memory, when the server stops, and while it
grows. A state is a cache. It is stored when the facts that it covers are durable, so a crash finds
an older one or none, and reads more facts; one that cannot be used is passed over, and all facts
are read. No write of facts waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing

import msgspec

from arp.hub.archive import Archive
from arp.hub.heap import trimmer
from arp.hub.live import LiveSession
from arp.hub.settings import HubSettings
from arp.hub.tasks import Service
from arp.ledger.fact import Fact, decode
from arp.protocol.errors import ArpError
from arp.redact.redactor import Redactor
from arp.session.branches import Forked, Survey
from arp.session.recovery import end_plan, go_on, seal
from arp.session.session import Head, Session
from arp.session.session_settings import Rules
from arp.session.state import UnreadableState, decode_state, encode_state
from arp.session.window import PastTurn
from arp.store.errors import FactUnreadable, StoreError
from arp.store.store import Store

logger = logging.getLogger(__name__)

NAME = "live"
"""Under which the store keeps this kind of model."""

PAGE = 1000
"""Facts read at once: about what one segment of the store holds."""

SLICE = 100
"""Facts taken before the loop goes on with others: about two milliseconds."""

ROUND_S = 2.0
"""How often sessions in memory are looked over."""

MANY_TURNS = 200
"""That left while a long log is read: they are stored, so as not to fill the memory."""

SHORT = 250
"""Facts that are read as fast as a state: for so few none is stored."""

BYTES_PER_FACT = 100
"""A state that is larger than this for each fact since the last one is stored less often, so that
what is kept on the screen does not cost more than what happens."""

MISFIT = "it did not fit the facts behind it"

STOP_S = 3.0
"""How long a server that stops goes on storing states."""


class States:
    """The stored states of a hub's sessions."""

    def __init__(
        self, store: Store, sessions: Mapping[str, LiveSession], settings: HubSettings
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._settings = settings
        self._rules = Rules(settings.limits, settings.policy, settings.telemetry)
        self.redactor = Redactor(settings.redaction)
        """Of all sessions."""
        self.archive = Archive(store)
        """Where turns go that leave the memory."""
        self._stored: dict[str, tuple[int, int]] = {}
        """How far the stored states of sessions in memory go, and how large they are."""
        self._unreadable: dict[str, FactUnreadable] = {}
        """Sessions with a fact that cannot be read; they are read up to it."""
        self._broken: dict[str, str] = {}
        """Sessions whose stored state could not be used, with why, until it is stored anew."""
        self._noted: set[str] = set()
        """Those of which somebody has been told."""
        self._rested: dict[str, LiveSession] = {}
        """Sessions that left the memory since the last round."""
        self.service = Service("arp-states", self._run)

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
                self._broken[name] = MISFIT
            except StoreError:
                raise
            except Forked:
                logger.debug("session %s turned to another branch", head.session_id)
            except Exception:  # noqa: BLE001 - whatever it is, the facts are the truth
                # The state, or what is behind it: the log alone tells which.
                logger.warning("session %s: its state does not fit its facts", head.session_id)
                self._broken[name] = MISFIT
        self._stored.pop(head.session_id, None)
        meta = await self._store.session(head.session_id)
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
        survey, after = Survey(), 0
        while page := await self._page(head.session_id, after):
            for after, body in page:
                if any(name in body for name in _OF_BRANCHES):
                    survey.take(_fact(head.session_id, after, body))
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
        stored = await self._store.load_model(head.session_id, NAME)
        if stored is None:
            return None
        try:
            session = decode_state(stored[1], head, self._rules, self.redactor)
        except UnreadableState as error:
            logger.info("session %s: %s", head.session_id, error)
            self._broken[head.session_id] = str(error)
            return None
        if session.sequence != stored[0]:
            logger.warning("session %s: a stored state of something else", head.session_id)
            self._broken[head.session_id] = "a stored state of something else"
            return None
        self._stored[head.session_id] = session.sequence, len(stored[1])
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
        while page := await self._page(name, session.sequence):
            for start in range(0, len(page), SLICE):
                facts = [_fact(name, *one) for one in page[start : start + SLICE]]
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
                await asyncio.sleep(0)

    async def _page(self, session_id: str, after: int) -> list[tuple[int, bytes]]:
        """Return the next facts, up to one that is known not to be readable."""
        unreadable, most = self._unreadable.get(session_id), PAGE
        if unreadable is not None:
            most = min(PAGE, unreadable.after - after)
        return await self._store.read(session_id, after, most) if most > 0 else []

    def repaired(self, session_id: str) -> str | None:
        """Return why the stored state of a session could not be used.

        Each time that it is made again from the facts this is told once; `None` otherwise.
        """
        if session_id in self._noted or session_id not in self._broken:
            return None
        self._noted.add(session_id)
        return self._broken[session_id]

    def _mended(self, session_id: str) -> None:
        self._broken.pop(session_id, None)
        self._noted.discard(session_id)

    # -- storing ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to store states behind the log."""
        self.service.start()

    async def aclose(self) -> None:
        """Store the states of what is in memory, for a bounded time, and end. All is written."""
        await self.service.aclose()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._store_rested()
                for live in list(self._sessions.values()):
                    if live.stored == live.session.sequence:
                        await self._keep(live, SHORT)

    def rest(self, live: LiveSession) -> None:
        """Record that a session left the memory: its state is stored soon."""
        self._rested[live.id] = live

    def forget(self, session_id: str) -> None:
        """Drop what is in memory of a session that is deleted."""
        for held in (self._stored, self._rested, self._unreadable):
            held.pop(session_id, None)
        self._mended(session_id)

    async def _run(self) -> None:
        trim, has_freed = trimmer(), False
        while True:
            # A round stores what is due. After the first round in which no more sessions left the
            # memory, what they used is given back: not in each, it costs some milliseconds.
            await asyncio.sleep(ROUND_S)
            frees = bool(self._rested)
            await self.keep_up()
            if has_freed and not frees and trim is not None:
                await asyncio.to_thread(trim)
            has_freed = frees

    async def keep_up(self) -> None:
        """Store what is due: of sessions that rest, and of those that grew by many facts.

        Also of those in memory whose stored state could not be used.
        """
        await self._store_rested()
        for session_id in self._broken.keys() & self._sessions.keys():
            await self._keep(self._sessions[session_id], 0)
        every, stored = self._settings.model_every_facts, self._stored
        grown = [
            live
            for session_id, live in self._sessions.items()
            if live.stored - stored.get(session_id, _NONE)[0] >= every
        ]
        for live in grown:
            size = stored.get(live.id, _NONE)[1]
            await self._keep(live, max(every, size // BYTES_PER_FACT))
        for session_id in stored.keys() - self._sessions.keys():
            del stored[session_id]

    async def _store_rested(self) -> None:
        while self._rested:
            await self._keep(self._rested.pop(next(iter(self._rested))), SHORT)

    async def _keep(self, live: LiveSession, least: int) -> None:
        """Store a session's state if it has grown by so many facts; a failure costs only time."""
        log = live.session.log
        if log.sealed is not None:
            return
        least = 0 if live.id in self._broken else least
        if live.stored - self._stored.get(live.id, _NONE)[0] < least:
            return
        turns: list[PastTurn] = []
        try:
            while not log.is_timed:
                await live.written()
            data, sequence = encode_state(live.session), log.sequence
            turns = live.session.screen.take_departed()
            if live.stored < sequence:
                await live.written()
            if live.session.branches is None:
                await self.archive.save(live.session.head, sequence, turns)
            await self._store.save_model(live.id, NAME, sequence, data)
            self._mended(live.id)
            if self._sessions.get(live.id) is live:
                self._stored[live.id] = sequence, len(data)
        except ArpError as error:
            logger.warning("the state of session %s is not stored: %s", live.id, error)
            self._mended(live.id)  # it is tried when others are; not in each round
            live.session.screen.collect_departed(turns)
        except Exception:
            # One session must not end the task that serves all.
            logger.exception("the state of session %s cannot be made", live.id)
            self._mended(live.id)


def _fact(session_id: str, sequence: int, body: bytes) -> Fact:
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FactUnreadable(session_id, sequence, str(error)) from error


_OF_BRANCHES = (b'"turn.submitted"', b'"queue.changed"', b'"session.updated"')
"""What a fact that says anything of branches holds."""

_NONE = (0, 0)
"""Of a session whose state is not stored."""
