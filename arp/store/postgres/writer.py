"""Writing to the database: waiting calls share one statement, and one statement runs at a time.

Theory of operation. Calls wait in a queue, in order. A task removes the appends at its front, which
become one statement, and reports their outcomes; calls that arrive meanwhile share the next
statement (group commit). A call that is not an append runs alone, after all appends before it. A
`Pace` limits the rate under load, as in the writer of a file.

If the database does not accept a statement, its calls fail, and all calls fail immediately until a
delay is over. It is then unknown whether the failed calls are stored: the server may have committed
before the connection was lost. So no statement is sent again, except after a deadlock or a
serialization failure, which the server rolls back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

from psycopg import errors

from arp.store.errors import StoreClosed, StoreUnwritable
from arp.store.journal import AppendCall
from arp.store.postgres.append_batch import APPEND, AppendBatch, RefusalRow
from arp.store.postgres.connections import Connection, PostgresConnections
from arp.store.postgres.errors import POSTGRES_ERRORS, postgres_reason
from arp.store.store import Refusals
from arp.store.writer import RETRY_S, Pace

log = logging.getLogger(__name__)

T = TypeVar("T")

Action: TypeAlias = Callable[[Connection], Awaitable[T]]

MAX_GROUP: Final = 256
"""Maximum number of calls in one statement."""

GROUP_BYTES: Final = 4 * 2**20
"""Bytes of facts at which no further call joins a statement."""

_TRIES: Final = 3
"""How often a statement is sent if the server rolls it back because of concurrent transactions."""

_MAX_KNOWN: Final = 10_000
"""Number of sessions at which the cache of acknowledged sequences is emptied."""


class QueuedCall(NamedTuple):
    """One call in the queue: facts to append, or another action on a connection."""

    future: asyncio.Future[Any]
    work: AppendCall | Action[Any]
    is_awaited: bool
    """Whether something waits for the outcome; see `Store.append`."""


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
        self._is_closing = False
        self._task = asyncio.create_task(self._run(), name="arp-ledger-write")

    def append(self, call: AppendCall, *, is_awaited: bool = False) -> asyncio.Future[Refusals]:
        """Append facts. The future is done when they are durable; its result is `call.refused`."""
        return self._enqueue(call, is_awaited=is_awaited)

    def forget(self, session_id: str) -> None:
        """Forget what was acknowledged for a session, because it is being deleted."""
        self._acknowledged.pop(session_id, None)

    def act(self, action: Action[T]) -> asyncio.Future[T]:
        """Run another action that writes. The future is done when the change is durable."""
        return self._enqueue(action, is_awaited=True)

    async def aclose(self) -> None:
        """Run the waiting calls and close the connection."""
        self._is_closing = True
        self._has_calls.set()
        await self._task
        await self._connections.aclose()

    def _enqueue(self, work: AppendCall | Action[Any], *, is_awaited: bool) -> asyncio.Future[Any]:
        if self._is_closing:
            raise StoreClosed
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls.append(QueuedCall(future, work, is_awaited))
        self._has_calls.set()
        return future

    async def _run(self) -> None:
        pace = Pace()
        while True:
            await self._has_calls.wait()
            if not self._calls:
                if self._is_closing:
                    return
                self._has_calls.clear()
                continue
            if self._refused is None:
                is_awaited = any(call.is_awaited for call in self._calls)
                if (delay_s := pace.delay(is_awaited=is_awaited)) > 0:
                    await asyncio.sleep(delay_s)
            await self._run_first()

    async def _run_first(self) -> None:
        """Run the first calls of the queue and report their outcomes."""
        appends: list[tuple[QueuedCall, AppendCall]] = []
        size = 0
        while self._calls and len(appends) < MAX_GROUP and size < GROUP_BYTES:
            call = self._calls[0]
            if not isinstance(call.work, AppendCall):
                break
            appends.append((self._calls.popleft(), call.work))
            size += sum(len(fact) for write in call.work.batch for fact in write.facts)
        if not appends:
            call = self._calls.popleft()
            assert not isinstance(call.work, AppendCall)
            _set_outcome(call.future, await self._attempt(call.work))
            return
        batch = AppendBatch([work for _, work in appends])
        error = None if batch.is_empty else await self._append(batch)
        for call, work in appends:
            # One exception per call: a shared one would collect the tracebacks of all callers.
            _set_outcome(call.future, work.refused if error is None else self._refusal())

    async def _append(self, batch: AppendBatch) -> StoreUnwritable | None:
        """Store a batch in one statement and add the refusals to its calls."""

        async def send(connection: Connection) -> list[RefusalRow]:
            cursor = connection.cursor(binary=True)
            await cursor.execute(APPEND, batch.parameters())
            return cast(list[RefusalRow], await cursor.fetchall())

        rows = await self._attempt(send)
        if isinstance(rows, StoreUnwritable):
            return rows
        batch.apply_refusals(rows)
        for _, session_id, _, _, actual in rows:
            if actual < self._acknowledged.pop(session_id, 0):
                log.error(
                    "ledger %s: session %s has lost acknowledged facts after sequence %d; the "
                    "database was restored, or a standby without them became the primary",
                    self._shown,
                    session_id,
                    actual,
                )
        if len(self._acknowledged) > _MAX_KNOWN:
            self._acknowledged.clear()
        self._acknowledged.update(batch.stored())
        return None

    async def _attempt(self, action: Action[T]) -> T | StoreUnwritable:
        """Run an action and return its result, or the error if the database refuses it."""
        if self._refused is not None and self._clock() < self._retry_at:
            return self._refusal()
        try:
            result = await self._send(action)
        except POSTGRES_ERRORS as error:
            return self._refuse(postgres_reason(error))
        except Exception as error:  # the task must not end: every caller waits for an outcome
            log.exception("ledger %s: fault in the writer", self._shown)
            return self._refuse(f"fault in the writer ({type(error).__name__})")
        if self._refused is not None:
            self._refused = None
            log.info("ledger %s can be written again", self._shown)
        return result

    async def _send(self, action: Action[T]) -> T:
        """Run an action; run it again if the server rolled it back because of others."""
        for _ in range(_TRIES - 1):
            with suppress(errors.DeadlockDetected, errors.SerializationFailure):
                return await self._connections.run(action)
        return await self._connections.run(action)

    def _refuse(self, reason: str) -> StoreUnwritable:
        """Refuse calls for `RETRY_S` from now on."""
        if self._refused is None:
            log.error("ledger %s cannot be written: %s", self._shown, reason)
        self._refused = reason
        self._retry_at = self._clock() + RETRY_S
        return self._refusal()

    def _refusal(self) -> StoreUnwritable:
        return StoreUnwritable(self._shown, self._refused or "", is_readable=False)


def _set_outcome(future: asyncio.Future[Any], outcome: object) -> None:
    if future.done():
        return  # the caller was cancelled
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
