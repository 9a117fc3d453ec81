"""The tables of a ledger file, and how to connect to one.

A new fact is written to `journal`: each transaction adds one row with the facts of all its
sessions. Later the facts are sorted into `segment`: each row has consecutive facts of one session
and the hash of the last of them (`arp.ledger.chain`). `session` is the list of sessions. `model`
has the stored read models. Another table has the texts of turns, for the search. `ledger` has the
properties of the whole file. `journal.py` explains why there are two tables for facts.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

from arp.store.errors import StoreUnavailable, opening_reason, sqlite_reason
from arp.store.store import new_runtime_id

VERSION: Final = 3
"""The version of the tables below; the value of `PRAGMA user_version`."""

HEADS_SINCE: Final = 2
"""First version that stores the hashes of chains in `segment`."""

APPLICATION_ID: Final = 0x41525031
"""`ARP1` in `PRAGMA application_id`: marks a ledger among other SQLite files."""

_BUSY_TIMEOUT_S: Final = 5.0
"""Seconds that another program (a backup, a shell) may lock the file before a write fails."""

_TRUNCATE_TIMEOUT_MS: Final = 100
"""Milliseconds that the writer waits for readers when it empties the write-ahead log."""

_ZERO_BYTES: Final = 4 * 2**20
"""Number of zero bytes in each row that is written to overwrite free pages."""

_AUTOCHECKPOINT_PAGES: Final = 16_384
"""Length of the write-ahead log, 64 MiB, at which a commit runs a checkpoint.

