"""Requests of a user: one class for each thing that the explorer can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ChartWish: TypeAlias = Literal["auto", "none", "bar", "line", "pie", "scatter", "area"]


@dataclass(frozen=True)
class Help:
    """Asks what the explorer can do."""


@dataclass(frozen=True)
class SmallTalk:
    """A greeting, or thanks."""

    kind: Literal["greeting", "thanks"]


@dataclass(frozen=True)
class ListTables:
    """Asks for the list of tables."""


@dataclass(frozen=True)
class Describe:
    """Asks for the content of a table."""

    table: str


@dataclass(frozen=True)
class RunQuery:
    """Asks to run a statement and show the result."""

    sql: str
    title: str = ""
    wish: ChartWish = "auto"
    leftover: tuple[str, ...] = ()
    """Words of the question that were ignored."""
    focus: str = ""
    """The column of the result that the question is about; empty if there are several."""


@dataclass(frozen=True)
class Redraw:
    """Asks for the last result as another chart."""

    wish: ChartWish


@dataclass(frozen=True)
class Export:
    """Asks to write the last result, or a complete table, to a CSV file."""

    name: str = ""
    table: str = ""


@dataclass(frozen=True)
class OpenForm:
    """Asks for a form that builds a query."""

    table: str = ""


@dataclass(frozen=True)
class CompareTables:
    """Asks which rows differ between two tables."""

    old: str
    new: str


@dataclass(frozen=True)
class UseDataset:
    """Asks to use this data set from now on."""

    name: str


Ask: TypeAlias = (
    Help
    | SmallTalk
    | ListTables
    | Describe
    | RunQuery
    | Redraw
    | Export
    | OpenForm
    | CompareTables
    | UseDataset
)
