"""Finds the table, column or value that a word means.

Names are compared by their parts (`temp_max` is `temp` and `max`, `MilesPerGallon` is three), each
without its ending, and a part may be the beginning of the word (`temp` of `temperature`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from schema import Column, ColumnKind, Table

SAME_WORDS = {
    "maximum": "max",
    "minimum": "min",
    "average": "avg",
    "mean": "avg",
    "quantity": "qty",
    "rainfall": "precipitation",
    "revenue": "sales",
    "cost": "price",
    "mileage": "mpg",
}
"""Common abbreviations in the names of columns."""

EXACT = 100
"""The score of a phrase that equals the name."""

SHORTEST_BEGINNING = 4
"""Shortest beginning of a word that counts: `car` is not `carbon`."""


def words_of(text: str) -> list[str]:
    """Return the words of a name or a sentence; `camelCase` and `snake_case` are split."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text.replace("_", " "))
    return [word.lower() for word in re.findall(r"\w+", spaced)]


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Return a word in the singular, or the common word for it."""
    word = SAME_WORDS.get(word.lower(), word.lower())
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def related(left: str, right: str) -> bool:
    """Return whether two words mean the same: equal, or one is the beginning of the other."""
    left, right = stem(left), stem(right)
    if left == right:
        return True
    short, long = sorted((left, right), key=len)
    if not long.startswith(short):
        return False
    return len(short) >= SHORTEST_BEGINNING or (len(short) == 3 and len(long) <= 5)


def _resembles(word: str, other: str) -> bool:
    return len(word) >= 5 and difflib.SequenceMatcher(None, word, stem(other)).ratio() >= 0.8


def score(phrase: Sequence[str], name: str) -> int:
    """Return how well a phrase names a table or a column, from 0 (not at all) to `EXACT`."""
    wanted = [stem(word) for word in phrase]
    parts = [stem(part) for part in words_of(name)]
    if not wanted or not parts:
        return 0
    if wanted == parts or "".join(wanted) == "".join(parts):
        return EXACT
    if set(parts) <= set(wanted):
        return 80
    initials = "".join(part[0] for part in parts)
    if len(parts) > 2 and wanted == [initials]:
        return 70
    if all(any(related(word, part) for part in parts) for word in wanted):
        return 60
    if all(any(related(part, word) for word in wanted) for part in parts):
        return 50
    if all(any(_resembles(word, part) for part in parts) for word in wanted):
        return 40
    return 0


def unnamed(phrase: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the words of a phrase that match none of `names`."""
    if any(score(phrase, name) == EXACT for name in names):
        return []
    return [word for word in phrase if not any(score([word], name) for name in names)]


def columns_named(
    phrase: Sequence[str], table: Table, kinds: Iterable[ColumnKind] = ("number", "date", "text")
) -> list[Column]:
    """Return the columns that a phrase names best; several if they match equally well."""
    allowed = set(kinds)
    scored = [
        (score(phrase, column.name), column) for column in table.columns if column.kind in allowed
    ]
    best = max((points for points, _ in scored), default=0)
    return [column for points, column in scored if points == best and points > 0]


def value_named(word: str, table: Table) -> tuple[Column, str] | None:
    """Return the column and the value in it that a word names (`rainy` names `rain`)."""
    for column in table.of_kind("text"):
        for value in column.values:
            if value.casefold() == word.casefold():
                return column, value
    for column in table.of_kind("text"):
        for value in column.values:
            if len(value) > 2 and related(word, value):
                return column, value
    return None


def table_named(phrase: Sequence[str], tables: Sequence[Table]) -> Table | None:
    """Return the table that a phrase names best with all of its words, or `None`."""
    scored = [
        (score(phrase, table.name), table)
        for table in tables
        if len(phrase) <= len(words_of(table.name))
    ]
    best = max((points for points, _ in scored), default=0)
    return next((table for points, table in scored if points == best and points > 0), None)
