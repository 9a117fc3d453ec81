"""One read-only connection to a SQLite file, and one run of one statement on it.

Each run opens its own connection and closes it: opening costs less than a millisecond, nothing is
shared between sessions, and stopping one query cannot stop another's.

SQLite checks the clock between instructions of its virtual machine, so a query stops soon
after its time limit. A single call of a function is one instruction; the limits on the lengths of
values and patterns keep that short for whatever is not made to be slow.
"""

from __future__ import annotations

import difflib
import math
import re
import sqlite3
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from errors import QueryCancelled, QueryFailed, QueryTimedOut, StatementRefused
from sql_guard import MAX_SQL_CHARACTERS, authorize, check_statement

Cell: TypeAlias = str | int | float | None
"""A value that JSON can represent."""

STEPS_BETWEEN_CHECKS = 20_000
"""Instructions of SQLite's virtual machine between two checks of the clock: less than 1 ms."""

MAX_VALUE_BYTES = 2 * 2**20
"""Longest single string or blob that a query may read or build."""

MAX_PATTERN_BYTES = 500
"""Longest pattern of LIKE and GLOB; their work is text length times pattern length."""


@dataclass(frozen=True)
class QueryLimits:
    """The limits of one query."""

    max_rows: int = 1_000
    """Most rows; more are cut, and the result says so."""
    timeout_s: float = 10.0
    max_bytes: int = 4 * 2**20
    """Most text in all rows together; more is cut."""


@dataclass(frozen=True)
class Result:
    """The result of a query."""

    sql: str
    columns: tuple[str, ...]
    rows: list[list[Cell]]
    truncated: bool
    """Whether there were more rows than the limits allow."""
    elapsed_s: float


def quote_name(name: str) -> str:
    """Return `name` quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    """Return `value` as an SQL string."""
    return "'" + value.replace("'", "''") + "'"


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open `path` read-only.

    Raises:
        QueryFailed: The file is missing or cannot be opened.
    """
    try:
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro",
            uri=True,
            timeout=2.0,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error as error:
        raise QueryFailed(f"{path.name} cannot be opened: {error}.") from error
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 4 * MAX_SQL_CHARACTERS)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    connection.set_authorizer(authorize)
    return connection


class Query:
    """A checked statement that can be run once, in any thread, and cancelled from others."""

    def __init__(
        self,
        path: Path,
        sql: str,
        parameters: Mapping[str, Cell] | None = None,
        limits: QueryLimits | None = None,
    ) -> None:
        self.sql = check_statement(sql)
        self._path = path
        self._parameters = dict(parameters or {})
        self._limits = limits or QueryLimits()
        self._cancelled = threading.Event()
        self._deadline = math.inf

    def cancel(self) -> None:
        """Stop `run` within a few milliseconds; do nothing if it has ended."""
        self._cancelled.set()

    def run(self) -> Result:
        """Run the statement and return at most `max_rows` rows. Blocks: call it in a thread.

        Raises:
            StatementRefused: SQLite found that it would do more than read; nothing ran.
            QueryFailed: SQLite could not run it.
            QueryTimedOut: The time limit passed.
            QueryCancelled: `cancel` was called.
        """
        started = time.monotonic()
        self._deadline = started + self._limits.timeout_s
        connection = open_read_only(self._path)
        try:
            connection.set_progress_handler(self._must_stop, STEPS_BETWEEN_CHECKS)
            cursor = connection.execute(self.sql, self._parameters)
            columns = tuple(entry[0] for entry in cursor.description or ())
            rows, truncated = self._fetch(cursor)
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            raise self._explained(error, connection) from error
        finally:
            connection.close()
        return Result(self.sql, columns, rows, truncated, time.monotonic() - started)

    def _must_stop(self) -> bool:
        return self._cancelled.is_set() or time.monotonic() > self._deadline

    def _fetch(self, cursor: sqlite3.Cursor) -> tuple[list[list[Cell]], bool]:
        rows: list[list[Cell]] = []
        size = 0
        for raw in cursor:
            if len(rows) >= self._limits.max_rows or size > self._limits.max_bytes:
                return rows, True
            row = [plain_cell(value) for value in raw]
            size += sum(len(cell) if isinstance(cell, str) else 8 for cell in row)
            rows.append(row)
            if len(rows) % 100 == 0 and self._must_stop():
                raise sqlite3.OperationalError("interrupted")
        return rows, False

    def _explained(
        self, error: Exception, connection: sqlite3.Connection
    ) -> QueryFailed | QueryTimedOut | QueryCancelled | StatementRefused:
        text = str(error)
        if self._cancelled.is_set():
            return QueryCancelled("The query was stopped.")
        if text == "interrupted":
            return QueryTimedOut(
                f"It was stopped after {self._limits.timeout_s:g} seconds.",
                "Ask for less: add a WHERE or a LIMIT.",
            )
        if "not authorized" in text or "prohibited" in text or "modified" in text:
            return StatementRefused(
                "The statement would do more than read, so it did not run.",
                "Only SELECT, WITH, VALUES, EXPLAIN and PRAGMA table_info(name) are allowed.",
            )
        if "too big" in text:
            return QueryFailed(
                f"A value is larger than {MAX_VALUE_BYTES // 2**20} MiB.",
                "Name the columns that you need; length(column) tells which one it is.",
            )
        return QueryFailed(_not_found(text, connection) or f"SQLite says: {text}.")


def plain_cell(value: object) -> Cell:
    """Return a value of SQLite as JSON: a blob becomes a description, an infinity a text."""
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (str, int, float)) else None


def _not_found(message: str, connection: sqlite3.Connection) -> str:
    """Return a hint for a name that SQLite did not find; "" for any other message."""
    missing = re.match(r"no such (table|column): (?:\w+\.)?(.+)", message)
    if missing is None:
        return ""
    kind, name = missing.groups()
    hint = f"No {kind} named {name}."
    listing = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') LIMIT 500"
    if kind == "column":
        listing = (
            "SELECT DISTINCT c.name FROM sqlite_master m, pragma_table_info(m.name) c LIMIT 500"
        )
    try:
        names = [str(row[0]) for row in connection.execute(listing)]
    except sqlite3.Error:  # a schema that is broken elsewhere has no names to offer
        return hint
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"{hint} Did you mean {' or '.join(close)}?"
    return f"{hint} Available: {', '.join(sorted(names)[:12])}." if names else hint
