"""Writing to the database: waiting calls share one statement, and one statement runs at a time.

Theory of operation. Calls wait in a queue, in order. A task takes the appends at its beginning,
which become one statement, and reports their outcomes; new calls wait meanwhile (group commit). A
call that is not an append runs alone, after all appends before it. A `Pace` limits the rate under
load, as in the writer of a file.

The server may refuse a statement because of one session: its rows are locked or damaged, or a value
cannot be stored. Nothing of the statement is stored then. So each unit (sessions that are stored
together) is sent again in a statement of its own, and only the sessions of the units that fail are
refused. The error is `StoreDamaged` for damaged rows and `InvalidWrite` for a value that cannot be
stored. Otherwise, and for a unit of several sessions, it is `StoreUnwritable`, and the write may be
tried again. Except after `InvalidWrite`, further writes to these sessions are refused immediately
for `SUSPECT_S`.

If the database cannot be used, the calls of the statement fail, and all calls fail immediately
for `RETRY_S`. It is then unknown whether the failed calls are stored: the server may have committed
before the connection was lost. So the writer never sends them again. After a deadlock or a
serialization failure, the server has rolled back, and the statement is sent again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

import psycopg
from psycopg import errors

from arp.store.errors import InvalidWrite, StoreClosed, StoreDamaged, StoreError, StoreUnwritable
from arp.store.journal import AppendCall
from arp.store.postgres.append_batch import APPEND, AppendBatch, RefusalRow, split_call
from arp.store.postgres.connections import Connection, PostgresConnections
from arp.store.postgres.errors import POSTGRES_ERRORS, is_of_statement, postgres_reason
from arp.store.store import Refusals, SessionWrite
from arp.store.writer import RETRY_S, Pace

log = logging.getLogger(__name__)

T = TypeVar("T")

Action: TypeAlias = Callable[[Connection], Awaitable[T]]

MAX_GROUP: Final = 256
"""Maximum number of calls in one statement."""

GROUP_BYTES: Final = 4 * 2**20
"""Bytes of facts at which no further call joins a statement."""

APART_LOCK_MS: Final = 200
"""Maximum time to wait for each lock when a unit has its own statement, in milliseconds.

Writes to other sessions wait during this time.
"""

APART_S: Final = 3.0
"""Time in seconds after which the next failure of a unit makes all remaining units fail."""

SUSPECT_S: Final = 3.0
"""How long writes to a session are refused immediately after one has failed, in seconds.

