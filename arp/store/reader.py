"""Queries on a ledger file, with their own connections and threads.

Checkpoints (moving the write-ahead log into the file) run in these threads too. Otherwise SQLite
would run a checkpoint inside the commit that makes the log too long, and that commit would wait.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from arp.store.errors import StoreDamaged, StoreUnavailable, StoreUnreadable, sqlite_reason
from arp.store.schema import HEADS_SINCE, open_reader
from arp.store.session_list import SessionMeta, excerpt, missing_words, page_limit, split_cursor
from arp.store.store import PAGE_BYTES, Page

log = logging.getLogger(__name__)

T = TypeVar("T")

Row = tuple[SessionMeta, int]
"""The row of a session, and the last sequence in its segments."""

FactRow = tuple[int, int, int, bytes]
"""Consecutive facts of a session: first and last sequence, CRC-32 of the facts, and the facts."""

_THREADS: Final = 3
"""Number of threads: enough for a long list, a resume and a checkpoint at the same time.

Most other reads are answered from memory.
"""

_MAX_CHECKPOINT_PASSES: Final = 8
"""Limit of passes of a checkpoint.

The writer adds pages during a pass, and the next pass moves only these.
"""

_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""Errors that a retry does not fix."""

_SEGMENTS: Final = """
    SELECT first, last, crc, CAST(facts AS BLOB) FROM segment
    WHERE session = ?1 AND last >= ?2 AND first >= coalesce(
        (SELECT max(first) FROM segment WHERE session = ?1 AND first <= ?2), 0)
    ORDER BY first"""
"""Segments of session `?1`, beginning with the segment that contains sequence `?2`.

The condition on `first` is for speed: without it, SQLite would search all earlier segments.
"""

_ROWS: Final = """
    SELECT meta, coalesce(
        (SELECT last FROM segment WHERE session = id ORDER BY first DESC LIMIT 1), 0)
    FROM session """

_HEADS: Final = "SELECT last, head FROM segment WHERE session = ? ORDER BY first"

_TURN_TEXTS: Final = """
    SELECT turn, text FROM (
        SELECT turn, text, folded FROM said WHERE session = ?1 ORDER BY rowid DESC LIMIT ?2)
    WHERE instr(folded, ?3) LIMIT 1"""
"""Search in the text of turns.

There is no full-text index, because it would not find parts of words, nor words in Chinese or
Japanese. Facts cannot be searched instead, because they contain text only in pieces.
"""

MAX_SEARCHED: Final = 500
"""Maximum number of sessions that one search examines."""

MAX_TURNS_SEARCHED: Final = 2000
"""Maximum number of turns per session that a search examines, newest first."""

SEARCH_S: Final = 0.25
"""Time after which a search examines no further session; the caller may continue it."""

_MODEL: Final = """
    SELECT sequence, crc, CAST(data AS BLOB) FROM model WHERE session = ? AND name = ?"""

_meta_decoder = msgspec.json.Decoder(SessionMeta)


