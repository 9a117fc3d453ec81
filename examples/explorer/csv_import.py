"""Imports a CSV file into a table step by step, so that the user can watch and stop it.

Two passes over the rows: the first finds out what each column is (all cells count, not only the
first ones), the second stores them. It is one transaction: a failed import leaves nothing.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from cell_kinds import CellKind, ColumnGuess
from connection import quote_name
from csv_text import CsvText, read_csv_text
from errors import DataUnreadable

ROWS_PER_STEP = 5_000
"""Rows of one step: about 20 ms. After it, progress is shown and a cancel takes effect."""


class CsvImport:
    """The import of one CSV file into one table; call `step` until `done`.

    Use it in `with`: the exit closes the database and undoes an unfinished import.
    """

    def __init__(self, path: Path, table: str, content: bytes) -> None:
        self.table = table
        self.csv: CsvText = read_csv_text(content)
        self.rows_seen = 0
        """Rows of the first pass."""
        self.rows_stored = 0
        self.uneven_rows = 0
        """Rows that were filled up or cut because their number of cells was wrong."""
        self.done = False
        self._guesses = [ColumnGuess(self.csv.delimiter) for _ in self.csv.columns]
        self._kinds: list[CellKind] = []
        self._records = self.csv.records()
        self._connection = _writable(path)

    def __enter__(self) -> CsvImport:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def step(self) -> None:
        """Read or store the next `ROWS_PER_STEP` rows. Blocks: call it in a thread.

        Raises:
            DataUnreadable: A row cannot be read; nothing has been stored.
        """
        records = list(itertools.islice(self._records, ROWS_PER_STEP))
        if not self._kinds:
            self._look(records)
        else:
            self._store(records)

    @property
    def storing(self) -> bool:
        """Whether the second pass has begun."""
        return bool(self._kinds)

    def _look(self, records: list[list[str]]) -> None:
        if not records:
            self._begin_storing()
            return
        self.rows_seen += len(records)
        for guess, cells in zip(self._guesses, self._columns_of(records), strict=False):
            guess.see(cells)

    def _columns_of(self, records: list[list[str]]) -> Iterator[tuple[str, ...]]:
        return itertools.zip_longest(*records, fillvalue="")

    def _begin_storing(self) -> None:
        self._kinds = [guess.kind() for guess in self._guesses]
        self._records = self.csv.records()
        columns = ", ".join(
            f"{quote_name(name)} {kind.declared}"
            for name, kind in zip(self.csv.columns, self._kinds, strict=True)
        )
        try:
            self._connection.execute("BEGIN")
            self._connection.execute(f"CREATE TABLE {quote_name(self.table)} ({columns})")
        except sqlite3.Error as error:
            raise DataUnreadable(f"No table can be made of it: {error}.") from error

    def _store(self, records: list[list[str]]) -> None:
        if not records:
            self._connection.execute("COMMIT")
            self.done = True
            return
        marks = ", ".join("?" * len(self._kinds))
        insert = f"INSERT INTO {quote_name(self.table)} VALUES ({marks})"
        try:
            self._connection.executemany(insert, map(self._row, records))
        except (sqlite3.Error, UnicodeEncodeError) as error:
            raise DataUnreadable(f"A row cannot be stored: {error}.") from error
        self.rows_stored += len(records)

    def _row(self, record: list[str]) -> list[str | None]:
        width = len(self._kinds)
        if len(record) != width:
            self.uneven_rows += 1
            record = [*record[:width], *[""] * (width - len(record))]
        return [kind.value(cell) for kind, cell in zip(self._kinds, record, strict=True)]


def _writable(path: Path) -> sqlite3.Connection:
    """Open the private database; nothing is synced, because it need not survive a crash."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    return connection
