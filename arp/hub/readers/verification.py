"""Verification of sessions against the hashes that the ledger keeps.

Theory of operation. The store keeps the hash of a session's chain for each run of facts that it has
sorted. The verifier computes the chain again from the facts, page by page in a thread, and compares
the hashes. A caller can check one session. A round over all sessions starts when a caller asks for
the state of the ledger, and uses at most a tenth of a core, so that it slows nothing down; the
caller gets what is known so far.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from contextlib import aclosing
from typing import Final, Literal

from msgspec import Struct

from arp.ledger.chain import Break, ChainBroken, ChainCheck, KeptCheck
from arp.store.errors import StoreDamaged, StoreError
from arp.store.session_list import SessionMeta
from arp.store.store import Store, pages

logger = logging.getLogger(__name__)

PAUSE: Final = 9.0
"""Pause after each page of a round, as a multiple of the time that the page took."""

REST_S: Final = 60.0
RESTS: Final = 10.0
"""Shortest time between two rounds: seconds, and a multiple of the time that the last one took.

So frequent requests for the state of a large ledger cost a hundredth of a core."""

MOST_SESSIONS: Final = 100
"""Sessions per read of the list, and most broken sessions that are named; all are counted."""


class BrokenSession(Struct, frozen=True, rename="camel"):
    """Session with changed or damaged facts."""

    session_id: str
    sequence: int
    """First fact that may be bad."""
    through: int
    """Last fact that may be bad."""
    reason: str


class LedgerVerification(Struct, frozen=True, rename="camel"):
    """State of the verification of a ledger."""

    state: Literal["not_begun", "running", "done", "stopped"]
    """`stopped`: the ledger could not be read to its end."""
    sessions: int
    """Sessions that this round, or the last one, has checked."""
    unkept: int
    """Checked sessions without a kept hash, for which nothing could be compared."""
    broken: int
    """Checked sessions with changed or damaged facts."""
    named: list[BrokenSession]
    """Broken sessions that the caller may see."""


class Verifier:
    """Compares sessions with their kept hashes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self._next_round_at = float("-inf")
        """Earliest start of the next round, on the loop's clock."""
        self._state: Literal["not_begun", "running", "done", "stopped"] = "not_begun"
        self._sessions = self._unkept = 0
        self._broken: dict[str, tuple[str, Break]] = {}
        """Owner and damage of broken sessions, by session id."""

    async def check(self, session_id: str, epoch: str, pause: float = 0.0) -> ChainCheck:
        """Check one session up to its newest durable fact.

        Args:
            session_id: Id of the session.
            epoch: Epoch of its log.
            pause: Pause after each page, as a multiple of the time that the page took.

        Raises:
            StoreError: The ledger cannot be read.

        Cancel: Safe.
        """
        check = KeptCheck(session_id, epoch, await self._store.heads(session_id))
        broken: Break | None = None
        try:
            async with aclosing(pages(self._store, session_id)) as found:
                async for page in found:
                    began = time.perf_counter()
                    await asyncio.to_thread(check.compare, [fact for _, fact in page])
                    await asyncio.sleep((time.perf_counter() - began) * pause)
            check.finish()
        except ChainBroken as error:
            broken = error.broken
        except StoreDamaged as error:
            broken = Break(error.after + 1, error.after + 1, error.message)
        return check.checked(session_id, broken)

    # -- rounds over all sessions ------------------------------------------------------------------

    def begin(self) -> None:
        """Start a round over all sessions, unless one is running or ended recently."""
        loop = asyncio.get_running_loop()
        if self._task is None and loop.time() >= self._next_round_at:
            self._task = loop.create_task(self._round(), name="arp-verify")

    async def aclose(self) -> None:
        """Stop the round. A second call does nothing."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def report(self, owner: str | None) -> LedgerVerification:
        """Return what is known so far; broken sessions are named to their owner only."""
        named = [
            BrokenSession(session_id, found.sequence, found.through, found.reason)
            for session_id, (session_owner, found) in self._broken.items()
            if session_owner == owner
        ]
        counts = self._sessions, self._unkept, len(self._broken)
        return LedgerVerification(self._state, *counts, named[:MOST_SESSIONS])

    async def _round(self) -> None:
        """Check all sessions, and record when the next round may begin."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._state, self._sessions, self._unkept = "running", 0, 0
        before: str | None = None
        seen: set[str] = set()
        try:
            while metas := await self._store.sessions(before=before, limit=MOST_SESSIONS):
                for meta in metas:
                    await self._check_and_record(meta)
                    seen.add(meta.id)
                before = metas[-1].cursor
            # Sessions that were deleted since the last round are no longer broken.
            self._broken = {key: self._broken[key] for key in self._broken if key in seen}
            self._state = "done"
        except StoreError as error:
            logger.warning("the verification of the ledger stopped before its end: %s", error)
            self._state = "stopped"
        now = loop.time()
        self._next_round_at, self._task = now + max(REST_S, RESTS * (now - began)), None

    async def _check_and_record(self, meta: SessionMeta) -> None:
        found = await self.check(meta.id, meta.epoch, PAUSE)
        self._sessions += 1
        self._unkept += found.broken is None and not found.kept_through
        if found.broken is None:
            self._broken.pop(meta.id, None)
            return
        now = await self._store.session(meta.id)
        if now is None or now.epoch != meta.epoch:
            # It was deleted during the check, so the facts were rightly missing.
            return
        if meta.id not in self._broken:
            logger.error("session %s: %s", meta.id, found.broken.reason)
        self._broken[meta.id] = meta.owner, found.broken
