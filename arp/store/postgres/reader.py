"""Queries on the database, with their own connections."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar
from zlib import crc32

import msgspec

from arp.store.errors import StoreDamaged, StoreUnavailable, StoreUnreadable
from arp.store.postgres.connections import Connection, PostgresConnections
from arp.store.postgres.errors import POSTGRES_ERRORS, postgres_reason
from arp.store.reader import (
    MAX_SEARCHED,
    MAX_TURNS_SEARCHED,
    SEARCH_S,
    FactRow,
    SessionQuery,
    join_rows,
)
from arp.store.session_list import (
    Match,
    SearchPage,
    SessionMeta,
    excerpt,
    missing_words,
    page_limit,
    split_cursor,
)
from arp.store.store import PAGE_BYTES, Page, readable_prefix

log = logging.getLogger(__name__)

T = TypeVar("T")

READERS: Final = 3
"""Maximum number of connections for queries, as for a file; most reads come from memory."""

_SEARCHED_AT_ONCE: Final = 25
"""Number of sessions that one statement searches, so that a search can end in time."""

_READ: Final = "SELECT head, first, last, crc, facts FROM arp_read_v1(%s, %s, %s, %s)"

_ROWS: Final = """
    SELECT s.meta, coalesce(h.last, 0)
    FROM arp_session AS s LEFT JOIN arp_head AS h ON h.session = s.id """

_FIND_WORDS: Final = """
    SELECT p.number, found.turn, CASE WHEN p.is_first THEN found.text END
    FROM unnest(%s::integer[], %s::text[], %s::bytea[], %s::boolean[])
        AS p(number, session, word, is_first)
    CROSS JOIN LATERAL (
        SELECT newest.turn, newest.text
        FROM (
            SELECT turn, text, folded, added FROM arp_said WHERE session = p.session
            ORDER BY added DESC LIMIT %s
        ) AS newest
        WHERE position(p.word IN newest.folded) > 0
        ORDER BY newest.added DESC LIMIT 1
    ) AS found"""
"""Search for words in the texts of turns; there is no index, as in a file (`arp.store.reader`)."""

_MODEL: Final = "SELECT sequence, crc, data FROM arp_model WHERE session = %s AND name = %s"

_MAX_BIGINT: Final = 2**63 - 1

_meta_decoder = msgspec.json.Decoder(SessionMeta)


class PostgresReader:
    """Runs queries on a few connections.

    Args:
        connections: The connections; only this reader uses them.
        shown: The location for messages.
    """

    def __init__(self, connections: PostgresConnections, shown: str) -> None:
        self._connections = connections
        self._shown = shown
        self._tasks: set[asyncio.Task[Any]] = set()
        self._logged = ""
        """Reason of the last error that was logged; empty after a success."""

    async def run(self, query: Callable[[Connection], Awaitable[T]]) -> T:
        """Run a query and return its result.

        Raises:
            StoreUnreadable: The database cannot be read now.
            StoreUnavailable: A row is damaged.
            Exception: Any other error of the query.
        """
        # If the caller is cancelled, the query still runs to its end: to cancel it, psycopg would
        # make another connection and wait for the server.
        task = asyncio.ensure_future(self._run(query))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """Wait for the running queries and close the connections.

        If the database does not answer, the queries fail after `CLOSE_S`.
        """
        await self._connections.aclose(list(self._tasks))

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # otherwise asyncio logs an error whose caller was cancelled

    async def _run(self, query: Callable[[Connection], Awaitable[T]]) -> T:
        kind: type[StoreUnavailable] = StoreUnreadable
        try:
            result = await self._connections.run(query, may_repeat=True)
        except POSTGRES_ERRORS as error:
            reason = postgres_reason(error)
        except msgspec.DecodeError:
            kind, reason = StoreUnavailable, "a row is damaged; restore it from a backup"
        else:
            self._logged = ""
            return result
        if self._logged != reason:
            self._logged = reason
            log.error("ledger %s cannot be read: %s", self._shown, reason)
        raise kind(f"the ledger cannot be read: {reason}")


def is_possible(*texts: str) -> bool:
    """Return whether the database can have these texts: no NUL, no lone surrogate."""
    return all("\0" not in text and _is_encodable(text) for text in texts)


def _is_encodable(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


async def read_page(connection: Connection, session_id: str, after: int, limit: int) -> Page:
    """Return the page for `Store.read`.

    Raises:
        StoreDamaged: The first fact of the page fails its checksum or is missing.
        FactUnreadable: That fact is not a JSON object.
    """
    cursor = connection.cursor(binary=True)
    bounds = (min(after, _MAX_BIGINT - 1), min(limit, _MAX_BIGINT), PAGE_BYTES)
    await cursor.execute(_READ, (session_id, *bounds))
    head = await cursor.fetchone()
    if head is None:
        return []
    rows: list[FactRow] = [
        (first, last, crc, bytes(body)) for _, first, last, crc, body in await cursor.fetchall()
    ]
    found = join_rows(session_id, rows, after, limit)
    if not found and after < head[0]:
        # An empty page would mean that the session ends here.
        raise StoreDamaged(session_id, after)
    return readable_prefix(session_id, found)


async def list_rows(connection: Connection, query: SessionQuery, limit: int) -> list[SessionMeta]:
    """Return up to `limit` rows of sessions, newest update first."""
    conditions, values = ["true"], list[object]()
    for column, value in (("owner", query.owner), ("workflow", query.workflow)):
        if value is not None:
            if not is_possible(value):
                return []
            conditions.append(f"s.{column} = %s")
            values.append(value)
    if query.pinned is not None:
        conditions.append("s.pinned" if query.pinned else "NOT s.pinned")
    if query.before is not None:
        conditions.append("(s.updated_at, s.id) < (%s, %s)")
        values += _storable_cursor(query.before)
    end = f"WHERE {' AND '.join(conditions)} ORDER BY s.updated_at DESC, s.id DESC LIMIT %s"
    cursor = connection.cursor(binary=True)
    await cursor.execute((_ROWS + end).encode(), [*values, limit])
    return [_meta_of(row) for row in await cursor.fetchall()]


def _storable_cursor(before: str) -> tuple[str, str]:
    """Return a cursor as text that the database can have: without NULs and lone surrogates.

    A cursor with a NUL keeps its place among the stored rows. A lone surrogate becomes a `?`.
    """
    updated_at, session_id = (
        part.encode(errors="replace").decode() for part in split_cursor(before)
    )
    time, nul, _ = updated_at.partition("\0")
    if nul:
        # Stored times have no NUL: those before "a\0b" are the ones up to "a", with any id.
        return time, chr(0x10FFFF)
    name, nul, _ = session_id.partition("\0")
    return time, f"{name}\1" if nul else name


async def find_row(connection: Connection, session_id: str) -> SessionMeta | None:
    """Return the row of one session, or `None`."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(f"{_ROWS} WHERE s.id = %s".encode(), (session_id,))
    row = await cursor.fetchone()
    return None if row is None else _meta_of(row)


