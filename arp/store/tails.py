"""The facts that are in the journal and not yet in a segment, in memory by session.

A tail only grows, and is removed only after its segment is committed. So another thread may get one
(`Tails.get`) and slice its `facts` without a lock. To miss no fact, read the tail first and the
file afterwards.
"""

from __future__ import annotations

from typing import Final, TypeAlias

JOURNAL_BYTES: Final = 16 * 2**20
"""Bytes of facts in the journal from the oldest tail on; half of it is in memory under full load.

With 500 busy sessions segments have 100 facts each. It is read in 50 ms when a file is opened.
"""

SPILL_BYTES: Final = 256 * 2**10
"""Bytes that are sorted at a time, and the most of one session's tail: about 2 ms of writing."""

Run: TypeAlias = tuple[str, int, list[bytes]]
"""A session, the sequence of the first fact, the facts."""


class Tail:
    """The newest facts of one session, without gaps."""

    __slots__ = ("facts", "first", "row", "size", "start")

    def __init__(self, first: int, row: int, start: int) -> None:
        self.first = first
        """Sequence of `facts[0]`."""
        self.row = row
        """The journal row that holds `facts[0]`; the later facts are in later rows."""
        self.start = start
        """Bytes that the journal had received before that row."""
        self.size = 0
        """Bytes of all facts."""
        self.facts: list[bytes] = []

    @property
    def last(self) -> int:
        """Sequence of the newest fact."""
        return self.first + len(self.facts) - 1


class Tails:
    """The tails of all sessions, in the order of their oldest journal row."""

    def __init__(self) -> None:
        self.by_session: dict[str, Tail] = {}
        self._written = 0
        self._full: dict[str, None] = {}

    def get(self, session_id: str) -> Tail | None:
        """Return the session's tail; from any thread."""
        return self.by_session.get(session_id)

    def add(self, runs: list[Run], row: int) -> None:
        """Append facts to the tails that are durable in the journal row `row`."""
        by_session, start, written = self.by_session, self._written, 0
        for session_id, first, facts in runs:
            tail = by_session.get(session_id)
            if tail is None:
                tail = by_session[session_id] = Tail(first, row, start)
            if len(facts) == 1:
                tail.facts.append(facts[0])
                size = len(facts[0])
            else:
                tail.facts += facts
                size = sum(map(len, facts))
            written += size
            size += tail.size
            tail.size = size
            if size >= SPILL_BYTES:
                self._full[session_id] = None
        self._written += written

    def due(self) -> dict[str, Tail]:
        """Return the tails to sort now: full ones, and the oldest if the journal is too long."""
        chosen: dict[str, Tail] = {}
        for session_id in self._full:
            chosen[session_id] = self.by_session[session_id]
        oldest = next(iter(self.by_session.values()), None)
        if oldest is not None and self._written - oldest.start > JOURNAL_BYTES:
            size = 0
            for session_id, tail in self.by_session.items():
                chosen[session_id] = tail
                size += tail.size
                if size >= SPILL_BYTES:
                    break
        return chosen

    def oldest_row_without(self, chosen: dict[str, Tail], default: int) -> int:
        """Return the first journal row that is needed after `chosen` is sorted, or `default`."""
        rows = (tail.row for key, tail in self.by_session.items() if key not in chosen)
        return next(rows, default)

    def remove(self, chosen: dict[str, Tail]) -> None:
        """Remove tails whose segments are committed."""
        for session_id in chosen:
            del self.by_session[session_id]
            self._full.pop(session_id, None)
