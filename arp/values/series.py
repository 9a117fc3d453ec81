"""Convert columns to the labels and series of a chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from arp.protocol.errors import InvalidComponent
from arp.protocol.json_value import Json, JsonObject, kind_of
from arp.values.columns import VALUE, Columns, columns_of, is_tabular

MAX_POINTS: Final = 2_000
"""Of one series: more than the width of a screen in pixels."""

_FIRST_ROWS: Final = ("bar", "pie")
"""Charts that show the first rows if there are too many, not every n-th row."""

MAX_SERIES: Final = 20
"""Series made from the values of a column; people could not distinguish more colours."""


def series_of(
    data: Any, kind: str, x: str | None, y: str | Sequence[str] | None, by: str | None
) -> JsonObject:
    """Return `labels`, `datasets`, `x_title`, `y_title` and `mark` of a chart.

    Args:
        data: As for `columns_of`; or a list of numbers.
        kind: The type of the chart.
        x: The column of the labels; `None`: the index of a data frame, else the first column that
            is not numeric (for a scatter chart the first column), else the row numbers.
        y: The columns of the values; `None`: all other numeric columns.
        by: A column; each of its values is a series.

    Raises:
        InvalidComponent: It is no data, a column does not exist, or one of `y` is not numeric.
    """
    columns = _columns(data, kind, by is not None)
    wanted_x = _labelled(columns, kind, x, y)
    labels = _labels(columns, wanted_x)
    taken = {wanted_x, by} if x is None else {x, by}
    names = _valued(columns, y, {one for one in taken if one is not None})
    if by is not None:
        labels, datasets = _grouped(columns, labels, names, _known(columns, by, "by"))
    else:
        datasets = [{"label": name, "data": _numbers(columns, name)} for name in names]
    if kind == "pie" and len(datasets) > 1:
        raise InvalidComponent(
            f"ui.chart: a pie shows one column; take y={names[0]!r}, or another of them: "
            f"{', '.join(names)}"
        )
    return {
        "labels": labels,
        "datasets": datasets,
        "x_title": _title(columns, wanted_x),
        "y_title": names[0] if len(names) == 1 else None,
        "mark": _mark(columns, kind),
    }


def _columns(data: Any, kind: str, is_grouped: bool) -> Columns:
    most = MAX_POINTS * (MAX_SERIES if is_grouped else 1)

    def cut(total: int) -> slice:
        # Without some of its bars a chart is wrong, but a line keeps its shape with every n-th
        # value.
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


def _labelled(
    columns: Columns, kind: str, x: str | None, y: str | Sequence[str] | None
) -> str | None:
    if x is not None:
        return _known(columns, x, "x")
    if columns.indexes:
        return columns.names[0]
    values = {y} if isinstance(y, str) else set(y or ())
    free = [name for name in columns.names if name not in values]
    if kind == "scatter" and len(columns.names) > 1:
        return free[0] if free else None
    return next((name for name in free if not _is_numeric(columns, name)), None)


def _labels(columns: Columns, x: str | None) -> list[Json]:
    if x is None:
        return list(range(1, len(columns.rows) + 1))
    if columns.indexes > 1 and x == columns.names[0]:
        rows = (row[: columns.indexes] for row in columns.rows)
        return [" / ".join("" if one is None else str(one) for one in row) for row in rows]
    return ["" if one is None else _label(one) for one in columns.column(x)]


def _title(columns: Columns, x: str | None) -> str | None:
    if x is not None and columns.indexes > 1 and x == columns.names[0]:
        return " / ".join(columns.names[: columns.indexes])
    return x or None


def _label(value: Json) -> Json:
    return str(value) if isinstance(value, bool) else value


def _valued(columns: Columns, y: str | Sequence[str] | None, taken: set[str]) -> list[str]:
    numeric = [
        name
        for name in columns.names[columns.indexes :]
        if name not in taken and _is_numeric(columns, name)
    ]
    if y is None:
        if not numeric:
            raise InvalidComponent(
                f"ui.chart: none of the columns {', '.join(columns.names)} has numbers to draw"
            )
        return numeric
    names = [_known(columns, one, "y") for one in ([y] if isinstance(y, str) else y)]
    for name in names:
        if not _is_numeric(columns, name):
            others = f"; numbers are in: {', '.join(numeric)}" if numeric else ""
            raise InvalidComponent(f"ui.chart: y: column {name!r:.60} is not of numbers{others}")
    return names


def _known(columns: Columns, name: str, what: str) -> str:
    return known_column(columns, name, f"ui.chart: {what}")


def known_column(columns: Columns, name: object, where: str) -> str:
    """Return the name of a column.

    Raises:
        InvalidComponent: There is no such column; the message names a similar one, or all.
    """
    if isinstance(name, str) and name in columns.names:
        return name
    if not isinstance(name, str):
        raise InvalidComponent(f"{where}: expected the name of a column, got {kind_of(name)}")
    near = get_close_matches(name, columns.names, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(columns.names)}"
    raise InvalidComponent(f"{where}: no column {name!r:.60}; {hint}")


def _is_numeric(columns: Columns, name: str) -> bool:
    found = [one for one in columns.column(name) if one is not None and one not in ("∞", "−∞")]
    return bool(found) and all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in found
    )


def _numbers(columns: Columns, name: str) -> list[Json]:
    """Return the numbers of a column; infinite ones cannot be drawn and become gaps."""
    return [None if isinstance(one, str) else one for one in columns.column(name)]


def _grouped(
    columns: Columns, labels: list[Json], names: list[str], by: str
) -> tuple[list[Json], list[JsonObject]]:
    """Return labels, and one series for each value of `by` with a value or a gap for each label."""
    if len(names) != 1:
        raise InvalidComponent(f"ui.chart: by={by!r} takes one y, not {', '.join(names)}")
    groups = list(dict.fromkeys(str(one) for one in columns.column(by)))
    if len(groups) > MAX_SERIES:
        raise InvalidComponent(
            f"ui.chart: by: column {by!r:.60} has {len(groups)} values; at most {MAX_SERIES}"
        )
    distinct = list(dict.fromkeys(labels))
    found: dict[tuple[str, Json], Json] = {}
    for group, label, number in zip(
        columns.column(by), labels, _numbers(columns, names[0]), strict=True
    ):
        if (str(group), label) in found:
            raise InvalidComponent(
                f"ui.chart: two rows have {by}={group!r} and the label {label!r}; "
                "sum them up first, as with df.groupby(…).sum()"
            )
        found[str(group), label] = number
    datasets: list[JsonObject] = [
        {"label": group, "data": [found.get((group, label)) for label in distinct]}
        for group in groups
    ]
    return distinct, datasets
