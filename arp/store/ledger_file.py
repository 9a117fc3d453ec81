"""A ledger file read from beside: without the writer's lock, also while a server has the file.

SQLite lets others read while one writes. A reader sees what was durable when it looked; what it
looks at in one question is of one moment. It writes nothing and mends nothing.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec

from arp.store.errors import StoreDamaged, StoreUnavailable, sqlite_reason
from arp.store.reader import Wanted, find_heads, find_session, list_sessions, read_segments
from arp.store.schema import HEADS_SINCE, is_new
from arp.store.session_meta import SessionMeta
from arp.store.store import readable

_HEADS: Final = "SELECT id, CAST(heads AS BLOB) FROM journal ORDER BY id"

_ROW: Final = "SELECT CAST(heads AS BLOB), CAST(facts AS BLOB), crc FROM journal WHERE id = ?"

_heads_decoder = msgspec.json.Decoder(list[tuple[str, int, int]])


class LedgerFile:
    """A ledger file, open for reading alone; a context manager closes it.

    Args:
        path: Of the file; it must be there.

    Raises:
        StoreUnavailable: There is no such file, it is no ledger, or of a newer version.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise StoreUnavailable(f"there is no ledger {self.path}; name its file")
        with self._explained():
            place = f"{self.path.resolve().as_uri()}?mode=ro"
            self._db = sqlite3.connect(place, uri=True, isolation_level=None)
        try:
            with self._explained():
                if is_new(self._db, self.path):
                    raise StoreUnavailable(f"{self.path} is empty; no ledger was written there")
        except StoreUnavailable:
            self._db.close()
            raise

    def close(self) -> None:
        """Let go of the file. Harmless when repeated."""
        self._db.close()

    def __enter__(self) -> LedgerFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sessions(
        self, *, workflow: str | None = None, before: str | None = None, limit: int = 50
    ) -> list[SessionMeta]:
        """Return everybody's sessions, newest update first, as `Store.sessions`."""
        with self._moment():
            rows = list_sessions(self._db, Wanted(None, workflow, None, before), limit)
            ends = self._ends()
            return [_complete(meta, max(last, ends.get(meta.id, 0))) for meta, last in rows]

    def session(self, session_id: str) -> SessionMeta | None:
        """Return the row of one session, or `None`."""
        with self._moment():
            found = find_session(self._db, session_id)
            if found is None:
                return None
            meta, last = found
            return _complete(meta, max(last, self._ends().get(session_id, 0)))

    def read(self, session_id: str, after: int = 0, limit: int = 1000) -> list[tuple[int, bytes]]:
        """Return up to `limit` facts behind sequence `after`, as `Store.read`.

        Raises:
            StoreDamaged: The very next fact is damaged.
        """
        with self._moment():
            found = read_segments(self._db, session_id, max(after, 0), max(limit, 1))
            if len(found) < limit:
                place = found[-1][0] if found else max(after, 0)
                found += self._unsorted(session_id, place, limit - len(found))
        return readable(session_id, found)

    def heads(self, session_id: str) -> list[tuple[int, bytes | None]]:
        """Give every hash that is kept of a session's chain, as `Store.heads`."""
        with self._moment():
            if self._db.execute("PRAGMA user_version").fetchone()[0] < HEADS_SINCE:
                return []
            return find_heads(self._db, session_id)

    def version(self) -> int:
        """Return a number that is another one when somebody has written since."""
        with self._explained():
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    # -- what no segment has yet -------------------------------------------------------------------

    def _unsorted(self, session_id: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = []
        for row in self._rows_of(session_id, after):
            for sequence, fact in self._facts_of(row, session_id, after):
                if sequence == after + 1 and len(found) < limit:
                    found.append((sequence, fact))
                    after = sequence
        return found

    def _rows_of(self, session_id: str, after: int) -> list[int]:
        """Return the journal rows that hold facts of a session behind a sequence, in order."""
        return [
            row
            for row, heads in self._db.execute(_HEADS)
            if any(
                name == session_id and first + count - 1 > after
                for name, first, count in _heads_decoder.decode(heads)
            )
        ]

    def _facts_of(self, row: int, session_id: str, after: int) -> Iterator[tuple[int, bytes]]:
        heads, facts, crc = self._db.execute(_ROW, (row,)).fetchone()
        if crc32(facts, crc32(heads)) != crc:
            raise StoreDamaged(session_id, after)
        lines, start = facts.split(b"\n"), 0
        for name, first, count in _heads_decoder.decode(heads):
            if name == session_id:
                yield from enumerate(lines[start : start + count], first)
            start += count

    def _ends(self) -> dict[str, int]:
        """Return the last sequence of each session that the journal has facts of."""
        ends: dict[str, int] = {}
        for _, heads in self._db.execute(_HEADS):
            for name, first, count in _heads_decoder.decode(heads):
                ends[name] = first + count - 1
        return ends

    # -- inside ------------------------------------------------------------------------------------

    @contextmanager
    def _moment(self) -> Iterator[None]:
        """Let everything that is read inside be of one moment."""
        with self._explained():
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("ROLLBACK")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            reason = sqlite_reason(error)
            raise StoreUnavailable(f"ledger {self.path}: {reason}") from error
        except msgspec.DecodeError as error:
            raise StoreUnavailable(
                f"ledger {self.path}: a row is damaged; restore the file from a backup"
            ) from error


def _complete(meta: SessionMeta, last: int) -> SessionMeta:
    return msgspec.structs.replace(meta, last_sequence=last)
