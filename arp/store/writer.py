"""The thread that writes a ledger: all waiting calls share one transaction and one sync.

Theory of operation. Calls wait in a queue. The thread dequeues all of them, the `Journal` commits
them together, and the thread reports their outcomes to the event loop together. New calls wait in
the queue during the sync and share the next transaction (group commit).

Under load, a `Pace` limits the rate of transactions. A sync costs the same for one fact as for a
hundred (about 130 µs of CPU). With 60 syncs per second, each for the calls of 17 ms, writing is far
cheaper than with 1,300. A caller that writes occasionally never waits for the `Pace`. Facts that
something waits for hardly wait either: otherwise, 200 tools that an agent runs one after the other
would take three seconds longer.

If the disk refuses a write, all waiting calls fail, and new calls fail immediately until a delay is
over. The next call after the delay opens the file again and checks it before it writes, because
after a failed sync the state of the file is unknown.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
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
from arp.store.journal import AppendCall, Journal
from arp.store.store import Refusals

log = logging.getLogger(__name__)

CHECKPOINT_BYTES: Final = 8 * 2**20
"""Bytes of facts written between two checkpoints: about 20 MiB of write-ahead log."""

COMMITS_PER_S: Final = 60
"""Maximum number of transactions per second once a burst of `_BURST` is used up.

A screen shows 60 frames per second, so more would not be visible. CPU time per fact at 10,000
facts per second: 20 µs with 1,300 transactions per second, 10 with 250, about 7 with 125, about 6
with 60.
"""

AWAITED_PER_S: Final = 500
"""Maximum number of transactions per second for facts that something waits for."""

_BURST: Final = 32
"""Number of transactions without a wait: enough for a whole turn of one user."""

_MAX_GROUP: Final = 256
"""Maximum number of calls in one transaction, to bound its size."""

RETRY_S: Final = 1.0
"""Delay after a failure during which calls fail immediately, without using the disk."""

EMPTY_S: Final = 1.0
"""Interval of attempts to empty a write-ahead log with deleted facts while it is being read."""

T = TypeVar("T")

Outcome: TypeAlias = object
"""The result of a call, or the exception that refused it."""


class StoreCall(NamedTuple):
    """One call in the queue: facts to append, or another action on the journal."""

    future: asyncio.Future[Any]
    work: AppendCall | Callable[[], object]
    is_awaited: bool = False
    """See `Store.append`."""


class Pace:
    """Limits the rate of transactions: `_BURST` without a wait, then `COMMITS_PER_S`.

    Transactions that something waits for have their own limit, `AWAITED_PER_S`. In every store, the
    first call in the queue decides which limit applies. With many sessions, nearly every
    transaction has some call that something waits for. If any call could decide, `COMMITS_PER_S`
    would hardly ever apply.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._credits = float(_BURST)
        self._counted_at = clock()
        self._awaited_at = 0.0
        """Earliest time of the next transaction that something waits for."""

    def wait(self, *, is_awaited: bool = False) -> None:
        """Sleep until the next transaction is allowed."""
        if (delay_s := self.delay(is_awaited=is_awaited)) > 0:
            self._sleep(delay_s)

    def delay(self, *, is_awaited: bool = False) -> float:
        """Count a transaction and return the seconds to wait before it."""
        now = self._clock()
        earned = (now - self._counted_at) * COMMITS_PER_S
        self._credits = min(self._credits + earned, _BURST) - 1
        self._counted_at = now
        if self._credits >= 0:
            return 0.0
        if not is_awaited:
            return -self._credits / COMMITS_PER_S
        # At most one credit is owed. Otherwise, text that follows many tools would have to wait
        # until all transactions of these tools are paid for.
        self._credits = max(self._credits, -1.0)
        at = max(now, self._awaited_at)
        self._awaited_at = at + 1 / AWAITED_PER_S
        return at - now


