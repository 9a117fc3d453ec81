"""The texts of a session, one a turn, which search looks through.

It is made from the facts and kept beside them: whoever has the facts can make it again. Search
compares *folded* text, in which case does not count and every character stands where it stood.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arp.store.session_meta import SessionMeta

MAX_TURN_TEXT = 32 << 10
"""Characters that are kept of one turn: ten pages."""

MAX_WORDS = 8
"""Of one search; more are passed over."""

MAX_WORD = 64
"""Characters of a word that count."""

AROUND = 60
"""Characters that an excerpt shows on each side of what was found."""


class TurnText(msgspec.Struct, frozen=True):
    """The input and output of one turn, as text."""

    turn_id: str
    text: str


class Match(msgspec.Struct, frozen=True):
    """A session in which everything was found that was looked for."""

    meta: SessionMeta
    turn_id: str | None = None
    """Where the first word stands that is not in the title."""
    excerpt: str = ""
    """What stands around it."""


class SearchPage(msgspec.Struct, frozen=True):
    """A page of a search."""

    matches: list[Match]
    next: str | None
    """Where the search goes on; `None`: everything was looked through."""


def fold(text: str) -> str:
    """Return a text without case, with the same number of characters."""
    if text.isascii():
        return text.lower()
    return "".join(low if len(low := one.lower()) == 1 else one for one in text)


def words_of(query: str) -> list[str]:
    """Return the words of a search, folded: at most eight."""
    return [fold(word[:MAX_WORD]) for word in query.split()[:MAX_WORDS]]


def missing_in(title: str, words: Sequence[str]) -> list[str]:
    """Return the words that a title does not have."""
    folded = fold(title)
    return [word for word in words if word not in folded]


def excerpt(text: str, word: str) -> str:
    """Return what stands around a folded word, on one line; empty if it is not there."""
    at = fold(text).find(word)
    if at < 0:
        return ""
    start, end = max(0, at - AROUND), at + len(word) + AROUND
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"
