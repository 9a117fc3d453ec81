"""Finds the rows that differ between two tables: changed, added, removed."""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from connection import Cell, Result
from errors import ExplorerError

Row: TypeAlias = tuple[Cell, ...]

KEY_NAMES = ("id", "key", "code", "uuid", "number", "name", "date", "time")
"""Names, or endings of names, of columns that often identify rows."""

MAX_KEY_COLUMNS = 8
"""Number of columns that are tried as a key, alone and in pairs."""

MAX_ROWS_IN_DIFF = 200
"""Most changed rows to show; more are only counted."""


@dataclass(frozen=True)
class Differences:
    """The difference between two tables in their common columns."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    """The columns that identify rows; empty if complete rows were compared."""
    changed: tuple[tuple[Row, Row], ...]
    removed: tuple[Row, ...]
    added: tuple[Row, ...]
    only_old: tuple[str, ...]
    """Columns that only the old table has."""
    only_new: tuple[str, ...]

    @property
    def count(self) -> int:
        """The number of rows that differ."""
        return len(self.changed) + len(self.removed) + len(self.added)

    @property
    def sentence(self) -> str:
        """The difference in words."""
        if not self.count and not self.only_old and not self.only_new:
            return "Every row is the same."
        counts = (
            (len(self.changed), "changed"),
            (len(self.added), "added"),
            (len(self.removed), "removed"),
        )
        text = ", ".join(f"{count:,} {word}" for count, word in counts if count) or "no row differs"
        return f"{text[:1].upper()}{text[1:]}."


def compare_rows(old: Result, new: Result) -> Differences:
    """Return how `new` differs from `old`; rows are matched by a key that is found in the data.

    Raises:
        ExplorerError: The two have no column in common.
    """
    in_new = {name.casefold() for name in new.columns}
    in_old = {name.casefold() for name in old.columns}
    columns = tuple(name for name in old.columns if name.casefold() in in_new)
    if not columns:
        raise ExplorerError("The two tables have no column in common.", "Compare two versions.")
    old_rows, new_rows = _rows_of(old, columns), _rows_of(new, columns)
    key = find_key(columns, old_rows, new_rows)
    changed, removed, added = (
        _by_key(key, old_rows, new_rows) if key else _by_row(old_rows, new_rows)
    )
    return Differences(
        columns,
        tuple(columns[index] for index in key),
        tuple(changed),
        tuple(removed),
        tuple(added),
        tuple(name for name in old.columns if name.casefold() not in in_new),
        tuple(name for name in new.columns if name.casefold() not in in_old),
    )


def _rows_of(result: Result, columns: Sequence[str]) -> list[Row]:
    places = {name.casefold(): index for index, name in enumerate(result.columns)}
    wanted = [places[name.casefold()] for name in columns]
    return [tuple(row[index] for index in wanted) for row in result.rows]


def find_key(columns: Sequence[str], old: list[Row], new: list[Row]) -> tuple[int, ...]:
    """Return the columns that identify all rows in both tables by their values, or none.

    A column of fractions is never a key: its values differ by chance.
    """

    def rank(index: int) -> tuple[bool, int]:
        words = columns[index].casefold().replace("-", "_").split("_")
        return not any(word in KEY_NAMES for word in words), index

    usable = [index for index in range(len(columns)) if not _has_fractions(index, old)]
    usable = sorted(usable, key=rank)[:MAX_KEY_COLUMNS]
    for size in (1, 2):
        for key in itertools.combinations(usable, size):
            if _tells_apart(key, old) and _tells_apart(key, new):
                return key
    return ()


def _has_fractions(index: int, rows: list[Row]) -> bool:
    return any(isinstance(row[index], float) for row in rows)


def _tells_apart(key: tuple[int, ...], rows: list[Row]) -> bool:
    seen = {tuple(row[index] for index in key) for row in rows}
    return len(seen) == len(rows) and not any(None in values for values in seen)


def _by_key(
    key: tuple[int, ...], old: list[Row], new: list[Row]
) -> tuple[list[tuple[Row, Row]], list[Row], list[Row]]:
    def keyed(rows: list[Row]) -> dict[Row, Row]:
        return {tuple(row[index] for index in key): row for row in rows}

    before, after = keyed(old), keyed(new)
    changed = [
        (row, after[name]) for name, row in before.items() if name in after and row != after[name]
    ]
    removed = [row for name, row in before.items() if name not in after]
    added = [row for name, row in after.items() if name not in before]
    return changed, removed, added


def _by_row(old: list[Row], new: list[Row]) -> tuple[list[tuple[Row, Row]], list[Row], list[Row]]:
    before, after = Counter(old), Counter(new)
    return [], list((before - after).elements()), list((after - before).elements())


def as_texts(differences: Differences) -> tuple[str, str]:
    """Return the rows that differ, before and after, as two CSV texts for a diff."""
    changed = differences.changed[:MAX_ROWS_IN_DIFF]
    left = MAX_ROWS_IN_DIFF - len(changed)
    before = [old for old, _ in changed] + list(differences.removed[:left])
    after = [new for _, new in changed] + list(differences.added[:left])
    return _csv(differences.columns, before), _csv(differences.columns, after)


def _csv(columns: Sequence[str], rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