class LedgerWriter:
    """Runs calls on the journal in its own thread; waiting appends share one transaction.

    Args:
        journal: The journal. Only the thread of the writer may use it afterwards.
        checkpoint: Function that starts a checkpoint without waiting. The thread calls it after
            every `CHECKPOINT_BYTES`.
        clock: Function that returns the time in seconds.
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
        """Why the disk refuses writes; `None` while it accepts them."""
        self._retry_at = 0.0
        """Time of the next attempt to open the file again."""
        self._empty_at = 0.0
        """Time of the next attempt to empty the write-ahead log."""
        self._is_closing = False
        self._thread = Thread(target=self._run, name="arp-ledger-write", daemon=True)
        self._thread.start()

    def append(self, call: AppendCall, *, is_awaited: bool = False) -> asyncio.Future[Refusals]:
        """Append facts. The future is done when they are durable; its result is `call.refused`."""
        return self._enqueue(StoreCall(self._loop.create_future(), call, is_awaited))

    def delete(self, session_id: str) -> asyncio.Future[bool]:
        """Delete a session. The result of the future is whether anything was stored for it."""
        return self._enqueue_action(partial(self._journal.delete, session_id))

    def note_removal(self, name: str, note: str | None) -> asyncio.Future[None]:
        """Store the note of a removal. The future is done when it is durable, or fails."""
        return self._enqueue_action(partial(self._journal.note_removal, name, note))

    def save(self, session_id: str, name: str, sequence: int, data: bytes) -> asyncio.Future[None]:
        """Store a model. The future is done when it is durable, or fails with the error."""
        return self._enqueue_action(partial(self._journal.save, session_id, name, sequence, data))

    async def aclose(self) -> None:
        """Run the waiting calls and end the thread. The journal stays open."""
        if not self._is_closing:
            self._is_closing = True
            self._calls.put(None)
        await asyncio.to_thread(self._thread.join)

    def _enqueue_action(self, action: Callable[[], T]) -> asyncio.Future[T]:
        return self._enqueue(StoreCall(self._loop.create_future(), action))

    def _enqueue(self, call: StoreCall) -> asyncio.Future[Any]:
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
                pace.wait(is_awaited=call.is_awaited)
            calls = [call]
            is_open = self._dequeue_waiting(calls)
            self._run_calls(calls)

    def _dequeue_waiting(self, calls: list[StoreCall]) -> bool:
        """Move the waiting calls to `calls`; return `False` if the writer is closing."""
        while len(calls) < _MAX_GROUP:
            try:
                call = self._calls.get_nowait()
            except Empty:
                break
            if call is None:
                return False
            calls.append(call)
        return True

    def _run_calls(self, calls: list[StoreCall]) -> None:
        """Commit the appends together, run the other actions, and report the outcomes."""
        appends: list[tuple[StoreCall, AppendCall]] = []
        actions: list[tuple[StoreCall, Callable[[], object]]] = []
        for call in calls:
            if isinstance(call.work, AppendCall):
                appends.append((call, call.work))
            else:
                actions.append((call, partial(_outcome_of, call.work)))
        outcomes: list[tuple[StoreCall, Outcome]] = []
        if appends:
            error = self._attempt(partial(self._journal.commit, [work for _, work in appends]))
            # One exception per call: a shared one would collect the tracebacks of all callers.
            for call, work in appends:
                outcomes.append((call, work.refused if error is None else self._refusal()))
        for call, action in actions:
            outcomes.append((call, self._attempt(action)))
        self._report(outcomes)
        if self._journal.bytes_since_checkpoint >= CHECKPOINT_BYTES:
            self._journal.bytes_since_checkpoint = 0
            self._checkpoint()
        if self._journal.has_old_log and self._clock() >= self._empty_at:
            self._empty_at = self._clock() + EMPTY_S
            self._attempt(self._journal.empty_log)

    def _attempt(self, action: Callable[[], T]) -> T | StoreUnwritable:
        """Call `action` and return its result, or the error if the ledger cannot be written."""
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
        except Exception as error:  # the thread must not end: every caller waits for an outcome
            log.exception("ledger %s: fault in the writer", self._journal.path)
            self._refuse(f"fault in the writer ({type(error).__name__})")
        return self._refusal()

    def _refuse(self, reason: str) -> None:
        """Refuse calls for `RETRY_S` from now on, and close the file without committing."""
        if self._refused is None:
            log.error("ledger %s cannot be written: %s", self._journal.path, reason)
        self._refused = reason
        self._retry_at = self._clock() + RETRY_S
        self._journal.abandon()

    def _refusal(self) -> StoreUnwritable:
        return StoreUnwritable(str(self._journal.path), self._refused or "")

    def _report(self, outcomes: list[tuple[StoreCall, Outcome]]) -> None:
        try:
            self._loop.call_soon_threadsafe(_set_results, outcomes)
        except RuntimeError:
            log.debug("ledger %s: the loop is closed, no call is waiting", self._journal.path)


def _outcome_of(action: Callable[[], object]) -> Outcome:
    """Call `action`. Return a conflict instead of raising it: it is not a failure of the disk."""
    try:
        return action()
    except SequenceConflict as error:
        return error


def _set_results(outcomes: list[tuple[StoreCall, Outcome]]) -> None:
    for call, outcome in outcomes:
        if call.future.done():
            # The caller was cancelled; setting the result would raise and skip the other calls.
            continue
        if isinstance(outcome, Exception):
            call.future.set_exception(outcome)
        else:
            call.future.set_result(outcome)
