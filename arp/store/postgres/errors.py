"""What an error of PostgreSQL means for the operator.

The text of an error is never shown: messages of libpq may quote parts of the location, and those of
the server may quote values of rows. A known error has a sentence of its own, and an unknown one is
shown by its class and code.
"""

from __future__ import annotations

import re
import socket
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
_READ_ONLY: Final = "the server is a read-only standby; name the primary, or all hosts"
_SERVER_REFUSES: Final = (
    "the server refuses the connection; check the user, the password and the name of the database, "
    "and see the log of the server"
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

_BY_SERVER_TEXT: Final = (
    (r"database .*does not exist|no such database", _NO_DATABASE),
    (r"password|authentication failed|pg_hba\.conf|role .*does not exist", _NO_LOGIN),
    (r"permission denied", "the user has no right to use the database; GRANT CONNECT to it"),
    (r"pgbouncer|server login|query_wait_timeout", _POOLER),
    (r"starting up|shutting down", _NOT_READY),
    (r"too many (clients|connections)|connection slots", _BUSY),
    (r"", _SERVER_REFUSES),
)
"""Patterns for messages of the server while connecting; libpq does not report their SQLSTATE.

The text is searched in lower case and without quoted names, and the first pattern that matches
decides. The server may write in another language, so the last pattern matches every text.
"""

_BY_LIBPQ_TEXT: Final = (
    (r"no password|authentication", _NO_LOGIN),
    (
        r"connection option|query parameter",
        "a parameter after the ? of the location is not known to libpq",
    ),
    (
        r"invalid \w+ value|bad value|definition of service|invalid integer value",
        "a parameter after the ? of the location has a wrong value",
    ),
    (r"\bssl|certificate|\btls", _TLS),
    (r"refused|no such file", _NO_SERVER),
    (r"could not translate|not known|resolve", _UNKNOWN_HOST),
    (r"read-only|hot standby", _READ_ONLY),
    (r"timeout|timed out", _NO_ANSWER),
)
"""Patterns for messages of libpq and psycopg while connecting; both write English."""

_ADDRESS: Final = re.compile(
    r'connection to server (at|on socket) "[^"]*"( \([^)]*\))?(, port \d+)? failed: '
)
_NAME: Final = re.compile(r'"[^"]*"|«[^»]*»|»[^«]*«|„[^“]*“|(?<=host )\'[^\']*\'')
_SERVER_TEXT: Final = re.compile(r"^(connection (failed|is bad): )?[^\s:]+:  ", re.MULTILINE)
"""Beginning of a message of the server: libpq writes two spaces after its severity."""


class DatabaseAway(Exception):
    """No connection to the database can be made.

    Args:
        reason: Result of `connection_reason`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_STATEMENT_CLASSES: Final = ("21", "22", "23", "40", "54", "55", "P0", "XX")
"""SQLSTATE classes of errors that depend on the rows and values of a statement.

In this order: number of rows, values, constraints, transaction conflicts, program limits, locks,
errors of PL/pgSQL such as those that a trigger raises, and internal errors such as damage.
"""


def is_of_statement(error: BaseException) -> bool:
    """Return whether the database works and refuses only this statement.

    The cause may then be a single session: a lock on its rows, its values, or damage to its rows.
    """
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        return isinstance(error, psycopg.DataError)  # psycopg itself refuses a value
    is_known = error.sqlstate.startswith(_STATEMENT_CLASSES)
    return is_known or isinstance(error, errors.QueryCanceled)  # by a `statement_timeout`


POSTGRES_ERRORS: Final = (DatabaseAway, psycopg.Error, OSError, TimeoutError)
"""Exceptions of `PostgresConnections.run`: no usable database, or a refused statement."""


def postgres_reason(error: BaseException) -> str:
    """Return what an error of an action means and what to do."""
    if isinstance(error, DatabaseAway):
        return error.reason
    if isinstance(error, TimeoutError):
        return _NO_ANSWER
    if isinstance(error, psycopg.Error) and error.sqlstate is not None:
        reason = _BY_CLASS.get(type(error))
        return reason or f"PostgreSQL refuses ({type(error).__name__} {error.sqlstate})"
    if isinstance(error, psycopg.OperationalError | OSError):
        return "the connection to the database was lost; this continues by itself"
    return f"PostgreSQL refuses ({type(error).__name__})"


def connection_reason(error: BaseException) -> str:
    """Return what an error while connecting means and what to do."""
    if isinstance(error, TimeoutError | errors.ConnectionTimeout):
        return _NO_ANSWER
    if isinstance(error, UnicodeError | socket.gaierror):
        return _UNKNOWN_HOST
    if getattr(error, "sqlstate", None) is not None:
        return postgres_reason(error)
    # If there are several hosts, the text begins with the error of the last one.
    text = str(error).partition("\nMultiple connection attempts")[0]
    # Names of hosts, users and databases may contain the words of another error.
    text = _NAME.sub("", _ADDRESS.sub("", text))
    patterns = _BY_SERVER_TEXT if _SERVER_TEXT.search(text) else _BY_LIBPQ_TEXT
    for pattern, reason in patterns:
        if re.search(pattern, text.lower()):
            return reason
    return postgres_reason(error)
