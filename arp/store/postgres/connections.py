"""Connections to the database, with a time limit for each action.

Theory of operation. There is no pool with tasks in the background: a connection is made when an
action needs one, so that its caller learns at once that the server refuses, and why. Idle
connections are used again if the server has not closed them. After an error a connection is closed.

An action that takes too long is not cancelled, because that would wait for the server again. The
socket is shut down instead. The action then fails as after a loss of the connection, and it is
unknown whether the server has executed its last statement.

Nothing is left in the session of the server between two transactions, as PgBouncer in transaction
mode requires: no prepared statements, no settings, no session locks.
"""

from __future__ import annotations

import asyncio
import math
import select
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import ConnStatus, TransactionStatus

from arp.store.postgres.errors import DatabaseAway, postgres_reason
from arp.store.postgres.location import PostgresLocation
from arp.store.writer import RETRY_S

T = TypeVar("T")

Connection: TypeAlias = psycopg.AsyncConnection[tuple[Any, ...]]

CONNECT_S: Final = 5.0
"""Maximum time to connect to one host, in seconds."""

STATEMENT_S: Final = 10.0
"""Maximum time of an action on a connection, in seconds.

It is longer than the `lock_timeout` of the functions, so that the server usually gives up first.
"""

CLOSE_S: Final = 2.0
"""Maximum time for running actions when the connections are closed, in seconds.

`arp serve` has 4 s (`STOP_MARGIN_S`) for everything after the end of its turns.
"""

ABORT_S: Final = 0.5
"""Maximum time for tasks to end after their actions have failed, in seconds."""

_FIXED: Final = {"client_encoding": "UTF8", "application_name": "arp"}
"""Parameters of every connection; PgBouncer supports both."""


class PostgresConnections:
    """Runs actions on a limited number of connections.

    Args:
        location: The database.
        limit: Maximum number of connections.
        clock: Function that returns the time in seconds.
    """

    def __init__(
        self,
        location: PostgresLocation,
        limit: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._location = location
        self._clock = clock
        self._slots = asyncio.Semaphore(limit)
        self._idle: list[Connection] = []
        self._used: set[Connection] = set()
        self._connecting: set[asyncio.Timeout] = set()
        self._refused = ""
        """Why the last attempt to connect failed."""
        self._retry_at = 0.0
        """Time of the next attempt to connect."""

    async def run(
        self,
        action: Callable[[Connection], Awaitable[T]],
        *,
        may_repeat: bool = False,
        limit_s: float | None = None,
    ) -> T:
        """Run an action on a connection and return its result.

        Args:
            action: Function that executes statements on the connection.
            may_repeat: Whether to run the action again on a new connection if it fails on an idle
                one, which may have been lost. Only for actions that change nothing.
            limit_s: Maximum time of the action in seconds; `None` means `STATEMENT_S`.

        Raises:
            DatabaseAway: No connection can be made, so the action was not started. For `RETRY_S`
                after a failure, calls that need a new connection raise it immediately.
            psycopg.Error: The action failed.
            TimeoutError: The action took longer than the limit; its outcome is unknown.
        """
        limit_s = STATEMENT_S if limit_s is None else limit_s
        async with self._slots:
            connection = self._idle_connection()
            if connection is not None:
                try:
                    return await self._run_on(connection, action, limit_s)
                except psycopg.OperationalError:
                    if not may_repeat:
                        raise
            return await self._run_on(await self._connect(), action, limit_s)

    async def aclose(self, tasks: Collection[asyncio.Task[Any]] = ()) -> None:
        """Wait for the tasks that use the connections, and close the connections.

        After `CLOSE_S`, the running actions fail, so that the tasks end. Nothing can be run
        afterwards.

        Args:
            tasks: All tasks that use the connections.

        Cancel: The connections stay open; the tasks are not cancelled.
        """
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLOSE_S)
            self._abort()
            if late:
                _, late = await asyncio.wait(late, timeout=ABORT_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        while self._idle:
            await self._idle.pop().close()

    def _abort(self) -> None:
        """Make the running actions and later ones fail."""
        self._refused, self._retry_at = postgres_reason(TimeoutError()), math.inf
        for connection in self._used:
            _shut_down(connection)
        for timeout in self._connecting:
            timeout.reschedule(asyncio.get_running_loop().time())

    async def _run_on(
        self, connection: Connection, action: Callable[[Connection], Awaitable[T]], limit_s: float
    ) -> T:
        self._used.add(connection)
        try:
            with _limit_time(connection, limit_s):
                result = await action(connection)
        except BaseException:
            await connection.close()
            raise
        finally:
            self._used.discard(connection)
        self._idle.append(connection)
        return result

    def _idle_connection(self) -> Connection | None:
        """Return an idle connection that the server has not closed, or `None`."""
        while self._idle:
            connection = self._idle.pop()
            if _is_alive(connection):
                return connection
            connection.pgconn.finish()
        return None

    async def _connect(self) -> Connection:
        if self._clock() < self._retry_at:
            raise DatabaseAway(self._refused)
        defaults: dict[str, Any] = {"connect_timeout": int(CONNECT_S)}
        try:
            conninfo = make_conninfo(**(defaults | self._location.parameters | _FIXED))
            # `connect_timeout` does not limit the time to resolve the names of the hosts.
            async with asyncio.timeout(CONNECT_S * len(self._location.hosts) + 1) as timeout:
                self._connecting.add(timeout)
                try:
                    return await psycopg.AsyncConnection.connect(
                        conninfo, autocommit=True, prepare_threshold=None
                    )
                finally:
                    self._connecting.discard(timeout)
        except (psycopg.Error, OSError, TimeoutError, UnicodeError) as error:
            # UnicodeError: no host can have this name.
            self._refused = postgres_reason(error)
            self._retry_at = max(self._retry_at, self._clock() + RETRY_S)
        # Not inside `except`: the text of the error, which a traceback would show, names the user.
        raise DatabaseAway(self._refused)


def _is_alive(connection: Connection) -> bool:
    """Return whether an idle connection is still open, without waiting for the server."""
    pgconn = connection.pgconn
    if pgconn.status != ConnStatus.OK or pgconn.transaction_status != TransactionStatus.IDLE:
        return False
    # The server sends nothing on an idle connection, except a last message before it closes it.
    has_input = select.poll()
    has_input.register(pgconn.socket, select.POLLIN)
    return not has_input.poll(0)


def _shut_down(connection: Connection) -> None:
    """Make the running action of a connection fail."""
    if connection.closed:
        return
    # Only a copy of the descriptor is closed: libpq closes its own. The family has no effect.
    copy = socket.fromfd(connection.pgconn.socket, socket.AF_INET, socket.SOCK_STREAM)
    try:
        copy.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # the connection is lost already
    finally:
        copy.close()


@contextmanager
def _limit_time(connection: Connection, limit_s: float) -> Iterator[None]:
    """Shut the socket of a connection down if the block takes longer than `limit_s`.

    Raises:
        TimeoutError: The block failed because it took too long.
    """
    is_late = False

    def end() -> None:
        nonlocal is_late
        is_late = True
        _shut_down(connection)

    timer = asyncio.get_running_loop().call_later(limit_s, end)
    try:
        yield
    except psycopg.Error as error:
        if is_late:
            raise TimeoutError(f"no answer within {limit_s:g} s") from error
        raise
    finally:
        timer.cancel()
