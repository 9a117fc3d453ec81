"""What a person can want: one class for each thing that the explorer does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ChartWish: TypeAlias = Literal["auto", "none", "bar", "line", "pie", "scatter", "area"]


@dataclass(frozen=True)
class Help:
    """What can be asked here?"""


@dataclass(frozen=True)
class SmallTalk:
    """Hello, or thanks; nothing about the data."""

    kind: Literal["greeting", "thanks"]


@dataclass(frozen=True)
class ListTables:
    """Which tables are there?"""


@dataclass(frozen=True)
class Describe:
    """What is in this table?"""

    table: str


@dataclass(frozen=True)
class RunQuery:
    """Run this, show the result."""

    sql: str
    title: str = ""
    wish: ChartWish = "auto"
    leftover: tuple[str, ...] = ()
    """Words of the question that played no part."""
    focus: str = ""
    """The column of the result that the question is about; several if empty."""


@dataclass(frozen=True)
class Redraw:
    """The last result again, as another chart."""

    wish: ChartWish


@dataclass(frozen=True)
class Export:
    """Write the last result, or a whole table, to a CSV file."""

    name: str = ""
    table: str = ""


@dataclass(frozen=True)
class OpenForm:
    """Put a query together in a form."""

    table: str = ""


@dataclass(frozen=True)
class CompareTables:
    """Which rows differ?"""

    old: str
    new: str


@dataclass(frozen=True)
class UseDataset:
    """Ask this data set from now on."""

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
