"""The content of a database: its tables, their columns, and typical values."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from connection import Cell, Query, QueryLimits, quote_name
from errors import ExplorerError, QueryFailed

ColumnKind: TypeAlias = Literal["number", "date", "text"]

SAMPLE_ROWS = 200
"""Number of rows that are examined for typical values."""

MAX_TABLES = 200
"""Most tables that are examined; of a larger schema, only a part is shown."""

MAX_KNOWN_VALUES = 30
"""Most different values of a text column that are listed."""

MAX_ROWS_FOR_VALUES = 200_000
"""Most rows of a table that is searched for the values of its columns."""

QUICK = QueryLimits(max_rows=2_000, timeout_s=1.0)
"""Limits of the queries about the schema, so that a huge file opens soon."""

_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:\d\d)?")


@dataclass(frozen=True)
class Column:
    """A column with typical values."""

    name: str
    declared: str
    """The type in the schema; may be empty."""
    kind: ColumnKind
    values: tuple[str, ...] = ()
    """All values, if it is a text column with few values."""


@dataclass(frozen=True)
class Table:
    """A table or a view."""

    name: str
    columns: tuple[Column, ...]
    row_count: int | None
    """`None` if counting would take too long, or if a view does not work."""

    def of_kind(self, kind: ColumnKind) -> tuple[Column, ...]:
        """Return the columns of this kind, in order."""
        return tuple(column for column in self.columns if column.kind == kind)

    def date_column(self) -> Column | None:
        """Return the first column of dates."""
        return next(iter(self.of_kind("date")), None)


@dataclass(frozen=True)
class Schema:
    """All tables of a database, by name."""

    tables: tuple[Table, ...]

    def table(self, name: str) -> Table | None:
        """Return the table of this name, ignoring case."""
        wanted = name.casefold()
        return next((table for table in self.tables if table.name.casefold() == wanted), None)


def read_schema(path: Path) -> Schema:
    """Return the content of the database at `path`. Blocks for at most about a second per table.

    Raises:
        ExplorerError: The file cannot be read as a database.
    """
    return Schema(tuple(_read_table(path, name) for name in _table_names(path)))


def _table_names(path: Path) -> list[str]:
    """Return the tables, without SQLite's own and those of a full-text index."""
    shadows: set[Cell] = set()
    with contextlib.suppress(QueryFailed):  # SQLite before 3.37 cannot list them
        listing = "SELECT name FROM pragma_table_list WHERE type = 'shadow'"
        shadows = {row[0] for row in Query(path, listing).run().rows}
    listing = (
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
        "AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
    )
    found = Query(path, listing).run().rows
    return [str(row[0]) for row in found if row[0] not in shadows][:MAX_TABLES]


def _read_table(path: Path, name: str) -> Table:
    listing = "SELECT name, type FROM pragma_table_xinfo(:name) WHERE hidden <> 1"
    described = _quietly(path, listing, {"name": name})
    sample = _quietly(path, f"SELECT * FROM {quote_name(name)} LIMIT {SAMPLE_ROWS}")
    counted = _quietly(path, f"SELECT count(*) FROM {quote_name(name)}")
    row_count = int(str(counted[0][0])) if counted else None
    columns = []
    for index, (column, declared) in enumerate(described):
        cells = [row[index] for row in sample if index < len(row) and row[index] is not None]
        kind = kind_of(cells, str(declared))
        values = _known_values(path, name, str(column)) if _has_few(kind, cells, row_count) else ()
        columns.append(Column(str(column), str(declared), kind, values))
    return Table(name, tuple(columns), row_count)


def _quietly(
    path: Path, sql: str, parameters: Mapping[str, Cell] | None = None
) -> list[list[Cell]]:
    """Return rows; none if the table is too slow or does not work."""
    try:
        return Query(path, sql, parameters, QUICK).run().rows
    except ExplorerError:
        return []


def kind_of(cells: list[Cell], declared: str) -> ColumnKind:
    """Return the kind of the values; without values, the declared type decides."""
    if not cells:
        return "number" if re.search("INT|REAL|FLOA|DOUB|NUM|DEC", declared.upper()) else "text"
    if all(isinstance(cell, (int, float)) for cell in cells):
        return "number"
    if all(isinstance(cell, str) and _ISO_DATE.fullmatch(cell) for cell in cells):
        return "date"
    return "text"


def _has_few(kind: ColumnKind, cells: list[Cell], row_count: int | None) -> bool:
    small = row_count is not None and row_count <= MAX_ROWS_FOR_VALUES
    return kind == "text" and small and 0 < len(set(cells)) <= MAX_KNOWN_VALUES


def _known_values(path: Path, table: str, column: str) -> tuple[str, ...]:
    name = quote_name(column)
    rows = _quietly(
        path,
        f"SELECT DISTINCT {name} FROM {quote_name(table)} WHERE {name} IS NOT NULL "
        f"LIMIT {MAX_KNOWN_VALUES + 1}",
    )
    return tuple(str(row[0]) for row in rows) if len(rows) <= MAX_KNOWN_VALUES else ()
