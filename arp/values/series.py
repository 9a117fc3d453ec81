"""Convert columns to the labels and series of a chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from arp.protocol.errors import InvalidComponent
from arp.protocol.exact_integers import TOO_LARGE, is_exact
from arp.protocol.json_value import Json, JsonObject
from arp.values.cell import chart_kind, chart_number, is_infinite, plain_value
from arp.values.columns import VALUE, Columns, columns_of, is_tabular

MAX_POINTS: Final = 2_000
"""Largest number of points in a series: about the width of a screen in pixels."""

_FIRST_ROWS: Final = ("bar", "pie")
"""Chart types that show the first rows if there are too many, instead of every n-th row."""

MISSING: Final = "(missing)"
"""Name of the series of rows without a value in the column `by`."""

MAX_SERIES: Final = 20
"""Largest number of series made from a column, because people cannot distinguish more colours."""

_INSTEAD: Final = {
    "truth": "of True and False; draw counts or numbers, as with df[…].astype(int)",
    "duration": "of durations; draw numbers, as with df[…].dt.total_seconds()",
    "other": "not of numbers",
}
"""Error text for a column without numbers, by the kind of its values."""


class _ChartColumns(NamedTuple):
    """Indexes of the columns of a chart; two columns may have the same name."""

    x: int | None
    y: list[int]
    by: int | None


def series_of(
    data: Any, kind: str, x: str | None, y: Sequence[str] | None, by: str | None
) -> JsonObject:
    """Return `labels`, `datasets`, `x_title`, `y_title` and `mark` of a chart.

    Args:
        data: Tabular data (see `columns_of`) or a list of numbers.
        kind: Type of the chart.
        x: Column of the labels. `None` means the index of a data frame. Without an index, it means
            the first column that is not numeric (for a scatter chart, the first column), and
            without such a column, the row numbers.
        y: Columns of the values; `None` means all other numeric columns.
        by: Column with one series per value; `None` means one series per column in `y`.

    Raises:
        InvalidComponent: The data is not supported, a name fits no column or several, a column of
            `y` is not numeric, or an integer is so large that renderers would round it.
    """
    columns = _columns(data, kind, by is not None)
    chosen = _chart_columns(columns, kind, x, y, by)
    names = [columns.names[index] for index in chosen.y]
    labels = _labels(columns, kind, chosen.x)
    if chosen.by is not None:
        labels, datasets = _grouped(columns, labels, chosen)
    else:
        datasets = [
            {"label": columns.names[index], "data": _numbers(columns, index)} for index in chosen.y
        ]
    if kind == "pie" and len(datasets) > 1:
        raise InvalidComponent(
            f"ui.chart: a pie shows one column; use y={names[0]!r}, or another of them: "
            f"{', '.join(names)}"
        )
    return {
        "labels": labels,
        "datasets": datasets,
        "x_title": _title(columns, chosen.x),
        "y_title": names[0] if len(names) == 1 else None,
        "mark": _mark(columns, kind),
    }


def _columns(data: Any, kind: str, is_grouped: bool) -> Columns:
    most = MAX_POINTS * (MAX_SERIES if is_grouped else 1)

    def cut(total: int) -> slice:
        # A bar chart with every n-th bar would be wrong, so it shows the first rows. A line with
        # every n-th value keeps its shape.
        return slice(most) if kind in _FIRST_ROWS else slice(None, None, -(-total // most) or 1)

    plain = isinstance(data, Iterable) and not isinstance(data, str | bytes)
    try:
        if plain and not isinstance(data, Sequence | Mapping) and not is_tabular(data):
            data = list(data)
        found = columns_of(data, rows=cut)
        if found is None and plain and not isinstance(data, Mapping):
            found = columns_of([{VALUE: one} for one in data], rows=cut)
    except TypeError as error:
        raise InvalidComponent(f"ui.chart: {error}") from None
    if found is None:
        raise InvalidComponent(
            f"ui.chart: expected a data frame, an array, or a list of numbers, mappings or models, "
            f"got {type(data).__name__}; or pass labels=… and datasets=[ui.dataset(…)]"
        )
    return found


def _mark(columns: Columns, kind: str) -> str:
    if kind in _FIRST_ROWS or len(columns.rows) == columns.total_rows:
        return columns.mark
    step = -(-columns.total_rows // len(columns.rows))
    return f"one row in {step:,} of {columns.total_rows:,}"


def _chart_columns(
    columns: Columns, kind: str, x: str | None, y: Sequence[str] | None, by: str | None
) -> _ChartColumns:
    """Return the columns that a chart shows."""
    values = None if y is None else [columns.place(one, "ui.chart: y") for one in y]
    group = None if by is None else columns.place(by, "ui.chart: by")
    if x is not None:
        label: int | None = columns.place(x, "ui.chart: x")
    else:
        label = _label_column(columns, kind, set(values or ()))
    numeric = [
        place
        for place in range(columns.indexes, len(columns.names))
        if place not in (label, group) and _kind(columns, place) == "number"
    ]
    if values is None:
        values = numeric
        if not numeric:
            raise InvalidComponent(_without_numbers(columns))
    for place in values:
        found = _kind(columns, place)
        if found not in ("number", "missing"):
            others = ", ".join(columns.names[one] for one in numeric)
            raise InvalidComponent(
                f"ui.chart: y: column {columns.names[place]!r:.60} is {_INSTEAD[found]}"
                f"{f'; numbers are in: {others}' if others else ''}"
            )
    return _ChartColumns(label, values, group)


def _without_numbers(columns: Columns) -> str:
    """Return an error text that says why there is nothing to draw, and what to do."""
    if not columns.names or not columns.rows:
        return "ui.chart: the data has no rows; show a text instead, or name the columns with y="
    for place, name in enumerate(columns.names):
        if (found := _kind(columns, place)) in ("truth", "duration"):
            return f"ui.chart: column {name!r:.60} is {_INSTEAD[found]}"
    what = ", ".join(columns.names)
    return (
        f"ui.chart: none of the columns {what} has numbers to draw; "
        "make some first, as with pd.to_numeric(df[…])"
    )


def _label_column(columns: Columns, kind: str, values: set[int]) -> int | None:
    """Return the default column of the labels; `None` means row numbers."""
    if columns.indexes:
        return 0
    free = [place for place in range(len(columns.names)) if place not in values]
    if kind == "scatter" and len(columns.names) > 1:
        return free[0] if free else None
    return next((place for place in free if _kind(columns, place) != "number"), None)


def _kind(columns: Columns, place: int) -> str:
    """Return the common kind of the values in a column (see `chart_kind`), or `other`."""
    found = {chart_kind(plain_value(one)) for one in columns.values[place]} - {"missing"}
    return "other" if len(found) > 1 else found.pop() if found else "missing"


def _labels(columns: Columns, kind: str, x: int | None) -> list[Json]:
    if x is None:
        return list(range(1, len(columns.rows) + 1))
    if columns.indexes > 1 and x == 0:
        rows = (row[: columns.indexes] for row in columns.rows)
        return [" / ".join("" if one is None else str(one) for one in row) for row in rows]
    if kind == "scatter" and _kind(columns, x) == "number":
        # These numbers are the positions of the points, so each row needs one.
        numbers = _numbers(columns, x, "x")
        if None in numbers:
            raise InvalidComponent(
                f"ui.chart: x: column {columns.names[x]!r:.60} has rows without a number; "
                "leave them out first, as with df.dropna()"
            )
        return numbers
    return ["" if one is None else _label(one) for one in columns.column(x)]


def _title(columns: Columns, x: int | None) -> str | None:
    if x == 0 and columns.indexes > 1:
        return " / ".join(columns.names[: columns.indexes])
    return None if x is None else columns.names[x] or None


def _label(value: Json) -> Json:
    return str(value) if isinstance(value, bool) else value


def _numbers(columns: Columns, place: int, what: str = "y") -> list[Json]:
    """Return the numbers of a column. Infinite numbers cannot be drawn and become gaps."""
    numbers: list[Json] = [chart_number(plain_value(one)) for one in columns.values[place]]
    for given, number in zip(columns.values[place], numbers, strict=True):
        value = plain_value(given)
        if number is None and chart_kind(value) == "number" and not is_infinite(value):
            raise InvalidComponent(
                f"ui.chart: {what}: column {columns.names[place]!r:.60} has {given!s:.40}, which "
                "is too large for a float; divide the column first"
            )
    rough = next((one for one in numbers if not is_exact(one)), None)
    if rough is not None:
        raise InvalidComponent(
            f"ui.chart: {what}: column {columns.names[place]!r:.60} has {rough}, {TOO_LARGE}; "
            "or name the columns to draw with y="
        )
    return numbers


def _grouped(
    columns: Columns, labels: list[Json], chosen: _ChartColumns
) -> tuple[list[Json], list[JsonObject]]:
    """Return the labels, and one series per value of `by`, with a value or a gap per label."""
    assert chosen.by is not None
    by = columns.names[chosen.by]
    if len(chosen.y) != 1:
        names = ", ".join(columns.names[place] for place in chosen.y)
        raise InvalidComponent(f"ui.chart: by={by!r} takes one y, not {names}")
    cells = columns.column(chosen.by)
    groups = {_key(one): MISSING if one is None else str(one) for one in cells}
    if len(groups) > MAX_SERIES:
        raise InvalidComponent(
            f"ui.chart: by: column {by!r:.60} has {len(groups)} values; at most {MAX_SERIES}"
        )
    _refuse_alike(by, "by", list(groups.values()))
    distinct = {_key(one): one for one in labels}
    _refuse_alike(_title(columns, chosen.x) or "", "x", [str(one) for one in distinct.values()])
    found: dict[tuple[Any, Any], Json] = {}
    for group, label, number in zip(cells, labels, _numbers(columns, chosen.y[0]), strict=True):
        key = _key(group), _key(label)
        if key in found:
            raise InvalidComponent(
                f"ui.chart: two rows have {by}={group!r} and the label {label!r}; "
                "sum them up first, as with df.groupby(…).sum()"
            )
        found[key] = number
    datasets: list[JsonObject] = [
        {"label": name, "data": [found.get((group, label)) for label in distinct]}
        for group, name in groups.items()
    ]
    return list(distinct.values()), datasets


def _key(cell: Json) -> tuple[str, Json]:
    """Return a key that is equal for equal cells: 1 equals 1.0, but not `"1"` or `True`."""
    return "number" if type(cell) in (int, float) else type(cell).__name__, cell


def _refuse_alike(column: str, what: str, names: list[str]) -> None:
    """Refuse different values with the same text, such as 1 and `"1"`."""
    alike = next((name for name in names if names.count(name) > 1), None)
    if alike is not None:
        raise InvalidComponent(
            f"ui.chart: {what}: column {column!r:.60} has different values that would all be named "
            f"{alike!r:.60}; make them of one type first, as with df[…].astype(str)"
        )
