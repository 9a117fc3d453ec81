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
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo, ConnStatus, TransactionStatus

from arp.store.postgres.errors import DatabaseAway, connection_reason
from arp.store.postgres.location import PostgresLocation
from arp.store.writer import RETRY_S

T = TypeVar("T")

Connection: TypeAlias = psycopg.AsyncConnection[tuple[Any, ...]]

CONNECT_S: Final = 5.0
"""Default of the maximum time to connect to one address of a host, in seconds."""

STATEMENT_S: Final = 10.0
"""Maximum time of an action on a connection, in seconds.

It is longer than the `lock_timeout` of the functions, so that the server usually gives up first.
"""

CLOSE_S: Final = 2.0
"""How long closing waits for running actions, in seconds.

`arp serve` has 4 s (`STOP_MARGIN_S`) for everything after the end of its turns.
"""

ABORT_S: Final = 0.5
"""How long closing waits for tasks after their actions failed, and after cancelling, in seconds."""

IDLE_S: Final = 20.0
"""Idle time after which a connection is checked with a query before it is used, in seconds.

A network may drop an idle connection without closing it.
"""

CHECK_S: Final = 1.0
"""Maximum time of this check, in seconds; without an answer, the idle connections are closed."""

_DEFAULTS: Final = {
    "application_name": "arp",
    "connect_timeout": str(int(CONNECT_S)),
    # If the server disappears silently, the connection fails after about 30 s when it is idle, and
    # after 8 s when sent data is not acknowledged, which is less than `STATEMENT_S`.
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "8000",
}
"""Connection parameters for what neither the location nor the environment sets."""

_WRITABLE: Final = {"target_session_attrs": "read-write"}
"""Further defaults of stores that write: connect only to a server that accepts writes."""

_FIXED: Final = {"client_encoding": "UTF8"}
"""Parameters that cannot be changed: facts are UTF-8.

Of all these parameters, only this one and `application_name` reach the server. PgBouncer supports
both.
"""


class PostgresConnections:
    """Runs actions on a limited number of connections.

    Args:
        location: The database.
        limit: Maximum number of connections.
        read_only: Whether to accept a server that refuses writes, such as a standby.
        clock: Function that returns the time in seconds.
    """

    def __init__(
        self,
        location: PostgresLocation,
        limit: int,
        *,
        read_only: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._location = location
        self._defaults = _DEFAULTS if read_only else _DEFAULTS | _WRITABLE
        self._clock = clock
        self._slots = asyncio.Semaphore(limit)
        self._idle: list[tuple[float, Connection]] = []
        """Idle connections, each with the time of its last action."""
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
            connection = await self._idle_connection()
            if connection is not None:
                try:
                    return await self._run_on(connection, action, limit_s)
                except psycopg.OperationalError:
                    if not may_repeat:
                        raise
            return await self._run_on(await self._connect(), action, limit_s)

    async def aclose(self, tasks: Collection[asyncio.Task[Any]] = ()) -> None:
        """Wait for the tasks that use the connections, then close the connections.

        After `CLOSE_S`, running actions are made to fail, so that their tasks end. Tasks that still
        run after `ABORT_S` are cancelled. Do not run an action afterwards.

        Args:
            tasks: All tasks that use the connections.

        Cancel: Connections may stay open, and tasks may still run.
        """
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLOSE_S)
            self._abort()
            if late:
                _, late = await asyncio.wait(late, timeout=ABORT_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=ABORT_S)
        while self._idle:
            await self._idle.pop()[1].close()

    def _abort(self) -> None:
        """Make all running and later actions fail."""
        self._refused, self._retry_at = connection_reason(TimeoutError()), math.inf
        for connection in self._used:
            _shut_down(connection)
        for timeout in self._connecting:
            with suppress(RuntimeError):  # it is expiring now
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
        self._idle.append((self._clock(), connection))
        return result

    async def _idle_connection(self) -> Connection | None:
        """Return an idle connection that is still usable, or `None`."""
        while self._idle:
            used_at, connection = self._idle.pop()
            if not _is_alive(connection):
                await connection.close()
            elif self._clock() - used_at < IDLE_S or await self._answers(connection):
                return connection
            else:
                # The other connections have been idle for at least as long, and checking each could
                # take `CHECK_S` again.
                while self._idle:
                    await self._idle.pop()[1].close()
        return None

    async def _answers(self, connection: Connection) -> bool:
        try:
            await self._run_on(connection, _check, CHECK_S)
        except (psycopg.Error, OSError, TimeoutError):
            return False
        # `_run_on` has added it to the idle connections.
        self._idle.remove(next(one for one in self._idle if one[1] is connection))
        return True

    async def _connect(self) -> Connection:
        if self._clock() < self._retry_at:
            raise DatabaseAway(self._refused)
        try:
            environment = _environment()
            parameters = self._parameters(environment)
            # `connect_timeout` does not include the time to resolve host names.
            limit_s = _connect_limit_s(environment | parameters)
            async with asyncio.timeout(None if limit_s == math.inf else limit_s) as timeout:
                self._connecting.add(timeout)
                try:
                    connection = await psycopg.AsyncConnection.connect(
                        make_conninfo(**parameters), autocommit=True, prepare_threshold=None
                    )
                finally:
                    self._connecting.discard(timeout)
            # This sends nothing now; it applies to explicit transactions. The default of the
            # database may be a level at which a transaction does not see later commits of others.
            await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
            return connection
        except (psycopg.Error, OSError, TimeoutError, UnicodeError) as error:
            # A UnicodeError means that the name of a host is not valid.
            self._refused = connection_reason(error)
            self._retry_at = max(self._retry_at, self._clock() + RETRY_S)
        # Not inside `except`: the text of the error, which a traceback would show, names the user.
        raise DatabaseAway(self._refused)

    def _parameters(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the parameters for libpq.

        A default is used only if neither the location nor the environment sets the parameter.
        """
        given = self._location.parameters
        known = set(environment)
        if "service" in given:
            # The service may set these. psycopg does not read `connect_timeout` from a service.
            known |= _DEFAULTS.keys() - {"connect_timeout"}
        defaults = {name: value for name, value in self._defaults.items() if name not in known}
        return defaults | given | _FIXED


def _environment() -> dict[str, str]:
    """Return the connection parameters that the environment sets, also through `PGSERVICE`."""
    return {
        one.keyword.decode(): one.val.decode(errors="replace")
        for one in Conninfo.get_defaults()
        if one.val is not None and one.val != one.compiled
    }


async def _check(connection: Connection) -> None:
    await connection.execute("SELECT 1")


def _connect_limit_s(parameters: Mapping[str, str]) -> float:
    """Return the maximum time to connect in seconds, including the resolution of names."""
    hosts = parameters.get("host", "").count(",") + 1
    try:
        timeout_s = float(parameters["connect_timeout"])
    except (KeyError, ValueError):
        timeout_s = CONNECT_S  # psycopg refuses a wrong value
    # The timeout is at least 2 s; 0 means no limit. It applies to each address, and a host often
    # has two: one for IPv4 and one for IPv6.
    return 2 * hosts * max(timeout_s, 2) + 1 if timeout_s > 0 else math.inf


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
    """Shut the socket of a connection down, so that its running action fails."""
    if connection.closed:
        return
    # Only a copy of the descriptor is closed; libpq closes its own. The address family given here
    # has no effect.
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
