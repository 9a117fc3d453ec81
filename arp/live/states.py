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
from typing import NamedTuple

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


class _Unreadable(NamedTuple):
    """The first unreadable fact of a log.

    The exception itself is not kept: its traceback would keep the session in memory.
    """

    sequence: int
    message: str


class _Restored(NamedTuple):
    """A session that was restored, and what became of its stored state."""

    session: Session
    state: tuple[int, int] | None
    """Sequence and size in bytes of the stored state; `None` if the facts alone were used."""
    unusable: str | None
    """Why the stored state was not used; `None` if it was usable or missing."""


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
        self._readable: dict[str, int] = {}
        """Sequence of the last readable fact of each session that has an unreadable one."""
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
        """Restore a session from the store, to keep it in memory.

        If a fact cannot be read, the session ends before that fact and is sealed. Evicted turns of
        a long log are stored on the way.

        Raises:
            StoreError: The log cannot be read.

        Cancel: Safe.
        """
        restored, name = await self._restore(head, stores_turns=True), head.session_id
        self._unusable.pop(name, None)
        self._stored.pop(name, None)
        if restored.state is not None:
            self._stored[name] = restored.state
        if restored.unusable is not None:
            self._mark_unusable(name, restored.unusable)
        return restored.session

    async def peek(self, head: Head) -> Session:
        """Restore a session from the store as `read` does, but only to look at it.

        Nothing is stored, and a problem of the stored state is not recorded. If a long log evicts
        many turns, only the newest of them are kept in memory.

        Raises:
            StoreError: The log cannot be read.

        Cancel: Safe.
        """
        return (await self._restore(head, stores_turns=False)).session

    async def _restore(self, head: Head, *, stores_turns: bool) -> _Restored:
        """Restore a session, up to the first fact that cannot be read."""
        name = head.session_id
        # A local variable, because the session may be restored twice at the same time (`read` and
        # `peek`), and each of the two must know how far it can read itself.
        unreadable: _Unreadable | None = None
        while True:
            through = unreadable.sequence - 1 if unreadable is not None else None
            try:
                restored = await self._try_restore(head, through, stores_turns=stores_turns)
            except FactUnreadable as error:
                if unreadable is not None and unreadable.sequence <= error.sequence:
                    # This attempt read only the facts before the known unreadable one, so its error
                    # has to be about an earlier fact. If not, another attempt would read the same
                    # facts and fail in the same way, for ever.
                    raise
                unreadable = _Unreadable(error.sequence, error.message)
                continue
            # The ledger may have been repaired since the session was restored last.
            self._readable.pop(name, None)
            if unreadable is not None:
                self._readable[name] = unreadable.sequence - 1
                logger.error("%s; the session can be read up to that fact", unreadable.message)
                seal(restored.session, unreadable.message)
            return restored

    async def _try_restore(
        self, head: Head, through: int | None, *, stores_turns: bool
    ) -> _Restored:
        """Restore a session from its stored state, or from its facts alone if that fails."""
        name, unusable = head.session_id, None
        stored = await self._store.load_model(name, self.name)
        if stored is not None:
            try:
                session = self._session_of(head, *stored)
                session.screen.collect_departed()
                session = await self._apply_missing(session, through)
                return _Restored(session, (stored[0], len(stored[1])), None)
            except UnreadableState as error:
                unusable = str(error)
            except FactUnreadable as error:
                # The damage may be in the state or in the log. Only the log alone can show that.
                logger.warning("session %s: its state does not fit its facts: %s", name, error)
                unusable = MISFIT
            except StoreError:
                raise
            except BranchNotLoaded:
                logger.debug("session %s turned to another branch", name)
            except Exception:  # noqa: BLE001 - whatever it is, the facts are the truth
                # The damage may be in the state or in the log, as above.
                logger.warning("session %s: its state does not fit its facts", name)
                unusable = MISFIT
        meta = await self._store.session(name)
        durable = meta.last_sequence if meta is not None else 0
        try:
            session = await self._apply_missing(
                self.new(head), through, durable, stores_turns=stores_turns
            )
        except BranchNotLoaded:
            survey = await self.survey(head, through)
            session = await self.branch(head, survey.branches.shown, through)
            end_plan(session)
        return _Restored(session, None, unusable)

    async def survey(self, head: Head, through: int | None = None) -> Survey:
        """Scan the facts that the log of a session has now, up to `through`, for branches.

        Raises:
            StoreError: See `read`.
        """
        survey, session_id = Survey(), head.session_id
        async with aclosing(pages(self._store, session_id, 0, through)) as found:
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

    async def branch(self, head: Head, shown: Iterable[str], through: int | None = None) -> Session:
        """Restore a session that shows certain turns, from the facts that its log has now.

        The session may receive more facts; call `end_plan` after the last one.

        Args:
            head: Head of the session.
            shown: Ids of the turns.
            through: Sequence of the last fact to apply; `None` means the end of the log.

        Raises:
            StoreError: See `read`.
        """
        return await self._apply_missing(self.planned(head, shown), through)

    def _session_of(self, head: Head, sequence: int, data: bytes) -> Session:
        """Return the session of a stored state.

        Raises:
            UnreadableState: The state is unusable.
        """
        session = decode_state(data, head, self._rules, self.redactor)
        if session.sequence != sequence:
            raise UnreadableState("a stored state of something else")
        return session

    async def _apply_missing(
        self,
        session: Session,
        through: int | None,
        durable: int = 0,
        *,
        stores_turns: bool = False,
    ) -> Session:
        """Apply the facts after the newest one of a session.

        Args:
            session: The session.
            through: Sequence of the last fact to apply; `None` means the end of the log.
            durable: Sequence of the newest durable fact, with which evicted turns are stored; 0
                keeps all of them in memory.
            stores_turns: Whether many evicted turns are stored. Otherwise they are dropped; they
                can be read from the log again.
        """
        screen = session.screen
        async with aclosing(self.follow(session, through)) as pieces:
            async for _ in pieces:
                if not durable or len(screen.departed or ()) < MANY_TURNS:
                    continue
                turns = screen.take_departed()
                if stores_turns:
                    await self.store_turns(session.head, durable, turns)
        return session

    async def store_turns(self, head: Head, sequence: int, turns: list[PastTurn]) -> None:
        """Store evicted turns; a failure only costs time at the next read."""
        try:
            await self.archive.save(head, sequence, turns)
        except StoreError as error:
            logger.warning("turns of session %s are not stored: %s", head.session_id, error)

    async def follow(self, session: Session, through: int | None = None) -> AsyncGenerator[None]:
        """Apply the facts after the newest one of a session, in slices, up to `through`.

        `None` means the end of the log.

        Raises:
            StoreError: See `read`.
        """
        name = session.id
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

    def readable_through(self, session_id: str) -> int | None:
        """Return the last readable sequence number; `None` if no unreadable fact is known."""
        return self._readable.get(session_id)

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
        self._readable.pop(session_id, None)

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
