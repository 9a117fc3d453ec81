"""Sessions compared with the hashes that the ledger keeps: one on demand, all in the background.

Theory of operation. The store keeps the hash of a session's chain for each run of facts that it has
sorted. Here the chain is made again from the facts, page by page in a thread, and compared. A round
over all sessions begins when somebody asks how the ledger is, and takes at most a tenth of a core,
so that it is in nobody's way; who asks gets what is known so far.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from contextlib import aclosing
from typing import Final, Literal

from msgspec import Struct

from arp.ledger.chain import Break, ChainBroken, Checked, KeptCheck
from arp.store.errors import StoreDamaged, StoreError
from arp.store.session_list import SessionMeta
from arp.store.store import Store, pages

logger = logging.getLogger(__name__)

PAUSE: Final = 9.0
"""Times as long as the work took does a round rest behind each page."""

REST_S: Final = 60.0
RESTS: Final = 10.0
"""A round does not begin sooner after the last one than this, or than so many times what that took:
so a large ledger that is asked about all the time costs a hundredth of a core."""

MOST_SESSIONS: Final = 100
"""Of one page of the list of sessions, and broken ones that are named; all are counted."""


class BrokenSession(Struct, frozen=True, rename="camel"):
    """A session with facts that are not what they were."""

    session_id: str
    sequence: int
    """The first fact that may be bad."""
    through: int
    """The last one that may be."""
    reason: str


class LedgerVerification(Struct, frozen=True, rename="camel"):
    """What is known of the sessions of a ledger."""

    state: Literal["not_begun", "running", "done", "stopped"]
    """`stopped`: the ledger could not be read to its end."""
    sessions: int
    """That this round, or the last one, has looked at."""
    unkept: int
    """Those of them of which no hash is kept yet, so nothing could be compared."""
    broken: int
    """Those of them with facts that are not what they were."""
    named: list[BrokenSession]
    """The broken ones that whoever asks may see."""


class Verifier:
    """Compares sessions with the hashes that are kept of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self._due = float("-inf")
        """When the next round may begin, by the loop's clock."""
        self._state: Literal["not_begun", "running", "done", "stopped"] = "not_begun"
        self._sessions = self._unkept = 0
        self._broken: dict[str, tuple[str, Break]] = {}
        """Session → its owner, and what is wrong."""

    async def check(self, session_id: str, epoch: str, pause: float = 0.0) -> Checked:
        """Compare one session, as far as it is durable.

        Args:
            session_id: Of the session.
            epoch: Of its log.
            pause: Times as long as the work took to rest behind each page.

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
                    await asyncio.to_thread(check.take, [fact for _, fact in page])
                    await asyncio.sleep((time.perf_counter() - began) * pause)
            check.finish()
        except ChainBroken as error:
            broken = error.broken
        except StoreDamaged as error:
            broken = Break(error.after + 1, error.after + 1, error.message)
        return check.checked(session_id, broken)

    # -- all of them -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a round over all sessions, unless one is under way or has just ended."""
        loop = asyncio.get_running_loop()
        if self._task is None and loop.time() >= self._due:
            self._task = loop.create_task(self._round(), name="arp-verify")

    async def aclose(self) -> None:
        """End the round. Harmless when repeated."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def report(self, owner: str | None) -> LedgerVerification:
        """Return what is known so far; the broken sessions by name to their owner alone."""
        named = [
            BrokenSession(session_id, found.sequence, found.through, found.reason)
            for session_id, (whose, found) in self._broken.items()
            if whose == owner
        ]
        counts = self._sessions, self._unkept, len(self._broken)
        return LedgerVerification(self._state, *counts, named[:MOST_SESSIONS])

    async def _round(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._state, self._sessions, self._unkept = "running", 0, 0
        before: str | None = None
        seen: set[str] = set()
        try:
            while metas := await self._store.sessions(before=before, limit=MOST_SESSIONS):
                for meta in metas:
                    await self._look_at(meta)
                    seen.add(meta.id)
                before = metas[-1].cursor
            self._broken = {key: self._broken[key] for key in self._broken if key in seen}
            self._state = "done"
        except StoreError as error:
            logger.warning("the ledger is not verified to its end: %s", error)
            self._state = "stopped"
        now = loop.time()
        self._due, self._task = now + max(REST_S, RESTS * (now - began)), None

    async def _look_at(self, meta: SessionMeta) -> None:
        found = await self.check(meta.id, meta.epoch, PAUSE)
        self._sessions += 1
        self._unkept += found.broken is None and not found.kept_through
        if found.broken is None:
            self._broken.pop(meta.id, None)
            return
        now = await self._store.session(meta.id)
        if now is None or now.epoch != meta.epoch:
            return  # it was deleted meanwhile
        if meta.id not in self._broken:
            logger.error("session %s: %s", meta.id, found.broken.reason)
        self._broken[meta.id] = meta.owner, found.broken
