"""The thread that writes a ledger: all waiting calls share one transaction and one sync.

Theory of operation. Calls arrive in a queue. The thread takes all that are waiting, lets the
`Journal` commit them together, and reports to the loop once. During the sync the next calls queue
up (group commit).

Under load a `Pace` slows it down a little: a sync costs the same for one fact as for a hundred
(about 130 µs of CPU), so 60 syncs a second, each with the calls of 17 ms, are far cheaper than
1,300. An occasional writer never waits for it.

When the disk refuses, all waiting calls are refused, and later ones at once until a delay is over.
Then the thread opens the file again for the next call, and checks it before it writes. After a
failed sync the state of the file is never assumed.
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
"""Most transactions a second, after a burst of `_BURST`.

A screen shows 60 frames a second, so more would not be visible. At 10,000 facts/s, 1,300 cost 20 µs
of CPU per fact, 250 cost 10, 125 about 7, 60 about 6.
"""

_BURST: Final = 32
"""Transactions that do not wait: a whole turn of one person."""

_MAX_GROUP: Final = 256
"""Most calls in one transaction, to bound its size."""

RETRY_S: Final = 1.0
"""How long calls are refused at once after a failure, before the next one tries the disk again."""

EMPTY_S: Final = 1.0
"""How often it tries to empty a write-ahead log that has deleted facts, while others read it."""

T = TypeVar("T")

Outcome: TypeAlias = object
"""The result of a call, or the exception that says why it was refused."""


class StoreCall(NamedTuple):
    """One waiting call: facts to append, or another action on the journal."""

    future: asyncio.Future[Any]
    batch: Sequence[SessionWrite] = ()
    action: Callable[[], object] | None = None


class Pace:
    """Limits the rate of transactions: `_BURST` at once, then `COMMITS_PER_S`."""

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
        """Sleep until the next transaction is allowed."""
        now = self._clock()
        earned = (now - self._counted_at) * COMMITS_PER_S
        self._credits = min(self._credits + earned, _BURST) - 1
        self._counted_at = now
        if self._credits < 0:
            self._sleep(-self._credits / COMMITS_PER_S)


class LedgerWriter:
    """Handles calls in the order in which they came; waiting appends share one transaction.

    Args:
        journal: From now on only the writer's thread uses it.
        checkpoint: Called from that thread after each `CHECKPOINT_BYTES`; must not wait.
        clock: Returns seconds.
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
        self._empty_at = 0.0
        self._is_closing = False
        self._thread = Thread(target=self._run, name="arp-ledger-write", daemon=True)
        self._thread.start()

    def append(self, batch: Sequence[SessionWrite]) -> asyncio.Future[None]:
        """Append facts; the future is done when they are durable, or has the error."""
        return self._put(StoreCall(self._loop.create_future(), batch))

    def delete(self, session_id: str) -> asyncio.Future[bool]:
        """Delete a session; the result of the future is whether it had anything stored."""
        return self._do(partial(self._journal.delete, session_id))

    def note_removal(self, name: str, note: str | None) -> asyncio.Future[None]:
        """Write the note of a removal; the future is done when it is durable, or has the error."""
        return self._do(partial(self._journal.note_removal, name, note))

    def save(self, session_id: str, name: str, sequence: int, data: bytes) -> asyncio.Future[None]:
        """Store a model; the future is done when it is durable, or has the error."""
        return self._do(partial(self._journal.save, session_id, name, sequence, data))

    async def aclose(self) -> None:
        """Handle the waiting calls and end the thread. The journal stays open."""
        if not self._is_closing:
            self._is_closing = True
            self._calls.put(None)
        await asyncio.to_thread(self._thread.join)

    def _do(self, action: Callable[[], T]) -> asyncio.Future[T]:
        return self._put(StoreCall(self._loop.create_future(), action=action))

    def _put(self, call: StoreCall) -> asyncio.Future[Any]:
        if self._is_closing:
            raise StoreClosed
        self._calls.put(call)
        return call.future

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
            is_open = self._add_waiting(calls)
            self._serve(calls)

    def _add_waiting(self, calls: list[StoreCall]) -> bool:
        """Append the waiting calls to `calls`; return `False` if the writer is closing."""
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
        """Answer calls: all appends in one transaction, then the actions one by one."""
        appends: list[StoreCall] = []
        actions: list[tuple[StoreCall, Callable[[], object]]] = []
        batches: list[Sequence[SessionWrite]] = []
        for call in calls:
            if call.action is not None:
                actions.append((call, partial(_outcome, call.action)))
            else:
                appends.append(call)
                batches.append(call.batch)
        outcomes: list[tuple[StoreCall, Outcome]] = []
        if appends:
            results = self._attempt(partial(self._journal.commit, batches))
            if isinstance(results, StoreUnwritable):
                results = [self._refusal() for _ in appends]
            outcomes += zip(appends, results, strict=True)
        for call, action in actions:
            outcomes.append((call, self._attempt(action)))
        self._report(outcomes)
        if self._journal.unchecked_bytes >= CHECKPOINT_BYTES:
            self._journal.unchecked_bytes = 0
            self._checkpoint()
        if self._journal.has_old_log and self._clock() >= self._empty_at:
            self._empty_at = self._clock() + EMPTY_S
            self._attempt(self._journal.empty_log)

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
        except Exception as error:  # every caller must get an answer
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
            log.debug("ledger %s: the loop is closed, no call is waiting", self._journal.path)


def _outcome(action: Callable[[], object]) -> Outcome:
    try:
        return action()
    except SequenceConflict as error:
        return error


def _answer(outcomes: list[tuple[StoreCall, Outcome]]) -> None:
    for call, outcome in outcomes:
        if call.future.done():
            continue  # the caller was cancelled
        if isinstance(outcome, Exception):
            call.future.set_exception(outcome)
        else:
            call.future.set_result(outcome)
