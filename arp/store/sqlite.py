"""The store in a SQLite file, which combines the writer, the reader and the lock."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from arp.store.batch import refuse_invalid
from arp.store.directory import make_private_directory
from arp.store.errors import (
    StoreClosed,
    StoreDamaged,
    StoreUnavailable,
    opening_reason,
    os_reason,
    sqlite_reason,
)
from arp.store.journal import AppendCall, Journal
from arp.store.lock import FileLock
from arp.store.reader import (
    Reader,
    Row,
    SessionQuery,
    active_sessions,
    find_heads,
    find_model,
    find_session,
    list_sessions,
    read_segments,
    search_sessions,
)
from arp.store.schema import open_ledger, open_read_only, stored_removals
from arp.store.session_list import Match, SearchPage, SessionMeta
from arp.store.store import Page, Refusals, SessionWrite, readable_prefix
from arp.store.writer import LedgerWriter

log = logging.getLogger(__name__)

T = TypeVar("T")


class SqliteStore:
    """A `Store` in one file: acknowledged facts survive a kill and a power loss.

    A read-only store takes no lock and writes nothing. Another process may write the file at the
    same time, so facts and sequences are those at `open` or at the last `refresh`. In a damaged
    file, the facts before the damage can be read. Methods that write raise `StoreClosed`.

    Args:
        path: The file.
        read_only: Whether to open the file for reading only.

    Source: ledger.md 5.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._read_only = read_only
        self._lock = FileLock(self.path)
        self._journal = Journal(self.path, open_read_only if read_only else open_ledger)
        self._runtime_id = ""
        self._writer: LedgerWriter | None = None
        self._reader: Reader | None = None

    async def open(self) -> None:
        """Open the file; see `Store.open`.

        A missing file and its directory are created, with access for this user only. With
        `read_only`, the file must exist.
        """
        if self._read_only:
            await asyncio.to_thread(self._map_errors, self._journal.open)
            self._reader = Reader(self.path, open_read_only)
            return
        await asyncio.to_thread(self._lock_and_open)
        reader = self._reader = Reader(self.path)
        self._writer = LedgerWriter(self._journal, reader.checkpoint)
        log.info("ledger %s opened", self.path)

    async def aclose(self) -> None:
        """See `Store.aclose`. Normally, the journal is then empty and the log is gone."""
        reader, self._reader = self._reader, None
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.aclose()
        if reader is not None:
            await asyncio.to_thread(self._close_and_unlock, reader)
        if writer is not None:
            log.info("ledger %s closed", self.path)

    async def refresh(self) -> bool:
        """Read what another process has written since `open` or the last `refresh`.

        Only for a read-only store.

        Returns:
            Whether there may be new facts.

        Raises:
            StoreUnavailable: The file cannot be read.
        """
        return await asyncio.to_thread(self._map_errors, self._journal.refresh)

    async def runtime_id(self) -> str:
        """Return the id that is stored in the file; see `Store.runtime_id`."""
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
        """See `Store.append`."""
        if self._writer is None:
            raise StoreClosed
        call = AppendCall(tuple(batch), tuple(together), refuse_invalid(batch))
        return self._writer.append(call, is_awaited=is_awaited)

    async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Page:
        """See `Store.read`. The newest facts come from memory, without a thread."""
        # The tail first, then the file: in the other order, facts that are moved from the tail to
        # a segment between the two reads would be missing.
        tail = self._journal.tails.get(session_id)
        after, limit = max(after, 0), max(limit, 1)
        found: Page = []
        if tail is None or after + 1 < tail.first:
            found = await self._open_reader.run(
                lambda db: read_segments(db, session_id, after, limit)
            )
            after = found[-1][0] if found else after
        if tail is not None and after + 1 >= tail.first:
            start = after + 1 - tail.first
            found += enumerate(tail.facts[start : start + limit - len(found)], after + 1)
        # The next fact is neither in a segment nor in the tail. An empty page would mean that the
        # session ends here.
        has_gap = tail is not None and after + 1 < tail.first
        if not found and (has_gap or session_id in self._journal.damaged):
            raise StoreDamaged(session_id, after)
        return readable_prefix(session_id, found)

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
        rows = await self._open_reader.run(lambda db: list_sessions(db, query, limit))
        return [self._with_last_sequence(row) for row in rows]

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
        found, cursor = await self._open_reader.run(
            lambda db: search_sessions(db, words, query, limit)
        )
        matches = [Match(self._with_last_sequence(row), turn, text) for row, turn, text in found]
        return SearchPage(matches, cursor)

    async def session(self, session_id: str) -> SessionMeta | None:
        """See `Store.session`."""
        row = await self._open_reader.run(lambda db: find_session(db, session_id))
        return self._with_last_sequence(row) if row else None

    async def delete(self, session_id: str) -> bool:
        """See `Store.delete`."""
        if self._writer is None:
            raise StoreClosed
        return await self._writer.delete(session_id)

    async def note_removal(self, name: str, note: str | None) -> None:
        """See `Store.note_removal`."""
        if self._writer is None:
            raise StoreClosed
        await self._writer.note_removal(name, note)

    async def removals(self) -> dict[str, str]:
        """See `Store.removals`."""
        return await self._open_reader.run(stored_removals)

    async def open_sessions(self) -> list[str]:
        """See `Store.open_sessions`."""
        return await self._open_reader.run(active_sessions)

    async def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
        """Return the hash of the last fact of each segment; see `Store.heads`."""
        return await self._open_reader.run(lambda db: find_heads(db, session_id))

    async def save_model(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        """See `Store.save_model`."""
        if self._writer is None:
            raise StoreClosed
        await self._writer.save(session_id, name, sequence, data)

    async def load_model(self, session_id: str, name: str) -> tuple[int, bytes] | None:
        """See `Store.load_model`."""
        return await self._open_reader.run(lambda db: find_model(db, session_id, name))

    @property
    def _open_reader(self) -> Reader:
        if self._reader is None:
            raise StoreClosed
        return self._reader

    def _with_last_sequence(self, row: Row) -> SessionMeta:
        meta, last = row
        tail = self._journal.tails.get(meta.id)
        return msgspec.structs.replace(meta, last_sequence=tail.last if tail else last)

    def _lock_and_open(self) -> None:
        try:
            make_private_directory(self.path.parent)
        except OSError as error:
            raise StoreUnavailable(
                f"ledger {self.path}: cannot create its directory {os_reason(error)}"
            ) from error
        self._lock.acquire()
        try:
            self._journal.open()
            self._runtime_id = self._journal.runtime_id()
        except BaseException as error:
            self._journal.abandon()
            self._lock.release()
            if isinstance(error, sqlite3.Error):
                reason = opening_reason(error, self.path)
                raise StoreUnavailable(f"ledger {self.path}: {reason}") from error
            raise

    def _map_errors(self, action: Callable[[], T]) -> T:
        """Call `action` and return its result; raise an error of SQLite as `StoreUnavailable`."""
        try:
            return action()
        except sqlite3.Error as error:
            reason = sqlite_reason(error)
            raise StoreUnavailable(f"ledger {self.path}: {reason}") from error

    def _close_and_unlock(self, reader: Reader) -> None:
        reader.close()
        if self._read_only:
            self._journal.abandon()
            return
        try:
            self._journal.close()
        except sqlite3.Error as error:
            # Nothing is lost: the facts are still in the journal, and the next `open` reads them.
            log.warning("ledger %s: not sorted on close: %s", self.path, sqlite_reason(error))
        finally:
            self._lock.release()
