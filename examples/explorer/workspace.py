"""The data of one session: its data sets, the current one, and the last query."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asks import ChartWish
from connection import Cell, Result
from dataset import Dataset, open_dataset
from errors import DataUnreadable, ExplorerError
from schema import Table
from sql_guard import tokens_of

DEFAULT_DATA = Path(__file__).parent / "data"
"""Daily weather in Seattle, and cars; see its README."""

_opened: dict[Path, tuple[int, Dataset]] = {}
"""The data sets that all sessions share (read-only), with the time of their last change."""


@dataclass(frozen=True)
class Question:
    """A checked statement, its values, and how to show its result."""

    dataset: Dataset
    sql: str
    parameters: Mapping[str, Cell]
    title: str = ""
    wish: ChartWish = "auto"
    focus: str = ""


@dataclass(frozen=True)
class Answer:
    """A question and its result; for `export` and `as a pie chart`."""

    question: Question
    result: Result


@dataclass
class Workspace:
    """The data sets of one session; the last one is the current one."""

    datasets: dict[str, Dataset]
    current: str
    last: Answer | None = None
    offers_export: bool = True
    """Whether to offer an export; not any more after the user has said no once."""

    @property
    def dataset(self) -> Dataset:
        """The current data set."""
        return self.datasets[self.current]

    def in_order(self) -> list[Dataset]:
        """Return all data sets, the current one first."""
        return [self.dataset, *(each for each in self.datasets.values() if each != self.dataset)]

    def free_name(self, wanted: str) -> str:
        """Return `wanted`, with a number if a table or data set already has that name."""
        taken = {name.casefold() for name in self.datasets}
        for dataset in self.datasets.values():
            taken |= {table.name.casefold() for table in dataset.schema.tables}
        numbered = (f"{wanted}_{number}" for number in itertools.count(2))
        names = itertools.chain([wanted], numbered)
        return next(name for name in names if name.casefold() not in taken)

    def add(self, dataset: Dataset) -> None:
        """Make a data set with a free name the current one."""
        self.datasets[dataset.name] = dataset
        self.current = dataset.name

    def dataset_for(self, sql: str) -> Dataset:
        """Return the first data set with a table of the statement, or the current one."""
        words = {text.strip("\"'`[]").casefold() for _, text in tokens_of(sql)}
        for dataset in self.in_order():
            if any(table.name.casefold() in words for table in dataset.schema.tables):
                return dataset
        return self.dataset

    def find_table(self, name: str) -> tuple[Dataset, Table]:
        """Return the table of this name, or the only table of the data set of this name.

        Raises:
            ExplorerError: There is none; the message lists the existing ones.
        """
        for dataset in self.in_order():
            table = dataset.schema.table(name)
            if table is not None:
                return dataset, table
        for dataset in self.in_order():
            if dataset.name.casefold() == name.casefold() and len(dataset.schema.tables) == 1:
                return dataset, dataset.schema.tables[0]
        known = [table.name for dataset in self.in_order() for table in dataset.schema.tables]
        raise ExplorerError(f"There is no table “{name}”.", f"Tables are {', '.join(known[:12])}.")


async def new_workspace(environ: Mapping[str, str] = os.environ) -> Workspace:
    """Open the data that `EXPLORER_DATA` names, or the sample data.

    Raises:
        DataUnreadable: It cannot be read.
    """
    path = Path(environ.get("EXPLORER_DATA") or DEFAULT_DATA)
    dataset = await asyncio.to_thread(_shared, path)
    return Workspace({dataset.name: dataset}, dataset.name)


def _shared(path: Path) -> Dataset:
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise DataUnreadable(
            f"There is no file {path}.",
            "Set EXPLORER_DATA to a CSV file, a SQLite file, or a folder of CSV files.",
        ) from error
    known = _opened.get(path)
    if known is None or known[0] != changed:
        known = _opened[path] = changed, open_dataset(path)
    return known[1]
