"""The kinds of CSV columns, and their types in SQLite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

NO_VALUE = frozenset({"", "na", "n/a", "#n/a", "null", "nan", "none", "-"})
"""Cells without a value in columns of numbers and dates; in text only the empty cell is."""


@dataclass(frozen=True)
class CellKind:
    """A kind of column: how to read all of its cells."""

    name: str
    declared: str
    """The type in SQLite."""
    pattern: re.Pattern[str]
    convert: Callable[[str], str] | None = None
    """Converts a cell for SQLite; `None` if SQLite reads the text directly."""

    def fits(self, values: Iterable[str]) -> bool:
        """Return whether every value can be read in this way."""
        return all(map(self.pattern.fullmatch, values))

    def value(self, cell: str) -> str | None:
        """Return the value to store for a cell."""
        if self.declared == "TEXT" and self.name == "text":
            return cell if cell.strip() else None
        plain = cell.strip()
        if plain.lower() in NO_VALUE:
            return None
        return self.convert(plain) if self.convert else plain


_TIME = r"([ T]\d{1,2}:\d\d(:\d\d(\.\d+)?)?)?"
_DAY = r"(0?[1-9]|[12]\d|3[01])"
_MONTH = r"(0?[1-9]|1[0-2])"


def _iso(year: int, month: int, day: int) -> Callable[[str], str]:
    """Return a conversion to ISO dates; the numbers are the positions of the parts."""

    def convert(cell: str) -> str:
        date, separator, time = cell.replace("T", " ").partition(" ")
        parts = re.split(r"[-/.]", date)
        hours = f" {time:0>5}" if separator and time[1:2] == ":" else separator + time
        return f"{parts[year]}-{parts[month]:0>2}-{parts[day]:0>2}{hours}"

    return convert


def _kind(
    name: str, declared: str, pattern: str, convert: Callable[[str], str] | None = None
) -> CellKind:
    return CellKind(name, declared, re.compile(pattern, re.ASCII | re.DOTALL), convert)


TEXT = _kind("text", "TEXT", ".*")
"""The kind of a column that has no other kind; every cell fits."""

KINDS = (
    # A number with leading zeros is a code (a postcode, say) and stays text.
    _kind("integer", "INTEGER", r"[+-]?(0|[1-9]\d{0,17})"),
    _kind("real", "REAL", r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d{1,2})?"),
    _kind(
        "grouped",
        "REAL",
        r"[+-]?(0|[1-9]\d*|[1-9]\d{0,2}(,\d{3})+)(\.\d+)?",
        lambda cell: cell.replace(",", ""),
    ),
    _kind(
        "decimal comma",
        "REAL",
        r"[+-]?(0|[1-9]\d*|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?",
        lambda cell: cell.replace(".", "").replace(",", "."),
    ),
    _kind("date", "TEXT", rf"\d{{4}}-{_MONTH}-{_DAY}{_TIME}(Z|[+-]\d\d:\d\d)?", _iso(0, 1, 2)),
    _kind("year first", "TEXT", rf"\d{{4}}[/.]{_MONTH}[/.]{_DAY}{_TIME}", _iso(0, 1, 2)),
    _kind("dotted", "TEXT", rf"{_DAY}\.{_MONTH}\.\d{{4}}{_TIME}", _iso(2, 1, 0)),
    _kind("day first", "TEXT", rf"{_DAY}[/-]{_MONTH}[/-]\d{{4}}{_TIME}", _iso(2, 1, 0)),
    _kind("month first", "TEXT", rf"{_MONTH}[/-]{_DAY}[/-]\d{{4}}{_TIME}", _iso(2, 0, 1)),
)
"""The kinds in the order in which they are tried; the first that all cells fit is chosen."""


class ColumnGuess:
    """Finds the kind of a column, cell by cell."""

    def __init__(self, delimiter: str) -> None:
        without = "grouped" if delimiter in ";\t" else "decimal comma"
        self._possible = [kind for kind in KINDS if kind.name != without]
        self._seen = False

    def see(self, cells: Iterable[str]) -> None:
        """Remove every kind that one of the cells does not fit."""
        if not self._possible:
            return
        values = {cell.strip() for cell in set(cells)}
        values = {value for value in values if value.lower() not in NO_VALUE}
        if values:
            self._seen = True
            self._possible = [kind for kind in self._possible if kind.fits(values)]

    def kind(self) -> CellKind:
        """Return the best kind that is left; dates that can be read in two ways stay text."""
        names = {kind.name for kind in self._possible}
        if not self._seen or not self._possible or names == {"day first", "month first"}:
            return TEXT
        return self._possible[0]
