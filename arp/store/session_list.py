"""The list of sessions: its rows, its pages, and the search in the texts of turns.

The texts are derived from the facts, so they can be rebuilt. A search compares *folded* texts:
lower case, with the same number of characters.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

MAX_PAGE = 1000
"""Maximum number of rows that one `sessions` call returns: more than a person reads at once."""

MAX_TURN_TEXT = 32 << 10
"""Maximum number of characters that are stored for one turn: about ten pages."""

MAX_WORDS = 8
"""Maximum number of words of a search; more are ignored."""

MAX_WORD = 64
"""Number of characters of a word that are compared."""

AROUND = 60
"""Number of characters of an excerpt on each side of the word."""


class SessionMeta(msgspec.Struct, frozen=True):
    """One row of the list of sessions: the properties of a session, without its facts."""

    id: str
    epoch: str
    """Id of one lifetime of the session's log (protocol.md 2.3)."""
    owner: str
    workflow: str
    title: str
    created_at: str
    """RFC 3339 in UTC, always with the same number of digits, so that text order is time order."""
    updated_at: str
    """Time of the last update, in the format of `created_at`; the list is ordered by it."""
    turn_count: int = 0
    """Number of turns on the current branch; a greeting without an answer does not count."""
    last_sequence: int = 0
    """Sequence of the newest fact. The store sets it; the value of a caller is ignored."""
    active: bool = False
    """Whether a turn runs or waits, or an action is pending, so a crash needs recovery."""
    pinned: bool = False
    """Whether the owner pinned the session."""
    is_named: bool = False
    """Whether the owner chose `title`; otherwise it is the beginning of the first input."""
    failed: bool = False
    """Whether the newest turn that has ended failed."""

    @property
    def cursor(self) -> str:
        """Argument `before` of `sessions` for the page after this row."""
        return f"{self.updated_at}~{self.id}"


def split_cursor(before: str) -> tuple[str, str]:
    """Split a cursor into update time and session id.

    Never raises, since the cursor comes from the wire and may be any text.
    """
    updated_at, _, session_id = before.partition("~")
    return updated_at, session_id


def page_limit(limit: int) -> int:
    """Clamp a page size to 1 … `MAX_PAGE`."""
    return max(1, min(limit, MAX_PAGE))


class TurnText(msgspec.Struct, frozen=True):
    """The input and output of one turn, as text."""

    turn_id: str
    text: str


class Match(msgspec.Struct, frozen=True):
    """A session that has all words of a search."""

    meta: SessionMeta
    turn_id: str | None = None
    """Id of the turn that has the first word that is not in the title."""
    excerpt: str = ""
    """Text around that word."""


class SearchPage(msgspec.Struct, frozen=True):
    """One page of the results of a search."""

    matches: list[Match]
    next: str | None
    """Cursor of the next page; `None` if all sessions were searched."""


def fold(text: str) -> str:
    """Return a text in lower case, with the same number of characters."""
    if text.isascii():
        return text.lower()
    # Some characters, such as `İ`, have two characters as their lower case. They stay unchanged:
    # positions in the folded text must be valid in the original, from which excerpts are cut.
    return "".join(low if len(low := one.lower()) == 1 else one for one in text)


def words_of(query: str) -> list[str]:
    """Return the folded words of a search, at most `MAX_WORDS`."""
    return [fold(word[:MAX_WORD]) for word in query.split()[:MAX_WORDS]]


def missing_words(title: str, words: Sequence[str]) -> list[str]:
    """Return the folded words that a title does not contain."""
    folded = fold(title)
    return [word for word in words if word not in folded]


def excerpt(text: str, word: str) -> str:
    """Return the text around a folded word, on one line; empty if the word is not in the text."""
    position = fold(text).find(word)
    if position < 0:
        return ""
    start, end = max(0, position - AROUND), position + len(word) + AROUND
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"
