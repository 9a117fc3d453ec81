"""A data set: a SQLite file, or CSV files imported into a private SQLite file.

Reading order: `errors`, `sql_guard`, `connection`, `schema`, this file, `csv_text`, `csv_import`.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from connection import Cell, Query, QueryLimits, Result
from csv_import import CsvImport
from errors import DataUnreadable
from schema import Schema, read_schema

SQLITE_HEADER = b"SQLite format 3\x00"
"""The first bytes of every SQLite file. Source: SQLite, "Database File Format", 1.3.1."""

CSV_SUFFIXES = frozenset({".csv", ".tsv", ".txt"})
"""File name endings of CSV files in a folder."""


class PrivateDirectory:
    """A directory that only this user can read; it is removed with its last reference."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="explorer-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Dataset:
    """Tables that can be queried but not changed."""

    def __init__(
        self,
        name: str,
        path: Path,
        private: PrivateDirectory | None = None,
        unread: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.name = name
        """The name that users see."""
        self.path = path
        """The SQLite file."""
        self.schema: Schema = read_schema(path)
        self.unread = unread
        """The files without a readable table, each with the reason."""
        self._private = private  # kept, so that it lives as long as this

    def query(
        self,
        sql: str,
        parameters: Mapping[str, Cell] | None = None,
        limits: QueryLimits | None = None,
    ) -> Query:
        """Return the checked statement; it has not run yet.

        Raises:
            StatementRefused: It is not a single reading statement.
        """
        return Query(self.path, sql, parameters, limits)

    async def ask(
        self,
        sql: str,
        parameters: Mapping[str, Cell] | None = None,
        limits: QueryLimits | None = None,
    ) -> Result:
        """Run the statement in a thread and return its rows.

        Raises:
            ExplorerError: As `Query.run` does.

        Cancel: safe; the query stops within a few milliseconds.
        """
        query = self.query(sql, parameters, limits)
        try:
            return await asyncio.to_thread(query.run)
        except asyncio.CancelledError:
            query.cancel()
            raise


def open_dataset(path: Path) -> Dataset:
    """Open a SQLite file, a CSV file, or a folder of CSV files (a table each). Blocks.

    Raises:
        DataUnreadable: `path` has no readable data.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in CSV_SUFFIXES)
        if not files:
            raise DataUnreadable(f"The folder {path} holds no CSV file.", "Name another one.")
        return dataset_of_csv(path.name, [(file.name, file) for file in files])
    if _read(path, len(SQLITE_HEADER)) == SQLITE_HEADER:
        return Dataset(path.stem, path)
    return dataset_of_csv(path.stem, [(path.name, _read(path))])


def dataset_of_csv(name: str, files: Sequence[tuple[str, bytes | Path]]) -> Dataset:
    """Import each CSV file into a table of a new private database. Blocks.

    The data set names the files that have no readable table.

    Raises:
        DataUnreadable: None of them has a table; nothing of the import stays on disk.
    """
    private = PrivateDirectory()
    path = private.path / "imported.sqlite"
    errors = []
    for file_name, content in files:
        try:
            _import(path, file_name, content)
        except DataUnreadable as error:
            errors.append((file_name, error))
    if errors and len(errors) == len(files):
        raise errors[0][1]
    unread = tuple((file_name, error.message) for file_name, error in errors)
    return Dataset(name, path, private, unread)


def _import(path: Path, file_name: str, content: bytes | Path) -> None:
    data = _read(content) if isinstance(content, Path) else content
    with CsvImport(path, table_name(file_name), data) as steps:
        while not steps.done:
            steps.step()


def dataset_of_sqlite(name: str, path: Path, private: PrivateDirectory) -> Dataset:
    """Open a SQLite file that was stored in a private directory.

    Raises:
        DataUnreadable: It is damaged.
    """
    dataset = Dataset(name, path, private)
    if not dataset.schema.tables:
        raise DataUnreadable(f"{name} holds no table.")
    return dataset


def table_name(file_name: str) -> str:
    """Return the name of a table for a file: `Seattle (2).csv` becomes `seattle_2`."""
    stem = re.sub(r"\.\w{1,5}$", "", Path(file_name.replace("\\", "/")).name)
    name = re.sub(r"\W+", "_", stem.lower()).strip("_")[:60]
    if not name or name.startswith("sqlite_"):
        return f"data_{name}".rstrip("_")
    return f"t_{name}" if name[0].isdigit() else name


def _read(path: Path, size: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise DataUnreadable(
            f"{path} cannot be read: {error.strerror or error}.",
            "Set EXPLORER_DATA to a CSV file, a SQLite file, or a folder of CSV files.",
        ) from error
