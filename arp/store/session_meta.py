"""The row of a session in lists, and the pages of such rows."""

from __future__ import annotations

import msgspec

MAX_PAGE = 1000
"""Most rows of one `sessions` call: a page that a person can still be shown at once."""


class SessionMeta(msgspec.Struct, frozen=True):
    """One row of the list of sessions: what is known about a session without reading its facts."""

    id: str
    epoch: str
    """Names one life of the session's log (protocol.md 2.3)."""
    owner: str
    workflow: str
    title: str
    created_at: str
    """RFC 3339, UTC, always with the same number of digits, so that texts sort as times do."""
    updated_at: str
    """As `created_at`; the list is ordered by it."""
    turn_count: int = 0
    last_sequence: int = 0
    """Filled in by the store from the facts; what a caller writes here is not looked at."""
    active: bool = False
    """A turn runs or waits, or an action is pending: to be looked after when a crash is over."""
    pinned: bool = False
    """Its owner wants it at hand."""
    is_named: bool = False
    """`title` is what its owner called it, not the beginning of what was said."""

    @property
    def cursor(self) -> str:
        """What `sessions(before=…)` takes to go on behind this row."""
        return f"{self.updated_at}~{self.id}"


def split_cursor(before: str) -> tuple[str, str]:
    """Take a cursor apart into update time and id; never fails, since it comes from the wire."""
    updated_at, _, session_id = before.partition("~")
    return updated_at, session_id


def page_limit(limit: int) -> int:
    """Bring a page size into 1 … `MAX_PAGE`."""
    return max(1, min(limit, MAX_PAGE))