Usually the reader's checkpoints keep the log shorter.
"""

_MODEL: Final = """CREATE TABLE model (
        session TEXT NOT NULL,
        name TEXT NOT NULL,
        sequence INTEGER NOT NULL,  -- of the last fact that it covers
        crc INTEGER NOT NULL,       -- CRC-32 of data
        data BLOB NOT NULL,
        PRIMARY KEY (session, name)
    )"""

_TURN_TEXTS: Final = """CREATE TABLE said (
        session TEXT NOT NULL,
        turn TEXT NOT NULL,
        text TEXT NOT NULL,
        folded TEXT NOT NULL,       -- the same without case
        PRIMARY KEY (session, turn)
    )"""

_PINNED: Final = "CREATE INDEX session_pinned ON session (owner, updated_at, id) WHERE pinned"

_TABLES: Final = (
    """CREATE TABLE journal (
        id INTEGER PRIMARY KEY,
        heads BLOB NOT NULL,    -- JSON: [[session, first sequence, number of facts], ...]
        facts BLOB NOT NULL,    -- the facts of all heads, one JSON object a line
        crc INTEGER NOT NULL    -- CRC-32 of heads, then facts
    )""",
    """CREATE TABLE segment (
        session TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        crc INTEGER NOT NULL,   -- CRC-32 of facts
        facts BLOB NOT NULL,    -- one JSON object a line
        head TEXT,              -- hex: the chain's hash of the last fact; NULL = not stored
        PRIMARY KEY (session, first)
    )""",
    """CREATE TABLE session (
        id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        workflow TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        active INTEGER NOT NULL,
        meta TEXT NOT NULL,     -- JSON: all of the row
        pinned INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID""",
    "CREATE INDEX session_by_owner ON session (owner, updated_at, id)",
    "CREATE INDEX session_active ON session (id) WHERE active",
    _PINNED,
    _MODEL,
    _TURN_TEXTS,
)

_LEDGER: Final = """CREATE TABLE IF NOT EXISTS ledger (
        name TEXT PRIMARY KEY,      -- of a property of the whole file
        value TEXT NOT NULL
    )"""

_REMOVAL_PREFIX: Final = "removal/"
"""Prefix of the names of properties that are notes of removals."""

_UPGRADES: Final = {
    2: ("ALTER TABLE segment ADD COLUMN head TEXT", _MODEL),
    3: ("ALTER TABLE session ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0", _PINNED, _TURN_TEXTS),
}
"""Statements that upgrade a file to each version from the version before it.

Segments of version 1 have no hashes; the chains of their sessions are computed from the first fact.
The search finds no turns from before version 3, only the titles of their sessions.
"""


_PRAGMAS: Final = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "fullfsync = ON",  # macOS: fsync alone does not reach the disk there
    "checkpoint_fullfsync = ON",
    f"wal_autocheckpoint = {_AUTOCHECKPOINT_PAGES}",
    "journal_size_limit = 33554432",  # 32 MiB: disk space that an empty log may keep
    "secure_delete = ON",  # deleted content is overwritten with zeros; no measurable cost
    "trusted_schema = OFF",
)


def open_ledger(path: Path) -> sqlite3.Connection:
    """Open a ledger for writing; create the tables of a new one and upgrade an older one.

    Every commit is synced to the disk before it returns. A statement outside of BEGIN and COMMIT
    is a transaction of its own.

    Raises:
        StoreUnavailable: The file is not a ledger, has a newer version, or cannot be opened. A
            file that is not a ledger is unchanged.
    """
    try:
        connection = _connect(path)
    except sqlite3.Error as error:
        raise StoreUnavailable(f"ledger {path}: {opening_reason(error, path)}") from error
    try:
        is_fresh = is_new(connection, path)
        _configure(connection)
        if is_fresh:
            _make_tables(connection)
        else:
            _upgrade(connection)
    except sqlite3.Error as error:
        connection.close()
        raise StoreUnavailable(f"ledger {path}: {opening_reason(error, path)}") from error
    except StoreUnavailable:
        connection.close()
        raise
    return connection


def stored_runtime_id(connection: sqlite3.Connection) -> str:
    """Return the id of the runtime that a ledger belongs to; the first call creates it.

    The table `ledger` is not part of `VERSION`, since older versions work without it.
    """
    find = "SELECT value FROM ledger WHERE name = 'runtimeId'"
    connection.execute(_LEDGER)
    row = connection.execute(find).fetchone()
    if row is None:
        created = (new_runtime_id(),)
        connection.execute("INSERT OR IGNORE INTO ledger VALUES ('runtimeId', ?)", created)
        row = connection.execute(find).fetchone()
    return str(row[0])


def change_removal(connection: sqlite3.Connection, name: str, value: str | None) -> None:
    """Store the note of a removal, or delete it if `value` is `None`."""
    connection.execute(_LEDGER)
    connection.execute("DELETE FROM ledger WHERE name = ?", (f"{_REMOVAL_PREFIX}{name}",))
    if value is not None:
        connection.execute("INSERT INTO ledger VALUES (?, ?)", (f"{_REMOVAL_PREFIX}{name}", value))


def stored_removals(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the notes of removals by name, oldest first."""
    rows = connection.execute("SELECT name, value FROM ledger ORDER BY rowid").fetchall()
    return {
        str(name).removeprefix(_REMOVAL_PREFIX): str(value)
        for name, value in rows
        if str(name).startswith(_REMOVAL_PREFIX)
    }


def zero_free_pages(connection: sqlite3.Connection) -> None:
    """Overwrite the free pages of a file with zeros, once per file.

    Earlier versions did not overwrite deleted content, so it may still be in free pages.
    """
    connection.execute(_LEDGER)
    find = "SELECT 1 FROM ledger WHERE name = 'zeroed'"
    if connection.execute(find).fetchone() is not None:
        return
    size = _pragma(connection, "freelist_count") * _pragma(connection, "page_size")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # SQLite cannot overwrite its free pages directly. A new table uses all of them.
        connection.execute("CREATE TABLE zeros (piece BLOB)")
        for _ in range(0, size, _ZERO_BYTES):
            connection.execute("INSERT INTO zeros VALUES (zeroblob(?))", (_ZERO_BYTES,))
        connection.execute("DROP TABLE zeros")
        connection.execute("INSERT OR REPLACE INTO ledger VALUES ('zeroed', '1')")
        connection.execute("COMMIT")
    except sqlite3.Error:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def truncate_log(connection: sqlite3.Connection) -> bool:
    """Move the write-ahead log into the file and empty it.

    Returns:
        `False` if another connection is using the log, so that it was not emptied.
    """
    connection.execute(f"PRAGMA busy_timeout = {_TRUNCATE_TIMEOUT_MS}")
    try:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(_BUSY_TIMEOUT_S * 1000)}")
    return not busy


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a query-only connection to a ledger that this process also writes."""
    connection = _connect(path)
    _configure(connection)
    connection.execute("PRAGMA query_only = ON")  # it still allows checkpoints
    return connection


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open a ledger that another process may be writing, without changing or repairing it.

    Raises:
        StoreUnavailable: The file does not exist, is not a ledger, or has a newer version.
    """
    if not path.is_file():
        raise StoreUnavailable(f"there is no ledger {path}; name its file")
    try:
        connection = _connect(f"{path.resolve().as_uri()}?mode=ro")
    except sqlite3.Error as error:
        raise StoreUnavailable(f"ledger {path}: {sqlite_reason(error)}") from error
    try:
        if is_new(connection, path):
            raise StoreUnavailable(f"{path} is empty; no ledger was written there")
    except sqlite3.Error as error:
        connection.close()
        raise StoreUnavailable(f"ledger {path}: {sqlite_reason(error)}") from error
    except StoreUnavailable:
        connection.close()
        raise
    return connection


def _connect(path: Path | str) -> sqlite3.Connection:
    """Connect to a file; a `str` is a URI."""
    return sqlite3.connect(
        path,
        timeout=_BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        uri=isinstance(path, str),
    )


def _configure(connection: sqlite3.Connection) -> None:
    try:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").fetchall()
    except UnicodeDecodeError as error:  # the error quotes damaged text of SQLite's own tables
        raise sqlite3.DatabaseError("database disk image is malformed") from error


def is_new(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether a file has no tables yet.

    Raises:
        StoreUnavailable: The file is a database of another program, or has a newer version.
    """
    application = _pragma(connection, "application_id")
    version = _pragma(connection, "user_version")
    if application == APPLICATION_ID:
        if version > VERSION:
            raise StoreUnavailable(
                f"ledger {path} was written by a newer version (tables {version}, this one knows "
                f"{VERSION}); upgrade, or name another file: --ledger sqlite:other.db"
            )
        return False
    if application or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreUnavailable(
            f"{path} is a database of another program; name another file: --ledger sqlite:other.db"
        )
    return True


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for table in _TABLES:
        connection.execute(table)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _upgrade(connection: sqlite3.Connection) -> None:
    """Upgrade a file of an older version, in one transaction."""
    version = _pragma(connection, "user_version")
    if version == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    for newer in range(version + 1, VERSION + 1):
        for statement in _UPGRADES[newer]:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
