"""What is open now and what ended lately, bounded; what is older is counted, and stands in the log.

Theory of operation. Two dicts, each in order of arrival. What is open stays until it ends, so that
a long queue never pushes out what runs. When one of the two is full, its oldest entry leaves.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct, field


class Record(Struct, rename="camel", omit_defaults=True, kw_only=True):
    """Something with a beginning in the log; what is not known of it is left out."""

    first_sequence: int = 0
    """Of the fact that began it."""
    last_sequence: int = 0
    """Of the newest fact about it."""


T = TypeVar("T", bound=Record)


class Window(Struct, Generic[T], omit_defaults=True):
    """Entries by id: all that are open and the last that ended, up to a bound each."""

    open: dict[str, T] = field(default_factory=dict)
    closed: dict[str, T] = field(default_factory=dict)
    older: int = 0
    """How many left; one that comes back and leaves again counts again."""

    def get(self, key: str | None) -> T | None:
        """Return an entry that is still kept."""
        if key is None:
            return None
        found = self.open.get(key)
        return found if found is not None else self.closed.get(key)

    def begin(self, key: str, entry: T, most: int) -> None:
        """Add an open entry, or put it in the place of the open one with its id.

        Args:
            key: Its id.
            entry: What is kept of it.
            most: Open entries at once; the oldest leaves when there are more.
        """
        self.closed.pop(key, None)
        self.open[key] = entry
        self._trim(self.open, most)

    def end(self, key: str, most: int) -> None:
        """Close an open entry; `most` closed ones are kept."""
        entry = self.open.pop(key, None)
        if entry is not None:
            self.closed[key] = entry
            self._trim(self.closed, most)

    def reopen(self, key: str, most: int) -> None:
        """Open a closed entry again; `most` open ones are kept."""
        entry = self.closed.pop(key, None)
        if entry is not None:
            self.open[key] = entry
            self._trim(self.open, most)

    def entries(self) -> list[T]:
        """Return everything that is kept, in the order in which it began."""
        kept = [*self.closed.values(), *self.open.values()]
        return sorted(kept, key=lambda entry: entry.first_sequence)

    def _trim(self, entries: dict[str, T], most: int) -> None:
        if len(entries) > most:
            del entries[next(iter(entries))]
            self.older += 1


def keep(entries: list[T], entry: T, most: int) -> int:
    """Add to the end of a list that holds `most`; return how many left it, 0 or 1."""
    entries.append(entry)
    if len(entries) <= most:
        return 0
    del entries[0]
    return 1
