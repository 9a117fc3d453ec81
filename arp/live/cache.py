"""What is stored behind the log of sessions, so that nobody has to read all of it.

Theory of operation. The facts are the truth; what is made of them is a cache, of which each kind
has a `Cache`. A model is stored when the facts that it covers are durable, so a crash finds an
older one or none, and more facts are read; one that cannot be used is passed over and made again
from the facts. One loop looks at all kinds, and stores what is due: of sessions that have left the
memory, and of those that grew by many facts. No write of facts waits for it.
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
"""Facts taken before the loop goes on with others: about two milliseconds."""

ROUND_S = 2.0
"""How often sessions in memory are looked over."""

SHORT = 250
"""Facts that are read as fast as a stored model: for so few none is stored."""

BYTES_PER_FACT = 100
"""A model that is larger than this for each fact since the last one is stored less often, so that
what is kept on the screen does not cost more than what happens."""

_NONE = (0, 0)


class StoredModel(NamedTuple):
    """A model of a session that was stored."""

    session_id: str
    name: str
    """Of its kind."""
    sequence: int
    """Of the newest fact that it covers."""
    size: int
    """In bytes."""
    repaired: str | None
    """Why the stored one before could not be used; `None`: it could, or there was none."""


Noted: TypeAlias = Callable[[StoredModel], Awaitable[None]]
"""Takes a model that was stored."""


class Cache(ABC):
    """The stored models of one kind, one for each session."""

    name: str
    """Under which the store keeps this kind."""
    what: str
    """What the log calls one."""

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
        self._noted_by = noted
        self._stored: dict[str, tuple[int, int]] = {}
        """How far the store's copies cover their logs, and how large they are; of sessions in
        memory or just read."""
        self._broken: dict[str, str] = {}
        """Sessions whose stored model could not be used, with why, until it is stored anew."""
        self._rested: dict[str, LiveSession | None] = {}
        """Sessions that left the memory, or were read from far behind, since the last round."""

    @abstractmethod
    async def _make(
        self, session_id: str, live: LiveSession | None, least: int
    ) -> tuple[int, bytes] | None:
        """Return a model and the sequence that it covers, when that is durable.

        Args:
            session_id: Of the session.
            live: The session, if it is in memory or has just left it.
            least: Return `None` if it has not grown by so many facts; see `_has_grown`.
        """

    def _is_at_hand(self, session_id: str) -> bool:
        """Return whether to remember how far the stored model of a session goes."""
        return session_id in self._sessions

    async def _stored_model(self, session_id: str) -> tuple[int, bytes] | None:
        """Return what the store has, and remember how far it goes."""
        stored = await self._store.load_model(session_id, self.name)
        self._stored[session_id] = (stored[0], len(stored[1])) if stored is not None else _NONE
        return stored

    def _has_grown(self, session_id: str, sequence: int, least: int) -> bool:
        """Return whether the store's copy is so many facts behind, or cannot be used."""
        is_behind = sequence - self._stored.get(session_id, _NONE)[0] >= least
        return is_behind or session_id in self._broken

    def _pass_over(self, session_id: str, why: str) -> None:
        """Record that a stored model cannot be used: it is made from the facts, and stored anew."""
        logger.info("session %s: %s", session_id, why)
        self._stored.pop(session_id, None)
        self._broken[session_id] = why

    def _mended(self, session_id: str) -> str | None:
        """Forget that a stored model could not be used; return why it could not."""
        return self._broken.pop(session_id, None)

    def rest(self, session_id: str, live: LiveSession | None = None) -> None:
        """Record that a session left the memory: its model is stored soon."""
        self._rested[session_id] = live

    def forget(self, session_id: str) -> None:
        """Drop what is in memory of a session that is deleted."""
        self._stored.pop(session_id, None)
        self._rested.pop(session_id, None)
        self._mended(session_id)

    async def keep_up(self) -> bool:
        """Store what is due; return whether sessions had left the memory since the last time.

        Due are models that could not be used, then sessions that rest, and those that grew by
        `model_every_facts`.
        """
        has_rested = bool(self._rested)
        for session_id in list(self._broken):
            await self._keep(session_id, self._sessions.get(session_id), 0)
        await self._keep_rested()
        every = self._settings.model_every_facts
        for session_id, live in list(self._sessions.items()):
            if self._has_grown(session_id, live.stored, every):
                size = self._stored.get(session_id, _NONE)[1]
                await self._keep(session_id, live, max(every, size // BYTES_PER_FACT))
        for session_id in [name for name in self._stored if not self._is_at_hand(name)]:
            del self._stored[session_id]
        return has_rested

    async def _keep_rested(self) -> None:
        while self._rested:
            session_id = next(iter(self._rested))
            await self._keep(session_id, self._rested.pop(session_id), SHORT)

    async def _keep(self, session_id: str, live: LiveSession | None, least: int) -> None:
        """Store a session's model if it has grown by so many facts; a failure costs only time."""
        try:
            made = await self._make(session_id, live, least)
            if made is None:
                return
            sequence, data = made
            await self._store.save_model(session_id, self.name, sequence, data)
            if self._is_at_hand(session_id):
                self._stored[session_id] = sequence, len(data)
            reason = self._mended(session_id)
            if self._noted_by is not None:
                stored = StoredModel(session_id, self.name, sequence, len(data), reason)
                await self._noted_by(stored)
        except ArpError as error:
            logger.warning("the %s of session %s is not stored: %s", self.what, session_id, error)
            self._mended(session_id)  # it is tried when others are; not in each round
        except Exception:
            # One session must not end the task that serves all.
            logger.exception("the %s of session %s cannot be made", self.what, session_id)
            self._mended(session_id)


async def keep_up(caches: Sequence[Cache]) -> None:
    """Store what is due of each kind, round by round, for ever.

    After the first round in which no more sessions left the memory, what they used is given back to
    the system: not in each, it costs some milliseconds.
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
    """Yield the facts of a session, some at a time; between them the loop goes on with others.

    Raises:
        FactUnreadable: The next fact is none.
        StoreError: The log cannot be read.
    """
    async with aclosing(pages(store, session_id, after, through)) as found:
        async for page in found:
            for start in range(0, len(page), SLICE):
                yield [fact_of(session_id, *one) for one in page[start : start + SLICE]]
                await asyncio.sleep(0)


def fact_of(session_id: str, sequence: int, body: bytes) -> Fact:
    """Return a fact that the store holds.

    Raises:
        FactUnreadable: It is none.
    """
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FactUnreadable(session_id, sequence, str(error)) from error


def trimmer() -> Callable[[], None] | None:
    """Return a function that gives free memory back to the system; `None` where there is none.

    glibc keeps what a program frees, and gives back only what lies at the very end of its heap.
    Sessions leave the memory in any order, so after a busy hour the heap is mostly holes: a server
    with 15 sessions held as much as it had held with 980.

    It takes some milliseconds and can run on any thread: it does not hold the interpreter lock.
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
