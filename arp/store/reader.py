"""The reading side of a ledger file, with its own connections and threads.

Checkpoints (moving the write-ahead log into the file) run here too. Otherwise SQLite would run one
inside the commit that makes the log too long, and that commit would wait.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple, TypeVar
from zlib import crc32

import msgspec

from arp.store.errors import StoreDamaged, StoreUnavailable, StoreUnreadable, sqlite_reason
from arp.store.schema import HEADS_SINCE, open_reader
from arp.store.session_list import SessionMeta, excerpt, missing_in, page_limit, split_cursor
from arp.store.store import PAGE_BYTES, Page

log = logging.getLogger(__name__)

T = TypeVar("T")

Row = tuple[SessionMeta, int]
"""A session's row, and the last sequence in its segments."""

_THREADS: Final = 3
"""Most reads are answered from memory; a long list, a resume and a checkpoint can run at once."""

_MAX_CHECKPOINT_PASSES: Final = 8
"""The writer adds pages meanwhile; each pass is shorter than the last, so a few are enough."""

_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""Errors that a retry does not fix."""

_SEGMENTS: Final = """
    SELECT first, last, crc, CAST(facts AS BLOB) FROM segment
    WHERE session = ?1 AND last >= ?2 AND first >= coalesce(
        (SELECT max(first) FROM segment WHERE session = ?1 AND first <= ?2), 0)
    ORDER BY first"""

_ROWS: Final = """
    SELECT meta, coalesce(
        (SELECT last FROM segment WHERE session = id ORDER BY first DESC LIMIT 1), 0)
    FROM session """

_HEADS: Final = "SELECT last, head FROM segment WHERE session = ? ORDER BY first"

_TURN_TEXTS: Final = """
    SELECT turn, text FROM (
        SELECT turn, text, folded FROM said WHERE session = ?1 ORDER BY rowid DESC LIMIT ?2)
    WHERE instr(folded, ?3) LIMIT 1"""
"""A search in the text of turns. A full-text index finds no parts of words, and nothing in Chinese
or Japanese; facts have text only in pieces."""

MAX_SEARCHED: Final = 500
"""Sessions that one search examines."""

MAX_TURNS_SEARCHED: Final = 2000
"""The newest turns of a session that a search examines."""

SEARCH_S: Final = 0.25
"""A search stops after the session that exceeds this time; the caller may continue it."""

_MODEL: Final = """
    SELECT sequence, crc, CAST(data AS BLOB) FROM model WHERE session = ? AND name = ?"""

_meta_decoder = msgspec.json.Decoder(SessionMeta)


class Reader:
    """Runs queries on a few threads, with a pool of connections."""

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
            StoreUnavailable: The file is damaged. Errors of the query itself are passed on.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._run, query)

    def checkpoint(self) -> None:
        """Start a checkpoint, unless one is running. Never waits; a failure is logged."""
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
            with self._borrowed() as connection:
                return query(connection)
        except sqlite3.Error as error:
            is_damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
            kind = StoreUnavailable if is_damaged else StoreUnreadable
            raise self._failure(kind, sqlite_reason(error)) from error
        except msgspec.DecodeError as error:
            reason = "a row is damaged; restore it from a backup"
            raise self._failure(StoreUnavailable, reason) from error

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        connection = self._free.get()
        try:
            if connection is None:
                connection = self._connect(self._path)
            yield connection
        finally:
            self._free.put(connection)

    def _checkpoint(self) -> None:
        try:
            with self._borrowed() as connection:
                _move_log(connection)
        except sqlite3.Error as error:
            log.warning("ledger %s: checkpoint failed: %s", self._path, sqlite_reason(error))
        finally:
            self._is_checkpointing = False

    def _failure(self, kind: type[StoreUnavailable], reason: str) -> StoreUnavailable:
        log.error("ledger %s cannot be read: %s", self._path, reason)
        return kind(f"the ledger cannot be read: {reason}")


def _move_log(db: sqlite3.Connection) -> None:
    for _ in range(_MAX_CHECKPOINT_PASSES):
        _, pages, moved = db.execute("PRAGMA wal_checkpoint").fetchone()
        if moved >= pages:
            return


def read_segments(db: sqlite3.Connection, session_id: str, after: int, limit: int) -> Page:
    """Return up to `limit` facts after `after` that are in segments, in order, without gaps.

    A page ends with the segment that makes it larger than `PAGE_BYTES`.

    Raises:
        StoreDamaged: The first fact of the page fails its checksum or is missing.
    """
    found: Page = []
    wanted, size = after + 1, 0
    for first, last, crc, body in db.execute(_SEGMENTS, (session_id, wanted)):
        if last < wanted:
            continue
        facts = body.split(b"\n")
        if first > wanted or crc32(body) != crc or len(facts) != last - first + 1:
            if found:
                return found
            raise StoreDamaged(session_id, after)
        found += enumerate(facts[wanted - first : wanted - first + limit - len(found)], wanted)
        wanted, size = last + 1, size + len(body)
        if len(found) >= limit or size >= PAGE_BYTES:
            break
    return found


class SessionQuery(NamedTuple):
    """Which sessions to return; `None` means any."""

    owner: str | None = None
    workflow: str | None = None
    pinned: bool | None = None
    before: str | None = None


def list_sessions(db: sqlite3.Connection, query: SessionQuery, limit: int) -> list[Row]:
    """Return the rows of `Store.sessions`, newest update first."""
    return list(_rows(db, query, page_limit(limit)))


def search_sessions(
    db: sqlite3.Connection, words: Sequence[str], query: SessionQuery, limit: int
) -> tuple[list[tuple[Row, str | None, str]], str | None]:
    """Return the sessions with all words.

    Returns:
        For each session its row, a turn and an excerpt; and the cursor at which the search
        continues, or `None` at its end.
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
    """Return the turn and the excerpt with the first word that is not in the title.

    Returns:
        `None` if the session does not have all words.
    """
    match: tuple[str | None, str] = (None, "")
    for word in reversed(missing_in(meta.title, words)):
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
    """Return the ids of the sessions whose row is `active`, in order."""
    return [row[0] for row in db.execute("SELECT id FROM session WHERE active ORDER BY id")]


def find_heads(db: sqlite3.Connection, session_id: str) -> list[tuple[int, bytes | None]]:
    """Return the stored hash of the last fact of each segment."""
    if db.execute("PRAGMA user_version").fetchone()[0] < HEADS_SINCE:
        return []  # an older file that is opened read-only; opening it for writing upgrades it
    return [(last, _digest(head)) for last, head in db.execute(_HEADS, (session_id,))]


def _digest(head: object) -> bytes | None:
    try:
        return bytes.fromhex(head) if isinstance(head, str) else None
    except ValueError:
        return b""  # the value was overwritten; no fact has this hash


def find_model(db: sqlite3.Connection, session_id: str, name: str) -> tuple[int, bytes] | None:
    """Return the sequence that a model covers and its data, which is empty if it is damaged."""
    found = db.execute(_MODEL, (session_id, name)).fetchone()
    if found is None:
        return None
    sequence, crc, data = found
    if crc32(data) != crc:
        log.warning("session %s: model %s is damaged, and is built again", session_id, name)
        return sequence, b""
    return sequence, data


def _row(meta: str, last: int) -> Row:
    return _meta_decoder.decode(meta), last
