"""What is stored beside the logs of sessions, so that a log need not be read from its beginning.

Theory of operation. The facts are the truth; everything derived from them is a cache. Each kind of
derived model has a `Cache`. A model is stored after the facts that it covers are durable. So after
a crash the stored model is an older one or missing, and more facts are read. A model that is
unusable is ignored and rebuilt from the facts. One loop visits all kinds and stores what is due:
models of evicted sessions and of sessions that have grown by many facts. No write of facts waits
for this loop.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple, TypeAlias

import msgspec

from arp.ledger.fact import Fact, decode
from arp.live.live_session import LiveSession
from arp.live.settings import HubSettings
from arp.protocol.errors import ArpError
from arp.store.errors import FactUnreadable
from arp.store.store import Store, pages

logger = logging.getLogger(__name__)

SLICE = 100
"""Facts that are folded before other tasks of the loop run: about two milliseconds."""

ROUND_S = 2.0
"""Seconds between two rounds over the sessions in memory."""

SHORT = 250
"""Facts that are read as fast as a stored model; for fewer facts no model is stored."""

BYTES_PER_FACT = 100
"""Size of a model in bytes, per new fact, up to which the model is stored again.

A model of 1 MB is stored again after 10,000 new facts at the earliest, so that storing it costs
less than storing the facts themselves."""

_NONE = (0, 0)


class StoredModel(NamedTuple):
    """Description of a model that was just stored."""

    session_id: str
    name: str
    """Name of its kind."""
    sequence: int
    """Sequence of the newest fact that it covers."""
    size: int
    """Size in bytes."""
    repaired: str | None
    """Why the previously stored model was unusable; `None` if it was usable or missing."""


Noted: TypeAlias = Callable[[StoredModel], Awaitable[None]]
"""Called with each model that was stored."""


class Cache(ABC):
    """Stored models of one kind, at most one per session."""

    name: str
    """Name of the kind in the store."""
    what: str
    """Name of a model in log messages."""

    def __init__(
        self,
        store: Store,
        sessions: Mapping[str, LiveSession],
        settings: HubSettings,
        noted: Noted | None = None,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._settings = settings
        self._on_stored = noted
        self._stored: dict[str, tuple[int, int]] = {}
        """Sequence number and size in bytes of the stored models, by session id.

        It has entries only for sessions that are in memory or were just read."""
        self._unusable: dict[str, str] = {}
        """Reasons why stored models are unusable, by session id, until they are replaced."""
        self._evicted: dict[str, LiveSession | None] = {}
        """Sessions whose model is stored in the next round, by id, each with its live session.

        They left memory since the last round, or their stored model lags far behind the log. The
        live session is `None` if the session was read without one."""

    @abstractmethod
    async def _make(
        self, session_id: str, live: LiveSession | None, least: int
    ) -> tuple[int, bytes] | None:
        """Return a model and the sequence that it covers, once that is durable.

        Args:
            session_id: Id of the session.
            live: The session, if it is in memory or has just left it.
            least: Return `None` if the log has grown by fewer facts; see `_has_grown`.
        """

    def _is_tracked(self, session_id: str) -> bool:
        """Return whether to remember which model of a session is stored."""
        return session_id in self._sessions

    async def _stored_model(self, session_id: str) -> tuple[int, bytes] | None:
        """Return the stored model with its sequence, and remember sequence and size."""
        stored = await self._store.load_model(session_id, self.name)
        self._stored[session_id] = (stored[0], len(stored[1])) if stored is not None else _NONE
        return stored

    def _has_grown(self, session_id: str, sequence: int, least: int) -> bool:
        """Return whether the stored model lags by at least `least` facts or is unusable."""
        is_behind = sequence - self._stored.get(session_id, _NONE)[0] >= least
        return is_behind or session_id in self._unusable

    def _mark_unusable(self, session_id: str, why: str) -> None:
        """Record that a stored model is unusable; it is rebuilt from the facts and replaced."""
        logger.info("session %s: %s", session_id, why)
        self._stored.pop(session_id, None)
        self._unusable[session_id] = why

    def _clear_unusable(self, session_id: str) -> str | None:
        """Forget that a stored model was unusable; return the reason, if it was."""
        return self._unusable.pop(session_id, None)

    def rest(self, session_id: str, live: LiveSession | None = None) -> None:
        """Record that a session left memory; its model is stored in the next round."""
        self._evicted[session_id] = live

    def forget(self, session_id: str) -> None:
        """Drop what is known of a deleted session."""
        self._stored.pop(session_id, None)
        self._evicted.pop(session_id, None)
        self._clear_unusable(session_id)

    async def keep_up(self) -> bool:
        """Store the models that are due; return whether sessions left memory since the last round.

        Due are unusable models, then models of sessions that left memory, then models of sessions
        that have grown by `model_every_facts`.
        """
        has_rested = bool(self._evicted)
        for session_id in list(self._unusable):
            await self._keep(session_id, self._sessions.get(session_id), 0)
        await self._store_evicted()
        every = self._settings.model_every_facts
        for session_id, live in list(self._sessions.items()):
            if self._has_grown(session_id, live.stored, every):
                size = self._stored.get(session_id, _NONE)[1]
                # A large model is due after more facts; see `BYTES_PER_FACT`.
                await self._keep(session_id, live, max(every, size // BYTES_PER_FACT))
        for session_id in [name for name in self._stored if not self._is_tracked(name)]:
            del self._stored[session_id]
        return has_rested

    async def _store_evicted(self) -> None:
        while self._evicted:
            session_id = next(iter(self._evicted))
            await self._keep(session_id, self._evicted.pop(session_id), SHORT)

    async def _keep(self, session_id: str, live: LiveSession | None, least: int) -> None:
        """Store a session's model if its log has grown enough.

        A failure is logged. No data is lost: without the model, loading reads more facts.
        """
        try:
            made = await self._make(session_id, live, least)
            if made is None:
                return
            sequence, data = made
            await self._store.save_model(session_id, self.name, sequence, data)
            if self._is_tracked(session_id):
                self._stored[session_id] = sequence, len(data)
            reason = self._clear_unusable(session_id)
            if self._on_stored is not None:
                stored = StoredModel(session_id, self.name, sequence, len(data), reason)
                await self._on_stored(stored)
        except ArpError as error:
            logger.warning("the %s of session %s is not stored: %s", self.what, session_id, error)
            # The next round must not try again: a full store would fail every two seconds for ever.
            self._clear_unusable(session_id)
        except Exception:
            # One session must not end the task that serves all of them.
            logger.exception("the %s of session %s cannot be made", self.what, session_id)
            self._clear_unusable(session_id)


async def keep_up(caches: Sequence[Cache]) -> None:
    """Store what is due of each kind, round by round, for ever.

    When the evictions stop, free memory is returned to the system. This costs some milliseconds,
    so it does not happen in each round.
    """
    trim, has_freed = trimmer(), False
    while True:
        await asyncio.sleep(ROUND_S)
        frees = any([await one.keep_up() for one in caches])
        if has_freed and not frees and trim is not None:
            await asyncio.to_thread(trim)
        has_freed = frees


async def slices(
    store: Store, session_id: str, after: int, through: int | None = None
) -> AsyncGenerator[list[Fact]]:
    """Yield the facts of a session in slices; other tasks of the loop run between them.

    Raises:
        FactUnreadable: The next fact cannot be decoded.
        StoreError: The log cannot be read.
    """
    async with aclosing(pages(store, session_id, after, through)) as found:
        async for page in found:
            for start in range(0, len(page), SLICE):
                yield [fact_of(session_id, *one) for one in page[start : start + SLICE]]
                await asyncio.sleep(0)


def fact_of(session_id: str, sequence: int, body: bytes) -> Fact:
    """Decode a stored fact.

    Raises:
        FactUnreadable: It cannot be decoded.
    """
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FactUnreadable(session_id, sequence, str(error)) from error


def trimmer() -> Callable[[], None] | None:
    """Return a function that returns free memory to the system; `None` if there is none.

    glibc keeps memory that a program frees and returns only what lies at the very end of its heap.
    Sessions leave memory in any order, so after a busy hour the heap is mostly holes: a server
    with 15 sessions used as much memory as it had used with 980.

    The function takes some milliseconds and may run in any thread; it does not hold the interpreter
    lock.
    """
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc: musl, macOS, Windows
        return None
    malloc_trim.argtypes = [ctypes.c_size_t]
    malloc_trim.restype = ctypes.c_int

    def trim() -> None:
        malloc_trim(0)

    return trim
