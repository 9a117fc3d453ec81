"""What an error means, in every language of a server and with every name of a host."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from arp.store.postgres.errors import connection_reason, is_of_statement, postgres_reason

AT = 'connection failed: connection to server at "192.0.2.1", port 5432 failed: '


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (AT + 'FATAL:  password authentication failed for user "tls"', "refuses the user or"),
        (AT + 'FATAL:  database "password" does not exist', "the database does not exist"),
        (AT + 'FATAL:  role "pgbouncer" does not exist', "refuses the user or the password"),
        (AT + "FATAL:  no such database: ssl", "the database does not exist"),
        (AT + "FATAL:  sorry, too many clients already", "has no free connection"),
        (AT + "FATAL:  server login has been failing", "PgBouncer cannot use"),
        # Other languages: libpq passes no SQLSTATE on.
        (
            AT + "FATAL:  Passwort-Authentifizierung für Benutzer »arp« fehlgeschlagen",
            "the server refuses the connection; check the user, the password and the name of the",
        ),
        (AT + "FATAL:  Datenbank »ssl« existiert nicht", "the server refuses the connection;"),
        (AT + 'ВАЖНО:  база данных "tls" не существует', "the server refuses the connection;"),
        # Names of hosts that look like another error.
        (
            (
                'connection failed: connection to server at "tls-db" (192.0.2.1), port 1 failed: '
                "Connection refused"
            ),
            "no server listens there",
        ),
        (
            (
                'connection failed: connection to server at "pgbouncer-1", port 1 failed: FATAL:  '
                "sorry, too many clients already"
            ),
            "has no free connection",
        ),
        (
            "failed to resolve host 'tls-refused.invalid': [Errno -2] Name or service not known",
            "the name of the host is not known",
        ),
        (
            (
                'connection is bad: connection to server on socket "/ssl/.s.PGSQL.5432" failed: '
                "No such file or directory"
            ),
            "no server listens there",
        ),
        (AT + "server does not support SSL, but SSL was required", "TLS failed"),
        (AT + "session is read-only", "read-only standby"),
        (AT + "fe_sendauth: no password supplied", "refuses the user or the password"),
        (
            (
                f"{AT}session is read-only\n"
                "Multiple connection attempts failed. All failures were:\n"
                "- host: 'ssl', port: '1', hostaddr: None: connection refused"
            ),
            "read-only standby",
        ),
    ],
)
def test_a_failed_connection_is_explained(text: str, reason: str) -> None:
    assert reason in connection_reason(psycopg.OperationalError(text))


@pytest.mark.parametrize(
    "text",
    [
        "SSL connection has been closed unexpectedly",
        "SSL SYSCALL error: EOF detected",
        "consuming input failed: could not receive data from server: Connection refused",
        "server closed the connection unexpectedly",
    ],
)
def test_a_connection_that_ends_during_a_statement_was_lost(text: str) -> None:
    """No parameter of the location is wrong then."""
    assert postgres_reason(psycopg.OperationalError(text)).startswith("the connection to the")


def test_a_code_counts_and_not_the_text() -> None:
    assert "free some space" in postgres_reason(errors.DiskFull("Passwort ssl"))
    assert "no right to do this" in postgres_reason(errors.InsufficientPrivilege("starting up"))


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (errors.LockNotAvailable(), True),
        (errors.UniqueViolation(), True),
        (errors.DataCorrupted(), True),
        (errors.NumericValueOutOfRange(), True),
        (errors.QueryCanceled(), True),
        (psycopg.DataError("no NUL in text"), True),
        (errors.DiskFull(), False),
        (errors.OutOfMemory(), False),
        (errors.AdminShutdown(), False),
        (errors.ReadOnlySqlTransaction(), False),
        (errors.InsufficientPrivilege(), False),
        (errors.UndefinedTable(), False),
        (errors.IoError(), False),
        (psycopg.OperationalError(), False),
        (TimeoutError(), False),
    ],
)
def test_only_errors_of_rows_and_values_are_those_of_a_statement(
    error: Exception, is_one: bool
) -> None:
    assert is_of_statement(error) is is_one
