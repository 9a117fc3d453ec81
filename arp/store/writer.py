"""The thread that writes a ledger: all waiting calls share one transaction, which is synced.

Theory of operation. Calls come in by a queue. The thread takes all that wait, lets the `Journal`
commit them together, and reports to the loop once. While it syncs, the next calls gather: that is
the group commit.

Under load a `Pace` holds it back a little: a sync costs the same for one fact as for a hundred
(about 130 µs of CPU), so 60 of them a second, with what gathers in 17 ms each, are far cheaper than
1,300. An occasional writer never waits for it.

When the disk refuses, all waiting calls are refused, and so are later ones, at once, until a delay
is over. Then the next call makes the thread open the file again and check it before it writes. A
sync that failed is never tried again and believed.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from arp.store.errors import (
    SequenceConflict,
    StoreClosed,
    StoreError,
    StoreUnwritable,
    sqlite_reason,
)
from arp.store.journal import Journal
from arp.store.store import SessionWrite

log = logging.getLogger(__name__)

CHECKPOINT_BYTES: Final = 8 * 2**20
"""Facts written between two checkpoints: about 20 MiB of write-ahead log."""

COMMITS_PER_S: Final = 60
"""How many transactions a second are enough, once more than `_BURST` came at a stretch.

A screen shows 60 pictures a second, so more would not be seen. At 10,000 facts/s, 1,300 cost 20 µs
of CPU per fact, 250 cost 10, 125 about 7, 60 about 6.
"""

_BURST: Final = 32
"""Transactions that need not wait: a whole turn of one person."""

_MAX_GROUP: Final = 256
"""Calls in one transaction, so that its size has an end."""

RETRY_S: Final = 1.0
"""How long calls are refused at once after a failure, before the next one tries the disk again."""

T = TypeVar("T")

Outcome: TypeAlias = object
"""The result of a call, or the exception that says why it was refused."""


class StoreCall(NamedTuple):
    """One call that waits: facts to append, or something else to do with the journal."""

    future: asyncio.Future[Any]
    batch: Sequence[SessionWrite] = ()
    action: Callable[[], object] | None = None


class Pace:
    """Lets `_BURST` pass, then `COMMITS_PER_S`: the pauses gather calls."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._credits = float(_BURST)
        self._counted_at = clock()

    def wait(self) -> None:
        """Sleep until one more transaction is due."""
        now = self._clock()
        earned = (now - self._counted_at) * COMMITS_PER_S
        self._credits = min(self._credits + earned, _BURST) - 1
        self._counted_at = now
        if self._credits < 0:
            self._sleep(-self._credits / COMMITS_PER_S)


class LedgerWriter:
    """Serves calls in the order in which they came; appends that wait share one transaction.

    Args:
        journal: Is used by the writer's thread alone from now on.
        checkpoint: Is called from that thread when `CHECKPOINT_BYTES` were written; never waits.
        clock: In seconds.
    """

    def __init__(
        self,
        journal: Journal,
        checkpoint: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = journal
        self._checkpoint = checkpoint
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[StoreCall | None] = SimpleQueue()
        self._refused: str | None = None
        self._retry_at = 0.0
        self._is_closing = False
        self._thread = Thread(target=self._run, name="arp-ledger-write", daemon=True)
        self._thread.start()

    def append(self, batch: Sequence[SessionWrite]) -> asyncio.Future[None]:
        """Append facts; the future is done when they are durable, or says why they are not."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._put(StoreCall(future, batch))
        return future

    def delete(self, session_id: str) -> asyncio.Future[bool]:
        """Delete a session; the future has whether there was anything."""
        return self._do(partial(self._journal.delete, session_id))

    def save(self, session_id: str, name: str, sequence: int, data: bytes) -> asyncio.Future[None]:
        """Keep a model; the future is done when it is kept, or says why it is not."""
        return self._do(partial(self._journal.save, session_id, name, sequence, data))

    async def aclose(self) -> None:
        """Serve what waits, then end the thread. The journal is left open."""
        if not self._is_closing:
            self._is_closing = True
            self._calls.put(None)
        await asyncio.to_thread(self._thread.join)

    def _do(self, action: Callable[[], T]) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        self._put(StoreCall(future, action=action))
        return future

    def _put(self, call: StoreCall) -> None:
        if self._is_closing:
            raise StoreClosed
        self._calls.put(call)

    def _run(self) -> None:
        pace = Pace()
        is_open = True
        while is_open:
            call = self._calls.get()
            if call is None:
                return
            if self._refused is None:
                pace.wait()
            calls = [call]
            is_open = self._take_waiting(calls)
            self._serve(calls)

    def _take_waiting(self, calls: list[StoreCall]) -> bool:
        """Add what waits to `calls`; false when the end has come."""
        while len(calls) < _MAX_GROUP:
            try:
                call = self._calls.get_nowait()
            except Empty:
                break
            if call is None:
                return False
            calls.append(call)
        return True

    def _serve(self, calls: list[StoreCall]) -> None:
        appends = [call for call in calls if call.action is None]
        outcomes: list[tuple[StoreCall, Outcome]] = []
        if appends:
            results = self._attempt(lambda: self._journal.commit([one.batch for one in appends]))
            if isinstance(results, StoreUnwritable):
                results = [self._refusal() for _ in appends]
            outcomes += zip(appends, results, strict=True)
        for call in calls:
            if call.action is not None:
                outcomes.append((call, self._attempt(partial(_outcome, call.action))))
        self._report(outcomes)
        if self._journal.unchecked_bytes >= CHECKPOINT_BYTES:
            self._journal.unchecked_bytes = 0
            self._checkpoint()

    def _attempt(self, action: Callable[[], T]) -> T | StoreUnwritable:
        """Return what `action` returns, or why the disk refuses it."""
        try:
            if self._refused is not None:
                if self._clock() < self._retry_at:
                    return self._refusal()
                self._journal.reopen()
                self._refused = None
                log.info("ledger %s can be written again", self._journal.path)
            return action()
        except sqlite3.Error as error:
            self._refuse(sqlite_reason(error))
        except StoreError as error:
            self._refuse(str(error))
        except Exception as error:  # every caller must get an answer, whatever it was
            log.exception("ledger %s: fault in the writer", self._journal.path)
            self._refuse(f"fault in the writer ({type(error).__name__})")
        return self._refusal()

    def _refuse(self, reason: str) -> None:
        if self._refused is None:
            log.error("ledger %s cannot be written: %s", self._journal.path, reason)
        self._refused = reason
        self._retry_at = self._clock() + RETRY_S
        self._journal.abandon()

    def _refusal(self) -> StoreUnwritable:
        return StoreUnwritable(str(self._journal.path), self._refused or "")

    def _report(self, outcomes: list[tuple[StoreCall, Outcome]]) -> None:
        try:
            self._loop.call_soon_threadsafe(_answer, outcomes)
        except RuntimeError:
            log.debug("ledger %s: the loop is closed, nobody waits", self._journal.path)


def _outcome(action: Callable[[], object]) -> Outcome:
    try:
        return action()
    except SequenceConflict as error:
        return error


def _answer(outcomes: list[tuple[StoreCall, Outcome]]) -> None:
    for call, outcome in outcomes:
        if call.future.done():
            continue  # whoever waited was cancelled
        if isinstance(outcome, Exception):
            call.future.set_exception(outcome)
        else:
            call.future.set_result(outcome)
