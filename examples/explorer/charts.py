"""Chooses the chart for a result and its numbers. It makes no component."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from asks import ChartWish
from connection import Cell, Result
from headings import heading
from query_plan import MONTHS

ChartKind: TypeAlias = Literal["bar", "line", "pie", "scatter", "area"]
Number: TypeAlias = int | float
_Item = TypeVar("_Item")

MAX_POINTS = 500
"""Most points of a chart; lines and scatter charts with more keep evenly spaced points."""

MAX_BARS = 60
MAX_SLICES = 12
MAX_SERIES = 8

_TIME_LABEL = re.compile(
    r"\d{4}|\d{4}-\d\d(-\d\d.*)?|\d{4}-Q\d|[A-Z][a-z]{2}|\d{1,2}(:\d\d)?", re.ASCII
)
_MONTHS = frozenset(textwrap.wrap(MONTHS, 3))


@dataclass(frozen=True)
class Series:
    """The values of one line, one row of bars, or one group of points."""

    label: str
    data: tuple[Number | None, ...]


@dataclass(frozen=True)
class ChartPlan:
    """A chart that can be shown."""

    kind: ChartKind
    labels: tuple[str | Number, ...]
    series: tuple[Series, ...]


def choose_chart(result: Result, wish: ChartWish = "auto", focus: str = "") -> ChartPlan | None:
    """Return a chart for a result; `None` if a table is better.

    Args:
        result: The result of a query.
        wish: The requested kind; `auto` chooses one, `none` means no chart.
        focus: The column of the question; empty for all columns of numbers.
    """
    numbers = _number_columns(result)
    if wish == "none" or len(result.rows) < 2 or not numbers:
        return None
    labels = [index for index in range(len(result.columns)) if index not in numbers]
    if wish == "scatter" or (not labels and not _counts_up(result, numbers[0])):
        return _scatter(result, numbers, wish)
    if not labels:
        labels, numbers = numbers[:1], numbers[1:]
    if focus in result.columns:
        focused = result.columns.index(focus)
        numbers = [focused] if focused in numbers else numbers
    if not numbers or (wish == "auto" and len(numbers) > 4):
        return None
    plan = _pivot(result, labels, numbers) or _plain(result, labels[0], numbers)
    return _of_kind(plan, wish) if plan else None


def _number_columns(result: Result) -> list[int]:
    """Return the columns of numbers, except a running number of the rows."""
    found = []
    for index, name in enumerate(result.columns):
        cells = [row[index] for row in result.rows if row[index] is not None]
        identifier = re.fullmatch(r"(id|.*_id|rowid)", name, re.I)
        if cells and not identifier and not any(isinstance(cell, str) for cell in cells):
            found.append(index)
    return found


def _counts_up(result: Result, index: int) -> bool:
    """Return whether a column of numbers rises from row to row, so that it can label the rows."""
    cells = [row[index] for row in result.rows]
    numbers = [cell for cell in cells if isinstance(cell, (int, float))]
    pairs = itertools.pairwise(numbers)
    return len(numbers) == len(cells) and all(left < right for left, right in pairs)


def _number(cell: Cell) -> Number | None:
    return cell if isinstance(cell, (int, float)) else None


def label_of(cell: Cell) -> str | Number:
    """Return the label of a bar."""
    if cell is None:
        return "(none)"
    return cell[:60] if isinstance(cell, str) else cell


def _scatter(result: Result, numbers: list[int], wish: ChartWish) -> ChartPlan | None:
    if len(numbers) < 2 or (wish == "auto" and len(numbers) > 2):
        return None
    x, y = numbers[0], numbers[1]
    points = [(row[x], row[y]) for row in result.rows if row[x] is not None and row[y] is not None]
    points = thinned(points, MAX_POINTS)
    series = Series(heading(result.columns[y]), tuple(_number(point[1]) for point in points))
    return ChartPlan("scatter", tuple(label_of(point[0]) for point in points), (series,))


def _plain(result: Result, label: int, numbers: list[int]) -> ChartPlan | None:
    """Return a series for each column of numbers."""
    rows = thinned(result.rows, MAX_POINTS)
    series = tuple(
        Series(heading(result.columns[index]), tuple(_number(row[index]) for row in rows))
        for index in numbers[:MAX_SERIES]
    )
    return ChartPlan("bar", tuple(label_of(row[label]) for row in rows), series)


def _pivot(result: Result, labels: list[int], numbers: list[int]) -> ChartPlan | None:
    """Return a series for each value of the second label: `by year and origin`."""
    if len(labels) != 2 or len(numbers) != 1:
        return None
    first, second = labels
    places = list(dict.fromkeys(label_of(row[first]) for row in result.rows))
    names = list(dict.fromkeys(label_of(row[second]) for row in result.rows))
    if len(names) > MAX_SERIES or len(places) == len(result.rows):
        return None
    values = {
        (label_of(row[first]), label_of(row[second])): _number(row[numbers[0]])
        for row in result.rows
    }
    series = tuple(
        Series(str(name), tuple(values.get((place, name)) for place in places)) for name in names
    )
    return ChartPlan("bar", tuple(places), series)


def _of_kind(plan: ChartPlan, wish: ChartWish) -> ChartPlan | None:
    """Return the plan as the requested kind if possible, otherwise as a suitable one."""
    kind: ChartKind
    if wish == "pie" and _can_be_pie(plan):
        return _pie(plan)
    if wish in ("line", "area", "bar"):
        kind = wish
    else:
        kind = "line" if _along_time(plan.labels) and len(plan.labels) > 2 else "bar"
    if kind == "bar" and len(plan.labels) > MAX_BARS:
        return None if wish == "auto" else ChartPlan("line", plan.labels, plan.series)
    return ChartPlan(kind, plan.labels, plan.series)


def _along_time(labels: Sequence[str | Number]) -> bool:
    words = [label for label in labels if isinstance(label, str)]
    if len(words) != len(labels):
        return False
    if set(words) <= _MONTHS:
        return True
    return all(_TIME_LABEL.fullmatch(word) and word[0].isdigit() for word in words)


def _can_be_pie(plan: ChartPlan) -> bool:
    data = plan.series[0].data
    return len(plan.series) == 1 and all(value is not None and value >= 0 for value in data)


def _pie(plan: ChartPlan) -> ChartPlan:
    """Return the largest slices, and the rest as one."""
    pairs = [
        (label, value)
        for label, value in zip(plan.labels, plan.series[0].data, strict=True)
        if value is not None
    ]
    if len(pairs) > MAX_SLICES:
        pairs.sort(key=lambda pair: pair[1], reverse=True)
        rest = sum(value for _, value in pairs[MAX_SLICES - 1 :])
        pairs = [*pairs[: MAX_SLICES - 1], ("other", round(rest, 6))]
    labels = tuple(label for label, _ in pairs)
    return ChartPlan(
        "pie", labels, (Series(plan.series[0].label, tuple(value for _, value in pairs)),)
    )


def thinned(items: Sequence[_Item], limit: int) -> list[_Item]:
    """Return at most `limit` evenly spaced items, including the first."""
    if len(items) <= limit:
        return list(items)
    return [items[index * len(items) // limit] for index in range(limit)]
