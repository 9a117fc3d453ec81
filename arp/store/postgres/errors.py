"""What an error of PostgreSQL means for the operator.

The text of an error is never shown: messages of libpq may quote parts of the location, and those of
the server may quote values of rows. A known error has a sentence of its own, and an unknown one is
shown by its class and code.
"""

from __future__ import annotations

import re
from typing import Final

import psycopg
from psycopg import errors

_BUSY: Final = "the server has no free connection; raise its max_connections"
_NO_ANSWER: Final = "the database does not answer; check it, and this continues by itself"
_NO_DATABASE: Final = "the database does not exist; create it with CREATE DATABASE"
_NO_LOGIN: Final = "the server refuses the user or the password; correct the location"
_NO_SERVER: Final = "no server listens there; start it, or correct the host and the port"
_NOT_READY: Final = "the server is starting or shutting down; this continues by itself"
_POOLER: Final = "PgBouncer cannot use the server behind it; see its log"
_READ_ONLY: Final = (
    "the server is a read-only standby; name the primary, or all hosts and "
    "?target_session_attrs=read-write"
)
_TLS: Final = "TLS failed; check sslmode, sslrootcert and the certificate of the server"
_UNKNOWN_HOST: Final = "the name of the host is not known; correct it"

_BY_CLASS: Final[dict[type[psycopg.Error], str]] = {
    errors.InvalidPassword: _NO_LOGIN,
    errors.InvalidAuthorizationSpecification: _NO_LOGIN,
    errors.InvalidCatalogName: _NO_DATABASE,
    errors.InsufficientPrivilege: (
        "the user has no right to do this; run GRANT CREATE, USAGE ON SCHEMA public TO the user "
        "as the owner of the database, or use the user that created the tables"
    ),
    errors.InvalidSchemaName: (
        "the user has no schema to create tables in; set its search_path to one that exists"
    ),
    errors.ReadOnlySqlTransaction: _READ_ONLY,
    errors.DiskFull: "the disk of the server is full; free some space there",
    errors.TooManyConnections: _BUSY,
    errors.LockNotAvailable: "another transaction holds a lock; end it on the server",
    errors.QueryCanceled: "the server cancelled the statement; see its statement_timeout",
    errors.UndefinedFunction: "a function of the tables is missing; restore the database",
    errors.UndefinedTable: "a table is missing; restore the database from a backup",
    errors.AdminShutdown: _NOT_READY,
    errors.CannotConnectNow: _NOT_READY,
    errors.ProtocolViolation: _POOLER,
    errors.DataCorrupted: "a page of the database is damaged; restore it from a backup",
    errors.IndexCorrupted: "an index of the database is damaged; run REINDEX on the server",
}
"""Errors with an SQLSTATE."""

_BY_TEXT: Final = (
    (r"database .* does not exist|no such database", _NO_DATABASE),
    (r"password|authentication failed|pg_hba\.conf|role .* does not exist", _NO_LOGIN),
    (r"permission denied", "the user has no right to use the database; GRANT CONNECT to it"),
    (r"pgbouncer|server login|query_wait_timeout", _POOLER),
    (r"starting up|shutting down", _NOT_READY),
    (r"too many (clients|connections)|connection slots", _BUSY),
    (r"connection option", "a parameter after the ? of the location is not known to libpq"),
    (
        r"invalid \w+ value|bad value|definition of service",
        "a parameter after the ? of the location has a wrong value",
    ),
    (r"ssl|certificate|tls", _TLS),
    (r"refused|no such file", _NO_SERVER),
    (r"could not translate|not known|resolve|idna", _UNKNOWN_HOST),
    (r"read-only|hot standby", _READ_ONLY),
    (r"timeout|timed out", _NO_ANSWER),
)
"""Patterns for errors while a connection is made, for which libpq has no codes. The first one wins.

They are compared with the text of the error in lower case.
"""


class DatabaseAway(Exception):
    """No connection to the database can be made.

    Args:
        reason: Result of `postgres_reason`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_STATEMENT_CLASSES: Final = ("21", "22", "23", "40", "54", "55", "P0", "XX")
"""Classes of SQLSTATE of errors that depend on the rows and values of a statement.

Data, constraints, conflicts with transactions, program limits, locks, triggers, damage.
"""


def is_of_statement(error: BaseException) -> bool:
    """Return whether the database works and refuses only this statement.

    The cause may then be a single session: its lock, its values, or its damaged rows.
    """
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        return isinstance(error, psycopg.DataError)  # psycopg itself refuses a value
    is_known = error.sqlstate.startswith(_STATEMENT_CLASSES)
    return is_known or isinstance(error, errors.QueryCanceled)  # by a `statement_timeout`


POSTGRES_ERRORS: Final = (DatabaseAway, psycopg.Error, OSError, TimeoutError)
"""Exceptions of an action on a connection if the database cannot be used or refuses a statement."""


def postgres_reason(error: BaseException) -> str:
    """Return what an error means and what to do."""
    if isinstance(error, DatabaseAway):
        return error.reason
    if isinstance(error, TimeoutError):
        return _NO_ANSWER
    if isinstance(error, psycopg.Error) and error.sqlstate is not None:
        reason = _BY_CLASS.get(type(error))
        return reason or f"PostgreSQL refuses ({type(error).__name__} {error.sqlstate})"
    text = str(error).lower()
    for pattern, reason in _BY_TEXT:
        if re.search(pattern, text):
            return reason
    if isinstance(error, psycopg.OperationalError | OSError):
        return "the connection to the database was lost; this continues by itself"
    return f"PostgreSQL refuses ({type(error).__name__})"
