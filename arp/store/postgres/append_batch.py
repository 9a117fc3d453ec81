"""The appends of several calls as the parameters of one statement, and their refusals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

import msgspec

from arp.store.batch import merge_units, refuse_units
from arp.store.errors import InvalidWrite, SequenceConflict, SessionMoved, StoreError
from arp.store.journal import AppendCall
from arp.store.session_list import fold
from arp.store.store import Refusals, SessionWrite, one_line

APPEND: Final = (
    "SELECT unit, session, reason, expected, actual FROM arp_append_v1(%s::jsonb, %b::bytea)"
)
"""Appends a batch; `sql/001_ledger.sql` describes the parameters and the rows."""

ROW_BYTES: Final = 256 * 2**10
"""Bytes of facts at which a row of `arp_fact` ends; more facts go into further rows.

A reader that wants the last fact of a row must read all of the row.
"""

MAX_KEY_BYTES: Final = 1000
"""Maximum length of an id or an owner in UTF-8. An index entry must have less than 2,700 bytes."""

MAX_TIME_BYTES: Final = 200
"""Maximum length of the update time of a session in UTF-8; an index has it with owner and id."""

RefusalRow: TypeAlias = tuple[int, str, str, int, int]
"""Row that `APPEND` returns: unit, session, reason, expected and actual sequence."""


class _WriteItem(msgspec.Struct, frozen=True, gc=False):
    unit: int
    session: int
    expected: int
    facts: int
    fence: int


class _FactsItem(msgspec.Struct, frozen=True, gc=False):
    unit: int
    session: int
    first: int
    last: int
    crc: int
    start: int
    length: int


class _RowItem(msgspec.Struct, frozen=True, gc=False):
    unit: int
    session: int
    number: int
    owner: str
    workflow: str
    updated_at: str
    active: bool
    pinned: bool
    start: int
    length: int


class _TextItem(msgspec.Struct, frozen=True, gc=False):
    unit: int
    session: int
    number: int
    turn: int
    turn_length: int
    start: int
    length: int
    folded: int
    folded_length: int


class _Unit(NamedTuple):
    """Writes of a call that are stored together or not at all."""

    call: AppendCall
    writes: list[SessionWrite]


class AppendBatch:
    """The writes of several calls, in order.

    Writes that are refused already, and the writes of their units, are left out.

    Args:
        calls: The calls; `apply_refusals` adds to their `refused`.
        lock_ms: Maximum time to wait for each lock, in milliseconds; `None` means the default of
            the function in SQL.
    """

    def __init__(self, calls: Sequence[AppendCall], lock_ms: int | None = None) -> None:
        self._lock_ms = lock_ms
        self._units = [unit for call in calls for unit in _units(call)]
        writes = (write for unit in self._units for write in unit.writes)
        self._sessions = sorted({write.session_id for write in writes})
        self._positions = {name: number for number, name in enumerate(self._sessions, 1)}
        self._pieces: list[bytes] = []
        self._length = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to store."""
        return not self._units

    def parameters(self) -> tuple[str, bytes]:
        """Return the parameters of `APPEND`."""
        self._pieces, self._length = [], 0
        writes: list[_WriteItem] = []
        facts: list[_FactsItem] = []
        rows: list[_RowItem] = []
        texts: list[_TextItem] = []
        for unit, (_, unit_writes) in enumerate(self._units, 1):
            for write in unit_writes:
                session = self._positions[write.session_id]
                expected = write.expected_sequence
                count = len(write.facts)
                writes.append(_WriteItem(unit, session, expected, count, write.fence))
                if count:
                    facts += self._fact_rows(unit, session, write)
                if write.meta is not None:
                    rows.append(self._session_row(unit, session, len(writes), write))
                if write.texts:
                    texts += self._text_rows(unit, session, write, len(texts))
        batch: dict[str, object] = {
            "sessions": self._sessions,
            "writes": writes,
            "facts": facts,
        }
        if rows:
            batch["rows"] = rows
        if texts:
            batch["texts"] = texts
        if self._lock_ms is not None:
            batch["lock_ms"] = self._lock_ms
        return msgspec.json.encode(batch).decode(), b"".join(self._pieces)

    def apply_refusals(self, rows: Sequence[RefusalRow]) -> None:
        """Add the refused units to `refused` of their calls."""
        for number, session_id, reason, expected, actual in rows:
            call, writes = self._units[number - 1]
            error: StoreError = (
                SessionMoved(session_id)
                if reason == "fence"
                else SequenceConflict(session_id, expected, actual)
            )
            for write in writes:
                call.refused[write.session_id] = error

    def stored(self) -> Iterator[tuple[str, int]]:
        """Yield the session and the new last sequence of each stored write, in order."""
        for call, writes in self._units:
            for write in writes:
                if write.session_id not in call.refused:
                    yield write.session_id, write.expected_sequence + len(write.facts)

    def _add(self, piece: bytes) -> tuple[int, int]:
        """Add bytes to the body and return their position and length."""
        start = self._length + 1
        self._pieces.append(piece)
        self._length += len(piece)
        return start, len(piece)

    def _fact_rows(self, unit: int, session: int, write: SessionWrite) -> Iterator[_FactsItem]:
        first = write.expected_sequence + 1
        for lines in _divided(one_line(write.facts)):
            body = b"\n".join(lines)
            last = first + len(lines) - 1
            yield _FactsItem(unit, session, first, last, crc32(body), *self._add(body))
            first = last + 1

    def _session_row(self, unit: int, session: int, number: int, write: SessionWrite) -> _RowItem:
        meta = write.meta
        assert meta is not None
        return _RowItem(
            unit,
            session,
            number,
            meta.owner,
            meta.workflow,
            meta.updated_at,
            meta.active,
            meta.pinned,
            *self._add(msgspec.json.encode(meta)),
        )

    def _text_rows(
        self, unit: int, session: int, write: SessionWrite, before: int
    ) -> Iterator[_TextItem]:
        for number, one in enumerate(write.texts, before + 1):
            turn = self._add(one.turn_id.encode())
            text = self._add(one.text.encode())
            folded = self._add(fold(one.text).encode())
            yield _TextItem(unit, session, number, *turn, *text, *folded)