async def find_fence(connection: Connection, session_id: str) -> int:
    """Return the fence of a session; 0 if it was never raised."""
    select = "SELECT fence FROM arp_head WHERE session = %s"
    row = await (await connection.execute(select, (session_id,))).fetchone()
    return 0 if row is None else int(row[0])


async def active_rows(connection: Connection) -> list[str]:
    """Return the ids of the sessions with an `active` row, in order of id."""
    cursor = await connection.execute("SELECT id FROM arp_session WHERE active ORDER BY id")
    return [row[0] for row in await cursor.fetchall()]


async def search_rows(
    connection: Connection, words: Sequence[str], query: SessionQuery, limit: int
) -> SearchPage:
    """Return the page for `Store.search`.

    It examines `MAX_SEARCHED` sessions, or as many as `SEARCH_S` allows.
    """
    deadline, found = time.monotonic() + SEARCH_S, list[Match]()
    examined, last = 0, query.before
    size = page_limit(limit)
    while examined < MAX_SEARCHED:
        page = await list_rows(connection, query._replace(before=last), _SEARCHED_AT_ONCE)
        for meta, match in zip(page, await _matches(connection, page, words), strict=True):
            last = meta.cursor
            if match is not None:
                found.append(match)
            if len(found) == size:
                return SearchPage(found, last)
        examined += len(page)
        if len(page) < _SEARCHED_AT_ONCE:
            return SearchPage(found, None)
        if time.monotonic() > deadline:
            break
    return SearchPage(found, last)


async def _matches(
    connection: Connection, metas: Sequence[SessionMeta], words: Sequence[str]
) -> list[Match | None]:
    """Return the match of each session, or `None` for a session that lacks a word."""
    missing = [missing_words(meta.title, words) for meta in metas]
    asked = [(number, word) for number, lacks in enumerate(missing) for word in lacks]
    if not asked:
        return [Match(meta) for meta in metas]
    cursor = connection.cursor(binary=True)
    columns = (
        [number for number, _ in asked],
        [metas[number].id for number, _ in asked],
        [word.encode(errors="replace") for _, word in asked],
        [word == missing[number][0] for number, word in asked],
    )
    await cursor.execute(_FIND_WORDS, (*columns, MAX_TURNS_SEARCHED))
    counts = [0] * len(metas)
    firsts: dict[int, Match] = {}
    for number, turn, text in await cursor.fetchall():
        counts[number] += 1
        if text is not None:
            shown = excerpt(bytes(text).decode(), missing[number][0])
            firsts[number] = Match(metas[number], bytes(turn).decode(), shown)
    return [
        (firsts.get(number, Match(meta)) if counts[number] == len(missing[number]) else None)
        for number, meta in enumerate(metas)
    ]


async def find_model_row(
    connection: Connection, session_id: str, name: str
) -> tuple[int, bytes] | None:
    """Return the sequence that a model covers and its data; see `Store.load_model`."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(_MODEL, (session_id, name))
    row = await cursor.fetchone()
    if row is None:
        return None
    sequence, crc, data = row
    if crc32(data) != crc:
        log.warning("session %s: model %s is damaged and will be rebuilt", session_id, name)
        return sequence, b""
    return sequence, bytes(data)


async def stored_notes(connection: Connection) -> dict[str, str]:
    """Return the notes of removals by name, oldest first."""
    cursor = connection.cursor(binary=True)
    await cursor.execute("SELECT name, note FROM arp_removal ORDER BY added")
    return {bytes(name).decode(): bytes(note).decode() for name, note in await cursor.fetchall()}


def _meta_of(row: Sequence[Any]) -> SessionMeta:
    meta, last = row
    return msgspec.structs.replace(_meta_decoder.decode(meta), last_sequence=last)
