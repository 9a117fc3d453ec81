"""The list of sessions: its rows, its pages, and the texts of turns that are searched.

Those texts are derived from the facts, so they can be built again. A search compares *folded* text:
lower case, with the same number of characters.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

MAX_PAGE = 1000
"""Most rows of one `sessions` call: more than a person reads at once."""

MAX_TURN_TEXT = 32 << 10
"""Characters that are stored of one turn: ten pages."""

MAX_WORDS = 8
"""Words of one search; more are ignored."""

MAX_WORD = 64
"""Characters of a word that are compared."""

AROUND = 60
"""Characters that an excerpt shows on each side of the word."""


class SessionMeta(msgspec.Struct, frozen=True):
    """One row of the list of sessions: the properties of a session, without its facts."""

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
    """Turns on the branch that shows; a greeting that nobody has answered does not count."""
    last_sequence: int = 0
    """Filled in by the store from the facts; the value of a caller is ignored."""
    active: bool = False
    """A turn runs or waits, or an action is pending: it needs recovery after a crash."""
    pinned: bool = False
    """Its owner pinned it."""
    is_named: bool = False
    """Its owner chose `title`; otherwise it is the beginning of the first input."""
    failed: bool = False
    """The newest turn that has ended has failed."""

    @property
    def cursor(self) -> str:
        """The argument of `sessions(before=…)` for the page after this row."""
        return f"{self.updated_at}~{self.id}"


def split_cursor(before: str) -> tuple[str, str]:
    """Split a cursor into update time and id; never fails, since it comes from the wire."""
    updated_at, _, session_id = before.partition("~")
    return updated_at, session_id


def page_limit(limit: int) -> int:
    """Return a page size within 1 … `MAX_PAGE`."""
    return max(1, min(limit, MAX_PAGE))


class TurnText(msgspec.Struct, frozen=True):
    """The input and output of one turn, as text."""

    turn_id: str
    text: str


class Match(msgspec.Struct, frozen=True):
    """A session in which all words were found."""

    meta: SessionMeta
    turn_id: str | None = None
    """The turn with the first word that is not in the title."""
    excerpt: str = ""
    """The text around that word."""


class SearchPage(msgspec.Struct, frozen=True):
    """A page of a search."""

    matches: list[Match]
    next: str | None
    """The cursor at which the search continues; `None`: everything was searched."""


def fold(text: str) -> str:
    """Return a text in lower case, with the same number of characters."""
    if text.isascii():
        return text.lower()
    # Some characters have two in lower case (`İ`); they stay, so that positions are the same.
    return "".join(low if len(low := one.lower()) == 1 else one for one in text)


def words_of(query: str) -> list[str]:
    """Return the folded words of a search, at most `MAX_WORDS`."""
    return [fold(word[:MAX_WORD]) for word in query.split()[:MAX_WORDS]]


def missing_in(title: str, words: Sequence[str]) -> list[str]:
    """Return the words that are not in a title."""
    folded = fold(title)
    return [word for word in words if word not in folded]


def excerpt(text: str, word: str) -> str:
    """Return the text around a folded word, on one line; empty if it is not there."""
    at = fold(text).find(word)
    if at < 0:
        return ""
    start, end = max(0, at - AROUND), at + len(word) + AROUND
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"
