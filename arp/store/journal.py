"""Writing to a ledger file: facts are appended quickly and sorted later.

Theory of operation. A fact is stored in the journal first and in a segment later.

1. Every transaction writes the facts of all its sessions into **one row** at the end of `journal`:
   one statement, a few neighbouring pages, one sync. Callers wait only for this step.
2. The same facts stay in memory, by session, as **tails** (`tails.py`), until the journal has
   16 MiB of facts or one session has 256 KiB. Then a later transaction also sorts the oldest tails:
   it writes each tail as one row of `segment`, and removes the journal rows that no other tail
   needs.

So the facts of a session are its segments followed by its tail. Journal rows are read only when a
file is opened, to rebuild the tails. A row is deleted when the *last* of its sessions is sorted, so
a fact may be in both tables; when a file is opened, such facts are recognised by their sequence.

Why there is not one row per fact, ordered by session and sequence: 100 facts of 100 sessions would
change 100 pages of 4 KiB for 30 KiB of facts; README.md has the figures. Also, Python releases the
interpreter lock at each step of a statement and may wait 5 ms to get it back, so statements must
have few steps.

All methods run in the writer's thread; other threads may only call `tails.get`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

import msgspec

from arp.ledger.chain import genesis, head
from arp.store.batch import plan_batch
from arp.store.errors import SequenceConflict, StoreDamaged, StoreUnavailable
from arp.store.schema import (
    change_removal,
    open_ledger,
    stored_runtime_id,
    truncate_log,
    zero_free_pages,
)
from arp.store.session_list import SessionMeta, fold
from arp.store.store import Refusals, SessionWrite, one_line
from arp.store.tails import Run, Tail, Tails

_MAX_KNOWN: Final = 10_000
"""Number of sessions at which a cache (last sequence, last hash) is emptied and filled again."""

_JOURNAL: Final = """
    SELECT id, CAST(heads AS BLOB), CAST(facts AS BLOB), crc FROM journal ORDER BY id"""

_INSERT_JOURNAL: Final = "INSERT INTO journal (id, heads, facts, crc) VALUES (?, ?, ?, ?)"

_INSERT_SEGMENTS: Final = """
    INSERT INTO segment (session, first, last, crc, facts, head)
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
           json_extract(value, '$[3]'),
           substr(?2, json_extract(value, '$[4]'), json_extract(value, '$[5]')),
           json_extract(value, '$[6]')
    FROM json_each(?1)"""

_DELETE_JOURNAL: Final = """
    DELETE FROM journal WHERE id < ?1 AND id NOT IN (SELECT value FROM json_each(?2))"""

_UPSERT_SESSIONS: Final = """
    INSERT OR REPLACE INTO session (id, owner, workflow, updated_at, active, meta, pinned)
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
           json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]'),
           json_extract(value, '$[6]')
    FROM json_each(?1)"""

_REPLACE_TEXT: Final = (
    "INSERT OR REPLACE INTO said (session, turn, text, folded) VALUES (?, ?, ?, ?)"
)

_DELETE_SESSION: Final = (
    "DELETE FROM segment WHERE session = ?",
    "DELETE FROM session WHERE id = ?",
    "DELETE FROM model WHERE session = ?",
    "DELETE FROM said WHERE session = ?",
)

_LAST_SEGMENT: Final = "SELECT last FROM segment WHERE session = ? ORDER BY first DESC LIMIT 1"

_LAST_HEAD: Final = "SELECT head FROM segment WHERE session = ? ORDER BY first DESC LIMIT 1"

_EPOCH: Final = "SELECT json_extract(meta, '$.epoch') FROM session WHERE id = ?"

_UPSERT_MODEL: Final = """
    INSERT INTO model (session, name, sequence, crc, data) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (session, name) DO UPDATE
    SET sequence = excluded.sequence, crc = excluded.crc, data = excluded.data
    WHERE excluded.sequence >= model.sequence"""

TextRow: TypeAlias = tuple[str, str, str, str]
"""Session id, turn id, text of the turn, and the folded text."""

_heads_decoder = msgspec.json.Decoder(list[tuple[str, int, int]])


class AppendCall(NamedTuple):
    """One call of `append`."""

    batch: Sequence[SessionWrite]
    together: Sequence[frozenset[str]]
    """See `Store.append`."""
    refused: Refusals
    """Sessions that are refused; the store adds to them."""


class Journal:
    """The only writer of a ledger file.

    After a `sqlite3.Error` call `abandon`, and later `reopen`.

    Args:
        path: The ledger file.
        connect: Function that opens the file. With `open_read_only`, only `open`, `refresh` and
            `abandon` work.
    """

    def __init__(
        self, path: Path, connect: Callable[[Path], sqlite3.Connection] = open_ledger
    ) -> None:
        self.path = path
        self._connect = connect
        self.tails = Tails()
        """Facts that are not in a segment yet; other threads may call `get`."""
        self.damaged: dict[str, int] = {}
        """Last good sequence of each session that has facts with a wrong checksum."""
        self.bytes_since_checkpoint = 0
        """Bytes written since the last checkpoint started; the writer resets it to 0."""
        self.has_old_log = False
        """Whether deleted content may still be in the write-ahead log, which must be emptied."""
        self._connection: sqlite3.Connection | None = None
        self._last: dict[str, int] = {}
        """Sequence of the newest fact of each session; a cache."""
        self._chain: dict[str, bytes | None] = {}
        """Hash of the last fact in the segments of each session; `None` if it is not stored."""
        self._damaged_rows: list[int] = []
        """Ids of the journal rows with a wrong checksum."""
        self._next_row = 1
        self._seen_version = 0
        """Result of `_data_version` when the tails were read."""

    def open(self) -> None:
        """Open the file and build the tails from the rows of the journal.

        Raises:
            StoreUnavailable: See `open_ledger`. Or a row of the journal is so damaged that its
                sessions are unknown.
        """
        self.tails = self._load()

    def reopen(self) -> None:
        """Open the file again after a failure, and check that no acknowledged fact is missing.

        Raises:
            StoreUnavailable: The file cannot be opened, or acknowledged facts are missing. Reads
                still return the facts that are in memory.
        """
        # Keep the old tails until the check is done: they contain the acknowledged facts.
        tails = self._load()
        for session_id, tail in self.tails.by_session.items():
            if self.last_of(session_id) < tail.last:
                self.abandon()
                raise StoreUnavailable(
                    f"ledger {self.path}: session {session_id} lost acknowledged facts on the "
                    "disk; stop, check the disk, and restore the ledger from a backup"
                )
        self.tails = tails

    def refresh(self) -> bool:
        """Rebuild the tails if another process has written to the file.

        Returns:
            Whether another process has written.

        Raises:
            sqlite3.Error, StoreUnavailable: The file cannot be read; the tails are unchanged.
        """
        if self._data_version() == self._seen_version:
            return False
        self.tails = self._read_tails()
        return True

    def abandon(self) -> None:
        """Close the connection without committing; the tails can still be read."""
        connection, self._connection = self._connection, None
        self._last, self._chain = {}, {}
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def runtime_id(self) -> str:
        """Return the id of the runtime that the file belongs to.

        Raises:
            sqlite3.Error: The file cannot be read or written.
        """
        return stored_runtime_id(self._db)

    def close(self) -> None:
        """Write all tails as segments, so that the journal is empty, and close the file.

        Raises:
            sqlite3.Error: The tails could not be written as segments. Nothing is lost: the next
                `open` reads them from the journal.
        """
        tails = dict(self.tails.by_session)
        try:
            if self._connection is not None and tails:
                with self._transaction():
                    self._write_segments(tails)
                self.tails.remove(tails)
        finally:
            self.abandon()

    def last_of(self, session_id: str) -> int:
        """Return the sequence of the session's newest fact; 0 if it has none."""
        last = self._last.get(session_id)
        if last is None:
            row = self._db.execute(_LAST_SEGMENT, (session_id,)).fetchone()
            last = self._last[session_id] = row[0] if row else 0
        return last

    def commit(self, calls: Sequence[AppendCall]) -> None:
        """Make the facts of many calls durable in one transaction.

        The sessions that are not stored are added to `refused` of their call.

        Raises:
            sqlite3.Error: The calls may or may not be stored; call `abandon`, later `reopen`.
        """
        runs: list[Run] = []
        metas: list[SessionMeta] = []
        texts: list[TextRow] = []
        for batch, together, refused in calls:
            writes, planned = plan_batch(batch, together, refused, self._last_intact)
            self._last.update(planned)
            for write in writes:
                if write.facts:
                    runs.append((write.session_id, write.expected_sequence + 1, write.facts))
                if write.meta is not None:
                    metas.append(write.meta)
                if write.texts:
                    texts += _text_rows(write)
        self._write(runs, metas, texts)

    def delete(self, session_id: str) -> bool:
        """Delete everything that is stored for a session; return whether there was anything.

        Raises:
            sqlite3.Error: The session may or may not be deleted; call `abandon`, later `reopen`.
        """
        db, tails = self._db, dict(self.tails.by_session)
        found = session_id in tails
        with self._transaction():
            # Journal rows contain facts of several sessions, so the facts of this session cannot
            # be deleted there. Sorting all tails removes every row that is not damaged.
            self._write_segments(tails)
            for statement in _DELETE_SESSION:
                found = db.execute(statement, (session_id,)).rowcount > 0 or found
            if session_id in self.damaged:
                self._clear_damage(session_id)
                found = True
        self.tails.remove(tails)
        self._last.pop(session_id, None)
        self._chain.pop(session_id, None)
        self.damaged.pop(session_id, None)
        self.empty_log()
        return found

    def empty_log(self) -> None:
        """Empty the write-ahead log, because its pages still contain deleted content.

        If a reader is using the log, it is not emptied and `has_old_log` remains set.

        Raises:
            sqlite3.Error: The log was not emptied; call `abandon`, later `reopen`.
        """
        self.has_old_log = True
        zero_free_pages(self._db)
        self.has_old_log = not truncate_log(self._db)

    def note_removal(self, name: str, note: str | None) -> None:
        """Store the note of a removal, or delete it if `note` is `None`.

        Raises:
            sqlite3.Error: The change may or may not be stored; call `abandon`, later `reopen`.
        """
        with self._transaction():
            change_removal(self._db, name, note)

    def save(self, session_id: str, name: str, sequence: int, data: bytes) -> None:
        """Store a model, unless a newer one is stored.

        Raises:
            SequenceConflict: The model covers more facts than the session has; nothing changed.
            sqlite3.Error: The model may or may not be stored; call `abandon`, later `reopen`.
        """
        last = self.last_of(session_id)
        if not 0 < sequence <= last:
            raise SequenceConflict(session_id, sequence, last)
        self._db.execute(_UPSERT_MODEL, (session_id, name, sequence, crc32(data), data))
        self.bytes_since_checkpoint += len(data)

    def _data_version(self) -> int:
        """Return a number that changes when another process writes."""
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            raise sqlite3.OperationalError("the ledger's file is not open")
        return self._connection

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                with suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
            raise

    def _last_intact(self, session_id: str) -> int:
        """Return the same as `last_of`, if the session has no damaged facts.

        Raises:
            StoreDamaged: The session has damaged facts, so new ones cannot follow them.
        """
        if session_id in self.damaged:
            raise StoreDamaged(session_id, self.damaged[session_id])
        return self.last_of(session_id)

    def _write(self, runs: list[Run], metas: list[SessionMeta], texts: list[TextRow]) -> None:
        """Write one journal row, the changed rows of sessions, and the tails that are due."""
        if not runs and not metas and not texts:
            return
        due = self.tails.due()
        runs, heads, body = _journal_row(runs)
        row = self._next_row
        record = (row, heads, body, crc32(body, crc32(heads)))
        if runs and not metas and not texts and not due:
            # A single statement is a transaction by itself; BEGIN and COMMIT would be extra steps.
            self._db.execute(_INSERT_JOURNAL, record)
        else:
            with self._transaction():
                if runs:
                    self._db.execute(_INSERT_JOURNAL, record)
                if metas:
                    self._db.execute(_UPSERT_SESSIONS, (_session_rows(metas),))
                if texts:
                    self._db.executemany(_REPLACE_TEXT, texts)
                if due:
                    self._write_segments(due)
        self._next_row = row + 1
        self.bytes_since_checkpoint += len(body)
        if texts:
            self.bytes_since_checkpoint += 2 * sum(len(row[2]) for row in texts)
        if due:
            self.tails.remove(due)
        self.tails.add(runs, row)
        # Sessions with a tail stay in the cache: `last_of` looks up the segments only, and would
        # return a sequence that is too small for them.
        if len(self._last) > _MAX_KNOWN:
            self._last = {key: tail.last for key, tail in self.tails.by_session.items()}

    def _write_segments(self, chosen: dict[str, Tail]) -> None:
        """Write tails as segments and drop the journal rows that no other tail needs."""
        heads, bodies, offset = [], [], 1
        for session_id, tail in chosen.items():
            body = b"\n".join(tail.facts)
            head_row = (session_id, tail.first, tail.last, crc32(body), offset, len(body))
            heads.append((*head_row, self._extend_chain(session_id, tail)))
            bodies.append(body)
            offset += len(body)
        if heads:
            self._db.execute(_INSERT_SEGMENTS, (_json(heads), b"".join(bodies)))
        oldest = self.tails.oldest_row_without(chosen, self._next_row)
        self._db.execute(_DELETE_JOURNAL, (oldest, _json(self._damaged_rows)))
        self.bytes_since_checkpoint += offset

    def _extend_chain(self, session_id: str, tail: Tail) -> str | None:
        """Extend the hash chain of a session by a tail.

        Returns:
            The hash of the last fact of the tail, in hex; `None` if the hash before the tail is
            not stored.
        """
        if session_id in self._chain:
            before = self._chain[session_id]
        elif tail.first == 1:
            row = self._db.execute(_EPOCH, (session_id,)).fetchone()
            before = genesis(session_id, row[0] if row else "")
        else:
            row = self._db.execute(_LAST_HEAD, (session_id,)).fetchone()
            before = bytes.fromhex(row[0]) if row and row[0] else None
        if len(self._chain) >= _MAX_KNOWN:
            self._chain.clear()
        after = self._chain[session_id] = None if before is None else head(before, tail.facts)
        return None if after is None else after.hex()

    def _clear_damage(self, session_id: str) -> None:
        """Remove a session from the damaged rows, so that a new session can have its id."""
        for row in tuple(self._damaged_rows):
            select = "SELECT heads FROM journal WHERE id = ?"
            heads = _heads_decoder.decode(self._db.execute(select, (row,)).fetchone()[0])
            others = [head for head in heads if head[0] != session_id]
            if others:
                # A checksum is never negative, so the row is still damaged for its other sessions.
                update = "UPDATE journal SET heads = ?, crc = -1 WHERE id = ?"
                self._db.execute(update, (msgspec.json.encode(others), row))
            else:
                self._db.execute("DELETE FROM journal WHERE id = ?", (row,))
                self._damaged_rows.remove(row)

    def _load(self) -> Tails:
        self._connection = self._connect(self.path)
        try:
            return self._read_tails()
        except BaseException:
            self.abandon()
            raise

    def _read_tails(self) -> Tails:
        """Build the tails from the journal, and find the damaged sessions."""
        tails = Tails()
        self.damaged, self._damaged_rows, self._last, self._next_row = {}, [], {}, 1
        self._seen_version = self._data_version()
        # The open statement keeps one read transaction, so `last_of` sees the same state.
        for row, heads, facts, crc in self._db.execute(_JOURNAL):
            self._next_row = row + 1
            is_intact = crc32(facts, crc32(heads)) == crc
            if not is_intact:
                self._damaged_rows.append(row)
            self._load_row(tails, row, self._runs_of(row, heads, facts), is_intact)
        return tails

    def _load_row(self, tails: Tails, row: int, runs: list[Run], is_intact: bool) -> None:
        for session_id, first, facts in runs:
            known = self.last_of(session_id)
            last = first + len(facts) - 1
            # `first > known + 1` is a gap: the facts before this run are missing. If the run were
            # added, the session would skip sequences.
            if not is_intact or first > known + 1:
                self.damaged.setdefault(session_id, known)
            elif last > known:
                # The first facts of the run may be in a segment already.
                tails.add([(session_id, known + 1, facts[known + 1 - first :])], row)
                self._last[session_id] = last

    def _runs_of(self, row: int, heads: bytes, facts: bytes) -> list[Run]:
        try:
            counts = _heads_decoder.decode(heads)
        except msgspec.DecodeError as error:
            raise StoreUnavailable(
                f"ledger {self.path}: row {row} of its journal is damaged, so its sessions are not "
                "known; restore the file from a backup"
            ) from error
        lines, start, runs = facts.split(b"\n"), 0, list[Run]()
        for session_id, first, count in counts:
            runs.append((session_id, first, lines[start : start + count]))
            start += count
        return runs


def _journal_row(runs: list[Run]) -> tuple[list[Run], bytes, bytes]:
    """Return the runs with one line per fact, and the `heads` and `facts` of their journal row."""
    heads: list[tuple[str, int, int]] = []
    lines: list[bytes] = []
    for session_id, first, facts in runs:
        heads.append((session_id, first, len(facts)))
        lines += facts
    body = b"\n".join(lines)
    # With more line breaks than separators, a fact has one inside and would be read as two facts.
    if body.count(b"\n") >= max(1, len(lines)):
        runs = [(session_id, first, one_line(facts)) for session_id, first, facts in runs]
        body = b"\n".join([fact for _, _, facts in runs for fact in facts])
    return runs, msgspec.json.encode(heads), body


def _session_rows(metas: list[SessionMeta]) -> str:
    return _json([(m.id, m.owner, m.workflow, m.updated_at, m.active, m, m.pinned) for m in metas])


def _text_rows(append: SessionWrite) -> list[TextRow]:
    return [(append.session_id, one.turn_id, one.text, fold(one.text)) for one in append.texts]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