class Reader:
    """Runs queries in a few threads, with a pool of connections."""

    def __init__(
        self, path: Path, connect: Callable[[Path], sqlite3.Connection] = open_reader
    ) -> None:
        self._path = path
        self._connect = connect
        self._is_checkpointing = False
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="arp-ledger-read")
        self._free: SimpleQueue[sqlite3.Connection | None] = SimpleQueue()
        for _ in range(_THREADS):
            self._free.put(None)

    async def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query in a thread and return its result.

        Raises:
            StoreUnreadable: The file cannot be read now.
            StoreUnavailable: The file is damaged.
            Exception: Any other error of the query.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._run, query)

    def checkpoint(self) -> None:
        """Start a checkpoint if none is running, without waiting. A failure is logged."""
        if not self._is_checkpointing:
            self._is_checkpointing = True
            self._pool.submit(self._checkpoint)

    def close(self) -> None:
        """Wait for the running queries and close the connections."""
        self._pool.shutdown(wait=True)
        while not self._free.empty():
            connection = self._free.get_nowait()
            if connection is not None:
                connection.close()

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with self._connection() as connection:
                return query(connection)
        except sqlite3.Error as error:
            is_damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
            kind = StoreUnavailable if is_damaged else StoreUnreadable
            raise self._read_error(kind, sqlite_reason(error)) from error
        except msgspec.DecodeError as error:
            reason = "a row is damaged; restore it from a backup"
            raise self._read_error(StoreUnavailable, reason) from error

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Provide a connection of the pool. It is opened when it is used for the first time."""
        connection = self._free.get()
        try:
            if connection is None:
                connection = self._connect(self._path)
            yield connection
        finally:
            self._free.put(connection)

    def _checkpoint(self) -> None:
        try:
            with self._connection() as connection:
                _run_checkpoint(connection)
        except sqlite3.Error as error:
            log.warning("ledger %s: checkpoint failed: %s", self._path, sqlite_reason(error))
        finally:
            self._is_checkpointing = False

    def _read_error(self, kind: type[StoreUnavailable], reason: str) -> StoreUnavailable:
        """Log why the ledger cannot be read, and return the exception to raise."""
        log.error("ledger %s cannot be read: %s", self._path, reason)
        return kind(f"the ledger cannot be read: {reason}")


def _run_checkpoint(db: sqlite3.Connection) -> None:
    """Move the write-ahead log into the file."""
    for _ in range(_MAX_CHECKPOINT_PASSES):
        _, pages, moved = db.execute("PRAGMA wal_checkpoint").fetchone()
        if moved >= pages:
            return


def read_segments(db: sqlite3.Connection, session_id: str, after: int, limit: int) -> Page:
    """Return up to `limit` facts after sequence `after` from the segments; see `join_rows`."""
    rows = db.execute(_SEGMENTS, (session_id, after + 1))
    return join_rows(session_id, rows, after, limit)


def join_rows(session_id: str, rows: Iterable[FactRow], after: int, limit: int) -> Page:
    """Return up to `limit` facts after sequence `after` from rows, in order, without gaps.

    The page ends after the row that makes it larger than `PAGE_BYTES`.

    Raises:
        StoreDamaged: The first fact of the page fails its checksum or is missing.
    """
    found: Page = []
    wanted, size = after + 1, 0
    for first, last, crc, body in rows:
        if last < wanted:
            continue
        facts = body.split(b"\n")
        if first > wanted or crc32(body) != crc or len(facts) != last - first + 1:
            # Return the intact facts before the damage; the next call raises.
            if found:
                return found
            raise StoreDamaged(session_id, after)
        found += enumerate(facts[wanted - first : wanted - first + limit - len(found)], wanted)
        wanted, size = last + 1, size + len(body)
        if len(found) >= limit or size >= PAGE_BYTES:
            break
    return found


class SessionQuery(NamedTuple):
    """Filters of a list of sessions; `None` means any."""

    owner: str | None = None
    workflow: str | None = None
    pinned: bool | None = None
    before: str | None = None


def list_sessions(db: sqlite3.Connection, query: SessionQuery, limit: int) -> list[Row]:
    """Return the rows for `Store.sessions`, newest update first."""
    return list(_rows(db, query, page_limit(limit)))


def search_sessions(
    db: sqlite3.Connection, words: Sequence[str], query: SessionQuery, limit: int
) -> tuple[list[tuple[Row, str | None, str]], str | None]:
    """Search for sessions that have all words in their title or in the texts of their turns.

    Returns:
        For each session its row, the id of a turn and an excerpt (see `Match`). Then the cursor
        that continues the search, or `None` if all sessions were examined.
    """
    deadline, found, last = time.monotonic() + SEARCH_S, list[tuple[Row, str | None, str]](), None
    examined = 0
    for row in _rows(db, query, MAX_SEARCHED):
        examined += 1
        last = row[0].cursor
        match = _match_in(db, row[0], words)
        if match is not None:
            found.append((row, *match))
        if len(found) == page_limit(limit) or time.monotonic() > deadline:
            return found, last
    return found, last if examined == MAX_SEARCHED else None


def _match_in(
    db: sqlite3.Connection, meta: SessionMeta, words: Sequence[str]
) -> tuple[str | None, str] | None:
    """Search for all words in one session.

    Returns:
        The id of the turn that has the first word that is not in the title, and an excerpt around
        that word; `None` and an empty text if the title has all words. `None` instead of the pair
        if a word is missing.
    """
    match: tuple[str | None, str] = (None, "")
    # Backwards, so that the match of the first word is the last one assigned.
    for word in reversed(missing_words(meta.title, words)):
        row = db.execute(_TURN_TEXTS, (meta.id, MAX_TURNS_SEARCHED, word)).fetchone()
        if row is None:
            return None
        match = row[0], excerpt(row[1], word)
    return match


def _rows(db: sqlite3.Connection, query: SessionQuery, limit: int) -> Iterator[Row]:
    conditions, values = ["1"], list[str | int]()
    if query.owner is not None:
        conditions.append("owner = ?")
        values.append(query.owner)
    if query.workflow is not None:
        conditions.append("workflow = ?")
        values.append(query.workflow)
    if query.pinned is not None:
        conditions.append("pinned" if query.pinned else "NOT pinned")
    if query.before is not None:
        conditions.append("(updated_at, id) < (?, ?)")
        values += split_cursor(query.before)
    values.append(limit)
    sql = f"WHERE {' AND '.join(conditions)} ORDER BY updated_at DESC, id DESC LIMIT ?"
    for meta, last in db.execute(_ROWS + sql, values):
        yield _row(meta, last)


def find_session(db: sqlite3.Connection, session_id: str) -> Row | None:
    """Return the row of one session, or `None`."""
    found = db.execute(_ROWS + "WHERE id = ?", (session_id,)).fetchone()
    return _row(*found) if found else None


def active_sessions(db: sqlite3.Connection) -> list[str]:
    """Return the ids of the sessions with an `active` row, in order of id."""
    return [row[0] for row in db.execute("SELECT id FROM session WHERE active ORDER BY id")]


def find_heads(db: sqlite3.Connection, session_id: str) -> list[tuple[int, bytes | None]]:
    """Return the last sequence of each segment and the stored hash of that fact."""
    if db.execute("PRAGMA user_version").fetchone()[0] < HEADS_SINCE:
        # The column is missing in an older file that is opened read-only.
        return []
    return [(last, _parse_hash(head)) for last, head in db.execute(_HEADS, (session_id,))]


def _parse_hash(head: object) -> bytes | None:
    try:
        return bytes.fromhex(head) if isinstance(head, str) else None
    except ValueError:
        # The value was overwritten. An empty hash is different from the hash of every fact;
        # `None` would mean that no hash was stored.
        return b""


def find_model(db: sqlite3.Connection, session_id: str, name: str) -> tuple[int, bytes] | None:
    """Return the sequence that a model covers and its data.

    Returns:
        `None` if there is no such model. Empty data if the stored data is damaged.
    """
    found = db.execute(_MODEL, (session_id, name)).fetchone()
    if found is None:
        return None
    sequence, crc, data = found
    if crc32(data) != crc:
        log.warning("session %s: model %s is damaged and will be rebuilt", session_id, name)
        return sequence, b""
    return sequence, data


def _row(meta: str, last: int) -> Row:
    return _meta_decoder.decode(meta), last