Without it, each write to a locked session would delay the other sessions by `APART_LOCK_MS`.
"""

_DAMAGE: Final = (psycopg.IntegrityError, errors.DataCorrupted, errors.IndexCorrupted)
"""Errors that damaged rows cause, such as a head with a lower sequence than the last fact."""

_FAULT: Final = "ledger %s: fault in the writer"

_TRIES: Final = 3
"""How often a statement is sent if the server rolls it back because of concurrent transactions."""

_MAX_KNOWN: Final = 10_000
"""Number of sessions at which the acknowledged sequences, or the suspects, are forgotten."""


class QueuedCall(NamedTuple):
    """One call in the queue: facts to append, or another action on a connection."""

    future: asyncio.Future[Any]
    work: AppendCall | Action[Any]
    is_awaited: bool
    """Whether something waits for the outcome; see `Store.append`."""


class Failure(NamedTuple):
    """Why a statement failed."""

    error: Exception | None
    """The error; `None` if nothing was sent, because an earlier call has failed."""
    reason: str
    """Text for the operator, such as a result of `postgres_reason`."""
    is_whole: bool
    """Whether the database cannot be used; otherwise only this statement was refused."""


class Suspect(NamedTuple):
    """A session that may be the cause of a failed statement."""

    failure: Failure
    is_alone: bool
    """Whether the statement wrote to no other session."""
    until: float
    """Its writes are refused until this time; the first one after it has its own statement."""


class PostgresWriter:
    """Runs calls that write, one after the other, on a connection of its own.

    Args:
        connections: The connections; only this writer uses them, and one at a time.
        shown: The location for messages.
        clock: Function that returns the time in seconds.
    """

    def __init__(
        self,
        connections: PostgresConnections,
        shown: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = connections
        self._shown = shown
        self._clock = clock
        self._calls: deque[QueuedCall] = deque()
        self._has_calls = asyncio.Event()
        self._refused: str | None = None
        """Why the database refuses writes; `None` while it accepts them."""
        self._retry_at = 0.0
        """Time of the next attempt to write."""
        self._acknowledged: dict[str, int] = {}
        """Last stored sequence of the sessions that were written to; a cache."""
        self._suspects: dict[str, Suspect] = {}
        self._is_closing = False
        self._task = asyncio.create_task(self._run(), name="arp-ledger-write")

    def append(self, call: AppendCall, *, is_awaited: bool = False) -> asyncio.Future[Refusals]:
        """Append facts. The future is done when they are durable; its result is `call.refused`."""
        return self._enqueue(call, is_awaited=is_awaited)

    def forget(self, session_id: str) -> None:
        """Forget what is known about a session, because it is being deleted."""
        self._acknowledged.pop(session_id, None)
        self._suspects.pop(session_id, None)

    def act(self, action: Action[T]) -> asyncio.Future[T]:
        """Run another action that writes. The future is done when the change is durable."""
        return self._enqueue(action, is_awaited=True)

    async def aclose(self) -> None:
        """Run the waiting calls and close the connection.

        If the database does not answer, the calls fail after `CLOSE_S`.

        Cancel: The waiting calls still run.
        """
        self._is_closing = True
        self._has_calls.set()
        await self._connections.aclose([self._task])

    def _enqueue(self, work: AppendCall | Action[Any], *, is_awaited: bool) -> asyncio.Future[Any]:
        if self._is_closing:
            raise StoreClosed
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls.append(QueuedCall(future, work, is_awaited))
        self._has_calls.set()
        return future

    async def _run(self) -> None:
        pace = Pace()
        try:
            while True:
                await self._has_calls.wait()
                if not self._calls:
                    if self._is_closing:
                        return
                    self._has_calls.clear()
                    continue
                if self._refused is None:
                    # The first call decides; see `Pace`.
                    is_awaited = self._calls[0].is_awaited
                    if (delay_s := pace.delay(is_awaited=is_awaited)) > 0:
                        await asyncio.sleep(delay_s)
                await self._run_first()
        finally:
            # After a cancellation, nothing runs the remaining calls.
            self._is_closing = True
            while self._calls:
                _set_outcome(self._calls.popleft().future, self._refusal())

    async def _run_first(self) -> None:
        """Run the first calls of the queue and report their outcomes."""
        taken: list[QueuedCall] = []
        try:
            appends = self._take_appends(taken)
            if not appends:
                taken.append(self._calls.popleft())
                await self._run_action(taken[0])
                return
            error = await self._append(appends)
            for call, work in zip(taken, appends, strict=True):
                # One exception per call: a shared one would collect the tracebacks of all callers.
                _set_outcome(call.future, work.refused if error is None else self._refusal())
        except Exception as error:  # the task must not end: every caller waits for an outcome
            log.exception(_FAULT, self._shown)
            self._fault(error, is_whole=True)
        finally:
            for call in taken:
                if not call.future.done():
                    _set_outcome(call.future, self._refusal())

    def _take_appends(self, taken: list[QueuedCall]) -> list[AppendCall]:
        """Move the appends for one statement from the queue to `taken` and return them."""
        appends: list[AppendCall] = []
        size = 0
        while self._calls and len(appends) < MAX_GROUP and size < GROUP_BYTES:
            work = self._calls[0].work
            if not isinstance(work, AppendCall):
                break
            taken.append(self._calls.popleft())
            appends.append(work)
            size += sum(len(fact) for write in work.batch for fact in write.facts)
        return appends

    async def _run_action(self, call: QueuedCall) -> None:
        assert not isinstance(call.work, AppendCall)
        outcome = await self._attempt(call.work)
        if isinstance(outcome, Failure):
            # If only this statement failed, the database is usable and `_refused` is `None`.
            reason = (self._refused or "") if outcome.is_whole else outcome.reason
            outcome = StoreUnwritable(self._shown, reason, is_readable=False)
        _set_outcome(call.future, outcome)

    async def _append(self, calls: Sequence[AppendCall]) -> Failure | None:
        """Store calls, if possible in one statement, and add the refusals to them.

        Returns:
            The failure if the database cannot be used: then all calls fail. Otherwise `None`.
        """
        must_test = bool(self._suspects) and self._refuse_suspects(calls)
        failure = None if must_test else await self._store(calls)
        if must_test or (failure is not None and not failure.is_whole):
            await self._append_apart(calls)
            return None
        return failure

    def _refuse_suspects(self, calls: Sequence[AppendCall]) -> bool:
        """Refuse the writes to suspects; return whether a suspect must be tried again."""
        must_test = False
        for call in calls:
            for write in call.batch:
                suspect = self._suspects.get(write.session_id)
                if suspect is None:
                    continue
                if self._clock() >= suspect.until:
                    must_test = True
                    continue
                error = self._session_error(suspect.failure, write, suspect.is_alone)
                call.refused.setdefault(write.session_id, error)
        return must_test

    async def _append_apart(self, calls: Sequence[AppendCall]) -> None:
        """Store each unit in a statement of its own, and refuse only those that fail.

        After a failure, later writes to the same sessions are refused too, because the facts before
        them are not stored.
        """
        ends_at = self._clock() + APART_S
        failed: dict[str, Failure] = {}
        whole: Failure | None = None
        for part in [part for call in calls for part in split_call(call)]:
            names = {write.session_id for write in part.batch}
            failure = whole or next((failed[name] for name in names & failed.keys()), None)
            if failure is None:
                failure = await self._store([part], APART_LOCK_MS)
            if failure is None:
                for name in names:
                    self._suspects.pop(name, None)
                continue
            if failure.is_whole:
                whole = failure
            elif self._clock() > ends_at:
                # The cause is probably not a single session, but for example a lock on a table.
                whole = self._refuse(failure.error, failure.reason)
            for write in part.batch:
                failed[write.session_id] = failure
                error = self._session_error(failure, write, len(names) == 1)
                part.refused.setdefault(write.session_id, error)
                if not failure.is_whole and not isinstance(error, InvalidWrite):
                    self._suspect(write.session_id, failure, is_alone=len(names) == 1)

    def _suspect(self, session_id: str, failure: Failure, *, is_alone: bool) -> None:
        if session_id not in self._suspects:
            log.error(
                "ledger %s: session %s cannot be written: %s",
                self._shown,
                session_id,
                failure.reason,
            )
        if len(self._suspects) > _MAX_KNOWN:
            self._suspects.clear()
        self._suspects[session_id] = Suspect(failure, is_alone, self._clock() + SUSPECT_S)

    def _session_error(self, failure: Failure, write: SessionWrite, is_alone: bool) -> StoreError:
        """Return the error of a session that the database refuses.

        Args:
            failure: Why its statement failed.
            write: A write to the session.
            is_alone: Whether the statement wrote to no other session. Otherwise it is unknown which
                session is damaged or invalid.
        """
        if is_alone and not failure.is_whole:
            if isinstance(failure.error, _DAMAGE):
                return StoreDamaged(write.session_id, write.expected_sequence)
            if isinstance(failure.error, psycopg.DataError | errors.ProgramLimitExceeded):
                return InvalidWrite(f"session {write.session_id:.80}: {failure.reason}")
        return StoreUnwritable(self._shown, failure.reason, is_readable=False)

    async def _store(
        self, calls: Sequence[AppendCall], lock_ms: int | None = None
    ) -> Failure | None:
        """Store calls in one statement and add the refusals to them; return why it failed."""
        try:
            batch = AppendBatch(calls) if lock_ms is None else AppendBatch(calls, lock_ms)
            if batch.is_empty:
                return None
            parameters = batch.parameters()
        except Exception as error:  # nothing was sent
            log.exception(_FAULT, self._shown)
            return self._fault(error, is_whole=False)

        async def send(connection: Connection) -> list[RefusalRow]:
            cursor = connection.cursor(binary=True)
            await cursor.execute(APPEND, parameters)
            return cast(list[RefusalRow], await cursor.fetchall())

        rows = await self._attempt(send)
        if isinstance(rows, Failure):
            return rows
        batch.apply_refusals(rows)
        self._note_acknowledged(batch, rows)
        return None

    def _note_acknowledged(self, batch: AppendBatch, rows: Sequence[RefusalRow]) -> None:
        for _, session_id, _, _, actual in rows:
            acknowledged = self._acknowledged.pop(session_id, 0)
            if actual < acknowledged:
                log.error(
                    "ledger %s: session %s has %d facts, but %d were acknowledged; another process "
                    "has deleted it, or the database was restored, or a standby without the "
                    "newest facts became the primary",
                    self._shown,
                    session_id,
                    actual,
                    acknowledged,
                )
        if len(self._acknowledged) > _MAX_KNOWN:
            self._acknowledged.clear()
        self._acknowledged.update(batch.stored())

    async def _attempt(self, action: Action[T]) -> T | Failure:
        """Run an action and return its result, or why it failed."""
        if self._refused is not None and self._clock() < self._retry_at:
            return Failure(None, self._refused, is_whole=True)
        try:
            result = await self._send(action)
        except POSTGRES_ERRORS as error:
            if not is_of_statement(error):
                return self._refuse(error, postgres_reason(error))
            self._accept()
            return Failure(error, postgres_reason(error), is_whole=False)
        except Exception as error:  # the task must not end: every caller waits for an outcome
            log.exception(_FAULT, self._shown)
            return self._fault(error, is_whole=True)
        self._accept()
        return result

    async def _send(self, action: Action[T]) -> T:
        """Run an action, again if the server rolled it back because of other transactions."""

        async def run_committed(connection: Connection) -> T:
            # The transaction has the isolation level of the connection. The default level of the
            # database may be one at which a statement fails after it waited for another
            # transaction. A transaction costs two more statements, so the first attempt has none.
            async with connection.transaction():
                return await action(connection)

        with suppress(errors.DeadlockDetected, errors.SerializationFailure):
            return await self._connections.run(action)
        for _ in range(_TRIES - 2):
            with suppress(errors.DeadlockDetected, errors.SerializationFailure):
                return await self._connections.run(run_committed)
        return await self._connections.run(run_committed)

    def _accept(self) -> None:
        """Stop refusing calls, because the database executes statements."""
        if self._refused is not None:
            self._refused = None
            log.info("ledger %s can be written again", self._shown)

    def _fault(self, error: Exception, *, is_whole: bool) -> Failure:
        """Return the failure for an error of this program."""
        reason = f"fault in the writer ({type(error).__name__})"
        return self._refuse(error, reason) if is_whole else Failure(error, reason, is_whole=False)

    def _refuse(self, error: Exception | None, reason: str) -> Failure:
        """Refuse calls for `RETRY_S` from now on."""
        if self._refused is None:
            log.error("ledger %s cannot be written: %s", self._shown, reason)
        self._refused = reason
        self._retry_at = self._clock() + RETRY_S
        return Failure(error, reason, is_whole=True)

    def _refusal(self) -> StoreUnwritable:
        return StoreUnwritable(self._shown, self._refused or "", is_readable=False)


def _set_outcome(future: asyncio.Future[Any], outcome: object) -> None:
    if future.done():
        return  # the caller was cancelled
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
