"""`JsonTable`: a JSON file with one list of rows, each with a key.

`JsonFile` locks the file, writes it durably and checks its content; this class finds and replaces
rows. Each kind of row has a class above this one, such as `ToolRegistry`, which has the rules for
the rows and raises the errors.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct, field

from arp.tools.registry.json_file import JsonFile

Row = TypeVar("Row", bound=Struct)
Result = TypeVar("Result")


class TableDocument(Struct, Generic[Row], frozen=True):
    """Content of the file of a table.

    A subclass gives `rows` its name in the file (`field(name=…)`), and may add fields and checks.
    """

    rows: list[Row] = field(default_factory=list)


class JsonTable(Generic[Row]):
    """Rows of a JSON file; changes are on disk when a method returns.

    Safe to use from threads, tasks and processes at the same time. Each method raises
    `DataFileDamaged` if the file cannot be read, which leaves the file as it is.

    Args:
        path: Path of the file.
        document: Type of the content of the file.
        key: Returns the key of a row.
        keep: Called with the rows after each change; returns the rows to store. `None` stores all.
    """

    def __init__(
        self,
        path: Path,
        document: type[TableDocument[Row]],
        key: Callable[[Row], str],
        keep: Callable[[list[Row]], list[Row]] | None = None,
    ) -> None:
        self._file = JsonFile(path, document)
        self._key = key
        self._keep = keep

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self._file.path

    def rows(self) -> list[Row]:
        """Return all rows, in the order of the file."""
        return list(self._file.read().rows)

    def find(self, key: str) -> Row | None:
        """Return the first row with a key; `None` if there is none."""
        return next((row for row in self._file.read().rows if self._key(row) == key), None)

    def change(
        self, make: Callable[[list[Row]], tuple[list[Row], Result]], durable: bool = True
    ) -> Result:
        """Replace the rows with the result of `make`, under the lock of the file.

        Args:
            make: Receives the rows, which it must not modify, and returns the new rows and a
                result. If it returns the same list, nothing is written. If it raises, the exception
                is passed on and nothing has changed.
            durable: Whether the change must survive a loss of power.

        Returns:
            The result of `make`.
        """

        def make_document(
            document: TableDocument[Row],
        ) -> tuple[TableDocument[Row], Result]:
            rows, result = make(document.rows)
            if rows is document.rows:
                return document, result
            kept = rows if self._keep is None else self._keep(rows)
            return msgspec.structs.replace(document, rows=kept), result

        return self._file.change(make_document, durable)

    def add(self, row: Row, replace: bool = False) -> bool:
        """Add a row at the end, or replace a row with the same key; return whether it is stored.

        Args:
            row: Row to add.
            replace: Whether to replace a row with the same key, at its position. If this is false
                and there is such a row, nothing is written.
        """

        def make(rows: list[Row]) -> tuple[list[Row], bool]:
            index = self._index(rows, self._key(row))
            if index is None:
                return [*rows, row], True
            if not replace:
                return rows, False
            return [*rows[:index], row, *rows[index + 1 :]], True

        return self.change(make)

    def update(self, key: str, change: Callable[[Row], Row], durable: bool = True) -> Row | None:
        """Apply `change` to the first row with a key, and return the new row.

        Args:
            key: Key of the row; if there is no such row, nothing is written.
            change: Receives the current row. If it returns an equal one, nothing is written. If it
                raises, the exception is passed on and nothing has changed.
            durable: Whether the change must survive a loss of power.

        Returns:
            The new row; `None` if there is no row with this key.
        """

        def make(rows: list[Row]) -> tuple[list[Row], Row | None]:
            index = self._index(rows, key)
            if index is None:
                return rows, None
            before = rows[index]
            after = change(before)
            if after == before:
                return rows, before
            return [*rows[:index], after, *rows[index + 1 :]], after

        return self.change(make, durable)

    def remove(self, key: str) -> list[Row]:
        """Remove all rows with a key, and return them. May be repeated."""

        def make(rows: list[Row]) -> tuple[list[Row], list[Row]]:
            removed = [row for row in rows if self._key(row) == key]
            rest = [row for row in rows if self._key(row) != key]
            return (rest if removed else rows), removed

        return self.change(make)

    def _index(self, rows: list[Row], key: str) -> int | None:
        return next((index for index, row in enumerate(rows) if self._key(row) == key), None)
