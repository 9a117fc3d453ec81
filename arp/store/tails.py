"""Facts that are in the journal and not yet in a segment, kept in memory by session.

A tail only grows, and it is removed only after its segment is committed. So another thread may get
a tail (`Tails.get`) and slice its `facts` without a lock. Read the tail first and the file
afterwards; in the other order, facts that are sorted in between would be missed.
"""

from __future__ import annotations

from typing import Final, TypeAlias

JOURNAL_BYTES: Final = 16 * 2**20
"""Bytes of facts that the journal may have, from the row of the oldest tail to the end.

Under full load, half of these facts are in memory. With 500 busy sessions, segments then have about
100 facts each. Opening a file with such a journal takes 50 ms.
"""

SPILL_BYTES: Final = 256 * 2**10
"""Bytes to sort at a time: about 2 ms of writing. A tail of this size is sorted too."""

Run: TypeAlias = tuple[str, int, list[bytes]]
"""Consecutive facts of a session: session id, sequence of the first fact, facts."""


class Tail:
    """The newest facts of one session, without gaps."""

    __slots__ = ("facts", "first", "row", "size", "start")

    def __init__(self, first: int, row: int, start: int) -> None:
        self.first = first
        """Sequence of `facts[0]`."""
        self.row = row
        """Id of the journal row that contains `facts[0]`; later facts are in later rows."""
        self.start = start
        """Total bytes of facts in the journal before that row."""
        self.size = 0
        """Total bytes of `facts`."""
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
        """Total bytes of all facts that were added, including those of removed tails."""
        self._full: dict[str, None] = {}
        """Ids of sessions with a tail of at least `SPILL_BYTES`, in order."""

    def get(self, session_id: str) -> Tail | None:
        """Return the tail of a session, or `None`. Safe in every thread."""
        return self.by_session.get(session_id)

    def add(self, runs: list[Run], row: int) -> None:
        """Append facts to the tails, after they are durable in the journal row `row`."""
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
        """Return the tails to sort now.

        These are the full tails, and the oldest ones if the journal is too long.
        """
        chosen: dict[str, Tail] = {}
        for session_id in self._full:
            chosen[session_id] = self.by_session[session_id]
        oldest = next(iter(self.by_session.values()), None)
        if oldest is not None and self._written - oldest.start > JOURNAL_BYTES:
            # Journal rows are deleted from the oldest on, so the oldest tails must go first.
            size = 0
            for session_id, tail in self.by_session.items():
                chosen[session_id] = tail
                size += tail.size
                if size >= SPILL_BYTES:
                    break
        return chosen

    def oldest_row_without(self, chosen: dict[str, Tail], default: int) -> int:
        """Return the oldest journal row that tails other than `chosen` need, or `default`."""
        rows = (tail.row for key, tail in self.by_session.items() if key not in chosen)
        return next(rows, default)

    def remove(self, chosen: dict[str, Tail]) -> None:
        """Remove tails after their segments are committed."""
        for session_id in chosen:
            del self.by_session[session_id]
            self._full.pop(session_id, None)
