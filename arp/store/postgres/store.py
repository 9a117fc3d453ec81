"""The store in a PostgreSQL database, which combines the writer and the reader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

from arp.store.batch import refuse_invalid
from arp.store.errors import (
    FactUnreadable,
    InvalidWrite,
    SequenceConflict,
    StoreClosed,
    StoreDamaged,
    StoreUnavailable,
)
from arp.store.journal import AppendCall
from arp.store.postgres.append_batch import MAX_KEY_BYTES, is_long_key, refuse_long_keys
from arp.store.postgres.connections import Connection, PostgresConnections
from arp.store.postgres.errors import POSTGRES_ERRORS, postgres_reason
from arp.store.postgres.location import PostgresLocation
from arp.store.postgres.reader import (
    READERS,
    PostgresReader,
    active_rows,
    find_fence,
    find_model_row,
    find_row,
    is_possible,
    list_rows,
    read_page,
    search_rows,
    stored_notes,
)
from arp.store.postgres.schema import check_version, prepare_tables, read_meta
from arp.store.postgres.writer import PostgresWriter
from arp.store.reader import SessionQuery
from arp.store.session_list import SearchPage, SessionMeta, page_limit
from arp.store.store import Page, Refusals, SessionWrite

log = logging.getLogger(__name__)

_PREPARE_S: Final = 60.0
"""Maximum time to create or upgrade the tables, including the wait for another process."""


class PostgresStore:
    """A `SharedStore` in a database: acknowledged facts survive a crash of the server.

    A read-only store creates no tables and writes nothing; methods that write raise `StoreClosed`.

    Args:
        location: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`.
        read_only: Whether to open the ledger for reading only.

    Raises:
        StoreUnavailable: The location is not valid.
    """

    def __init__(self, location: str, *, read_only: bool = False) -> None:
        self._location = PostgresLocation(location)
        self._read_only = read_only
        self._runtime_id = ""
        self._writer: PostgresWriter | None = None
        self._reader: PostgresReader | None = None
        self._closing: asyncio.Future[None] | None = None
        self._damaged: dict[str, int] = {}
        """Sessions where a read has found damage, with their last good sequence."""

    @property
    def shown(self) -> str:
        """The location for messages, without user, password and parameters."""
        return self._location.shown

    async def open(self) -> None:
        """Connect, and create or upgrade the tables; see `Store.open`.

        With `read_only`, the tables must exist.
        """
        self._damaged.clear()
        connections = PostgresConnections(self._location, 1, read_only=self._read_only)
        prepare = self._find_tables if self._read_only else self._prepare_tables
        reason = ""
        try:
            self._runtime_id = await connections.run(prepare, limit_s=_PREPARE_S)
        except POSTGRES_ERRORS as error:
            reason = postgres_reason(error)
        if reason:
            # Not inside `except`: the text of the error, which a traceback would show, names the
            # user of the database.
            raise StoreUnavailable(f"ledger {self.shown}: {reason}")
        readers = PostgresConnections(self._location, READERS, read_only=self._read_only)
        self._reader = PostgresReader(readers, self.shown)
        if self._read_only:
            await connections.aclose()
            return
        self._writer = PostgresWriter(connections, self.shown)
        log.info("ledger %s opened", self.shown)

    async def aclose(self) -> None:
        """See `Store.aclose`. If the database does not answer, waiting calls fail after 2 s.

        Cancel: Closing continues in the background.
        """
        if self._reader is not None:
            self._closing = asyncio.ensure_future(self._close(self._reader, self._writer))
            self._reader = self._writer = None
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def _close(self, reader: PostgresReader, writer: PostgresWriter | None) -> None:
        closings = [reader.aclose()] if writer is None else [writer.aclose(), reader.aclose()]
        await asyncio.gather(*closings)
        if writer is not None:
            log.info("ledger %s closed", self.shown)

    async def refresh(self) -> bool:
        """Return `True`: another process may have written, and reads always see it."""
        return True

    async def runtime_id(self) -> str:
        """Return the id that is stored in the database; see `Store.runtime_id`."""
        if self._writer is None:
            raise StoreClosed
        return self._runtime_id

    def append(
        self,
        batch: Sequence[SessionWrite],
        together: Sequence[frozenset[str]] = (),
        *,
        is_awaited: bool = False,
    ) -> asyncio.Future[Refusals]:
        """See `Store.append`.

        The facts of a session are checked when they are read, not here: after damage was found,
        appends to the session are refused with `StoreDamaged`.
        """
        refused = refuse_invalid(batch)
        refuse_long_keys(batch, refused)
        for session_id in self._damaged.keys() & {write.session_id for write in batch}:
            refused.setdefault(session_id, StoreDamaged(session_id, self._damaged[session_id]))
        call = AppendCall(tuple(batch), tuple(together), refused)
        return self._open_writer.append(call, is_awaited=is_awaited)

    async def raise_fence(self, session_id: str) -> int:
        """See `SharedStore.raise_fence`. It waits for appends that hold the session.

        Raises:
            InvalidWrite: No session can have this id.
        """
        if not session_id.isprintable() or not session_id or is_long_key(session_id):
            raise InvalidWrite(f"{session_id!r:.80} cannot be the id of a session")

        async def raise_it(connection: Connection) -> int:
            cursor = await connection.execute("SELECT arp_raise_fence_v1(%s)", (session_id,))
            return int(_value(await cursor.fetchone()))

        return await self._open_writer.act(raise_it)

    async def fence(self, session_id: str) -> int:
        """See `SharedStore.fence`."""
        reader = self._open_reader
        if not is_possible(session_id):
            return 0
        return await reader.run(lambda on: find_fence(on, session_id))

    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        """See `Store.read`."""
        reader = self._open_reader
        if not is_possible(session_id):
            return []
        after, limit = max(after, 0), max(limit, 1)
        try:
            found = await reader.run(lambda on: read_page(on, session_id, after, limit))
        except FactUnreadable:
            raise
        except StoreDamaged as error:
            self._damaged[session_id] = min(error.after, self._damaged.get(session_id, after))
            raise
        mark = self._damaged.get(session_id)
        if mark is not None and after <= mark and (not found or found[-1][0] > mark):
            # The session was restored, or another process has deleted it.
            del self._damaged[session_id]
        return found

    async def sessions(
        self,
        *,
        owner: str | None = None,
        workflow: str | None = None,
        pinned: bool | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[SessionMeta]:
        """See `Store.sessions`."""
        query = SessionQuery(owner, workflow, pinned, before)
        return await self._open_reader.run(lambda on: list_rows(on, query, page_limit(limit)))

    async def search(
        self,
        words: Sequence[str],
        *,
        owner: str,
        workflow: str | None = None,
        pinned: bool | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> SearchPage:
        """See `Store.search`. One call examines `MAX_SEARCHED` sessions or runs for `SEARCH_S`."""
        query = SessionQuery(owner, workflow, pinned, before)
        return await self._open_reader.run(lambda on: search_rows(on, words, query, limit))

    async def session(self, session_id: str) -> SessionMeta | None:
        """See `Store.session`."""
        reader = self._open_reader
        if not is_possible(session_id):
            return None
        return await reader.run(lambda on: find_row(on, session_id))

    async def delete(self, session_id: str) -> bool:
        """See `Store.delete`.

        The server removes the deleted bytes from its files when it runs VACUUM and reuses the
        space; they stay in its archives and backups.
        """
        writer = self._open_writer
        if not is_possible(session_id) or is_long_key(session_id):
            return False

        async def delete_it(connection: Connection) -> bool:
            # Before the statement: if its outcome is unknown, the session may be gone too.
            writer.forget(session_id)
            cursor = await connection.execute("SELECT arp_delete_v1(%s)", (session_id,))
            self._damaged.pop(session_id, None)
            return bool(_value(await cursor.fetchone()))

        return await writer.act(delete_it)

    async def note_removal(self, name: str, note: str | None) -> None:
        """See `Store.note_removal`."""
        if is_long_key(name):
            raise InvalidWrite(f"the name of a removal has more than {MAX_KEY_BYTES} bytes")
        encoded = name.encode()

        async def note_it(connection: Connection) -> None:
            if note is None:
                await connection.execute("DELETE FROM arp_removal WHERE name = %b", (encoded,))
                return
            await connection.execute(
                "INSERT INTO arp_removal (name, note) VALUES (%b, %b)"
                " ON CONFLICT (name) DO UPDATE SET note = excluded.note, added = excluded.added",
                (encoded, note.encode()),
            )

        await self._open_writer.act(note_it)

    async def removals(self) -> dict[str, str]:
        """See `Store.removals`."""
        return await self._open_reader.run(stored_notes)

    async def open_sessions(self) -> list[str]:
        """See `Store.open_sessions`."""
        return await self._open_reader.run(active_rows)

    async def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
        """Return an empty list, since no hash is stored; see `Store.heads`."""
        if self._reader is None:
            raise StoreClosed
        return []

    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        """See `Store.save_model`."""
        values = (session_id, name, sequence, crc32(data), data)

        async def save_it(connection: Connection) -> int | None:
            cursor = await connection.execute(
                "SELECT arp_save_model_v1(%s, %s, %s::bigint, %s::bigint, %b)", values
            )
            found = _value(await cursor.fetchone())
            return None if found is None else int(found)

        writer = self._open_writer
        newest: int | None = 0
        if is_possible(session_id, name) and not is_long_key(session_id + name):
            newest = await writer.act(save_it)
        if newest is not None:
            raise SequenceConflict(session_id, sequence, newest)

    async def load_model(self, session_id: str, name: str) -> tuple[int, bytes] | None:
        """See `Store.load_model`."""
        reader = self._open_reader
        if not is_possible(session_id, name):
            return None
        return await reader.run(lambda on: find_model_row(on, session_id, name))

    @property
    def _open_reader(self) -> PostgresReader:
        if self._reader is None:
            raise StoreClosed
        return self._reader

    @property
    def _open_writer(self) -> PostgresWriter:
        if self._writer is None:
            raise StoreClosed
        return self._writer

    async def _prepare_tables(self, connection: Connection) -> str:
        return await prepare_tables(connection, self.shown)

    async def _find_tables(self, connection: Connection) -> str:
        meta = await read_meta(connection, self.shown)
        if meta is None:
            raise StoreUnavailable(f"ledger {self.shown}: the database has no ledger")
        check_version(meta, self.shown)
        return meta.runtime_id


def _value(row: tuple[Any, ...] | None) -> Any:
    """Return the only value of the only row that a function in SQL returns."""
    assert row is not None
    return row[0]