def split_call(call: AppendCall) -> Iterator[AppendCall]:
    """Yield one call for each unit that is not refused; all share the `refused` of `call`."""
    for _, writes in _units(call):
        names = frozenset(write.session_id for write in writes)
        yield AppendCall(tuple(writes), (names,), call.refused)


def _units(call: AppendCall) -> list[_Unit]:
    """Return the units of a call that are not refused."""
    refuse_units(call.refused, call.together)
    name_of = {
        session_id: f"\n{number}"  # not printable, so no session has this id
        for number, unit in enumerate(merge_units(call.together))
        for session_id in unit
    }
    found: dict[str, _Unit] = {}
    for write in call.batch:
        session_id = write.session_id
        if session_id not in call.refused:
            name = name_of.get(session_id, session_id)
            found.setdefault(name, _Unit(call, [])).writes.append(write)
    return list(found.values())


def _divided(facts: list[bytes]) -> Iterator[list[bytes]]:
    """Divide facts into rows of about `ROW_BYTES`."""
    size, start = 0, 0
    for index, fact in enumerate(facts):
        size += len(fact)
        if size >= ROW_BYTES:
            yield facts[start : index + 1]
            size, start = 0, index + 1
    if start < len(facts):
        yield facts[start:]


def refuse_long_keys(batch: Sequence[SessionWrite], refused: Refusals) -> None:
    """Refuse sessions with an id, owner, update time or turn id that is too long for an index."""
    for write in batch:
        if write.session_id in refused:
            continue
        keys = [write.session_id, *(one.turn_id for one in write.texts)]
        time = ""
        if write.meta is not None:
            keys.append(write.meta.owner)
            time = write.meta.updated_at
        if any(map(is_long_key, keys)) or len(time.encode()) > MAX_TIME_BYTES:
            refused[write.session_id] = InvalidWrite(
                f"session {write.session_id:.80}: its id, its owner or the id of a turn has more "
                f"than {MAX_KEY_BYTES} bytes, or its update time more than {MAX_TIME_BYTES}"
            )


def is_long_key(key: str) -> bool:
    """Return whether a text is too long for an index."""
    # A character has at most four bytes.
    return len(key) > MAX_KEY_BYTES // 4 and len(key.encode()) > MAX_KEY_BYTES
