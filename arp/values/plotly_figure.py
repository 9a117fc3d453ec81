"""Convert plotly figures to charts: lines, bars, areas, points and pies.

A chart has series of one kind with a common list of labels, so it cannot show every figure. A
figure is refused if a chart would show it differently or leave out values, and the error says what
to do instead. Such a figure is not drawn as a picture here: plotly needs a browser for that, and
this package must not start one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from arp.protocol.components import Component
from arp.protocol.errors import InvalidComponent
from arp.protocol.exact_integers import TOO_LARGE, is_exact
from arp.protocol.json_value import Json, JsonObject
from arp.values.cell import cells_of, chart_kind, chart_number, plain_value
from arp.values.columns import marked
from arp.values.series import MAX_POINTS

_DRAWN: Final = "bar, pie and scatter traces (lines, areas, points)"
_INSTEAD: Final = "draw it: ui.image(figure.to_image(format='png'), 'what it shows')"
_MARKUP: Final = re.compile(r"</?(?:b|i|u|s|em|strong|sub|sup|span|a)(?:\s[^<>]*)?>")
_BREAK: Final = re.compile(r"\s*<br\s*/?>\s*")
_DATE: Final = re.compile(r"-?\d{4}-\d{2}(?:-\d{2}(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?)?")
_FILLS: Final = ("tozeroy", "tonexty")
"""Fills of a trace that a chart can show as an area."""


class _Points(NamedTuple):
    """One trace: labels and their values, in order."""

    name: str
    labels: list[Json]
    values: list[int | float | None]


def chart_of(figure: Any) -> Component:
    """Return a figure as a chart. Hidden traces are left out.

    Raises:
        InvalidComponent: A chart cannot show the figure; the message says why, and what to do.
    """
    traces = [trace for trace in figure.data if trace.visible in (None, True)]
    kind = _kind_of(figure, traces)
    is_horizontal = _is_horizontal(traces[0])
    points = [_points(trace, kind, number) for number, trace in enumerate(traces, 1)]
    if len(points) == 1:
        points = [points[0]._replace(name=_plain(traces[0].name))]
    axis = None if kind == "pie" else figure.layout.yaxis if is_horizontal else figure.layout.xaxis
    if kind == "pie":
        hidden = [_label(one) for one in figure.layout.hiddenlabels or ()]
        points = [_without(points[0], hidden)]
    labels, columns = _aligned(points, kind, axis)
    labels, columns, mark = _thinned(labels, columns, kind)
    datasets: list[JsonObject] = [
        {"label": one.name, "data": column} for one, column in zip(points, columns, strict=True)
    ]
    props: JsonObject = {"type": kind, "labels": labels, "datasets": datasets}
    titles = _titles(figure.layout, kind, is_horizontal) | {
        "title": marked(_plain(figure.layout.title.text) or None, mark)
    }
    props |= {name: one for name, one in titles.items() if one}
    return Component("", "chart", props)


def _titles(layout: Any, kind: str, is_horizontal: bool) -> dict[str, str | None]:
    if kind == "pie":
        return {}
    x, y = _plain(layout.xaxis.title.text), _plain(layout.yaxis.title.text)
    return {"x_title": y, "y_title": x} if is_horizontal else {"x_title": x, "y_title": y}


def _refuse(what: str, instead: str = "") -> InvalidComponent:
    return InvalidComponent(f"a plotly figure with {what}; {instead or _INSTEAD}")


def _plain(text: Any) -> str:
    """Return a text of a figure without markup."""
    return "" if text is None else _MARKUP.sub("", _BREAK.sub(" ", str(text)))


# -- checks ----------------------------------------------------------------------------------------


def _kind_of(figure: Any, traces: Sequence[Any]) -> str:
    """Return the kind of chart for a figure.

    Raises:
        InvalidComponent: A chart would show the figure differently.
    """
    kinds = list(dict.fromkeys(map(_kind, traces)))
    if len(kinds) != 1 or (kinds == ["pie"] and len(traces) > 1):
        found = ", ".join(dict.fromkeys(str(trace.type) for trace in traces))
        hidden = "hidden traces only" if figure.data else "nothing"
        raise _refuse(f"{found or hidden}: a chart has one kind of trace")
    if figure.frames:
        raise _refuse(f"{len(figure.frames)} frames: a chart is one picture; show one frame of it")
    if kinds == ["pie"]:
        return "pie"
    if len({(trace.xaxis or "x", trace.yaxis or "y") for trace in traces}) > 1:
        raise _refuse(
            "several plots (facets, subplots or a second axis): a chart has one",
            "show a figure for each of them, or " + _INSTEAD,
        )
    if len(set(map(_is_horizontal, traces))) > 1:
        raise _refuse("vertical and horizontal bars")
    if figure.layout.barnorm or any(getattr(trace, "groupnorm", None) for trace in traces):
        raise _refuse("values that plotly turns into shares: draw the shares themselves")
    for trace in traces:
        _check(trace)
    return kinds[0]


def _kind(trace: Any) -> str:
    if trace.type in ("bar", "pie"):
        return str(trace.type)
    if trace.type not in ("scatter", "scattergl"):
        article = "an" if trace.type[0] in "aeiou" else "a"
        raise _refuse(f"{article} {trace.type} trace: charts show {_DRAWN}")
    fill = trace.fill if trace.fill != "none" else None
    if getattr(trace, "stackgroup", None) or fill in _FILLS:
        return "area"
    if fill:
        raise _refuse(f"a filled shape (fill={fill!r})")
    modes = (trace.mode or "lines").split("+")
    if "lines" in modes:
        return "line"
    if "markers" not in modes:
        raise _refuse(f"mode={trace.mode!r}: a chart has no texts beside its values")
    return "scatter"


def _check(trace: Any) -> None:
    """Refuse a trace with values that a chart would leave out."""
    if trace.type == "bar" and trace.base is not None:
        raise _refuse("bars that do not begin at 0 (base)")
    for name in ("error_x", "error_y"):
        error = trace[name]
        if error.visible is not False and (error.array is not None or error.value is not None):
            raise _refuse(f"error bars ({name})")
    if getattr(trace, "orientation", None) == "h" and trace.type != "bar":
        raise _refuse("values from left to right (orientation='h')")
    for name in ("size", "color"):
        given: Any = getattr(trace.marker, name, None)
        listed = list(given) if _is_list(given) else []
        if any(chart_kind(plain_value(one)) == "number" for one in listed):
            raise _refuse(f"points or bars whose {name} is a value: a chart does not show that")


def _is_horizontal(trace: Any) -> bool:
    """Return whether a trace has horizontal bars. As in plotly, bars without y are horizontal."""
    if trace.type != "bar":
        return False
    return bool(trace.orientation == "h" or (not trace.orientation and trace.y is None))


def _is_list(value: Any) -> bool:
    return value is not None and not isinstance(value, str) and hasattr(value, "__len__")


# -- labels and values -----------------------------------------------------------------------------


def _points(trace: Any, kind: str, number: int) -> _Points:
    name = _plain(trace.name) or f"trace {number}"
    if kind == "pie":
        return _slices(trace, name)
    at, by = ("y", "x") if _is_horizontal(trace) else ("x", "y")
    if trace[at] is None and trace[by] is None:
        return _Points(name, [], [])
    given, numbers = trace[at], trace[by]
    places = _counted(trace, at, len(numbers)) if given is None else _labels(given)
    values = (
        _counted(trace, by, len(places))
        if numbers is None
        else [_number(one, by) for one in numbers]
    )
    if kind == "scatter" and all(chart_kind(one) in ("number", "missing") for one in places):
        for one in places:
            _check_exact(one)
    # As in plotly, a value without a position and a position without a value are not shown.
    pairs = [pair for pair in zip(places, values, strict=False) if pair[0] is not None]
    return _Points(name, [label for label, _ in pairs], [value for _, value in pairs])


def _counted(trace: Any, axis: str, count: int) -> list[Any]:
    """Return the default positions of `count` points: from `x0` in steps of `dx`."""
    first, step = trace[f"{axis}0"], trace[f"d{axis}"]
    start, by = _whole(0 if first is None else first), _whole(1 if step is None else step)
    if start is None or by is None:
        raise _refuse(f"{axis}0={first!r:.40}: give {axis}, a value for each point")
    found = [start + number * by for number in range(count)]
    for one in found:
        _check_exact(one)
    return found


def _whole(value: Any) -> int | float | None:
    number = chart_number(plain_value(value))
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _slices(trace: Any, name: str) -> _Points:
    if trace.values is None:  # plotly then counts each label
        labels = _labels(() if trace.labels is None else trace.labels)
        return _Points(name, labels, [1] * len(labels))
    values = [_number(one, "values") for one in trace.values]
    labels = list(range(len(values))) if trace.labels is None else _labels(trace.labels)
    if any(value is not None and value < 0 for value in values):
        raise _refuse("a negative value in a pie, which has no share")
    pairs = list(zip(labels, values, strict=False))
    return _Points(name, [label for label, _ in pairs], [value for _, value in pairs])


def _without(points: _Points, hidden: Sequence[Json]) -> _Points:
    pairs = [
        (label, value)
        for label, value in zip(points.labels, points.values, strict=True)
        if label not in hidden
    ]
    return _Points(points.name, [label for label, _ in pairs], [value for _, value in pairs])


def _labels(given: Iterable[Any]) -> list[Json]:
    listed = list(given)
    if listed and all(map(_is_list, listed)):  # nested categories
        rows = zip(*(cells_of(list(level)) for level in listed), strict=False)
        return [" / ".join("" if one is None else str(_label(one)) for one in row) for row in rows]
    return [_label(one) for one in cells_of(listed)]


def _label(cell: Json) -> Json:
    if isinstance(cell, bool):
        return str(cell)
    # plotly stores a date as a time at midnight.
    return _plain(cell.removesuffix("T00:00:00.000000")) if isinstance(cell, str) else cell


def _number(value: Any, axis: str) -> int | float | None:
    """Return a value, or a text with a number, as a number; `None` for a gap."""
    value = plain_value(value)
    kind = chart_kind(value)
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            value = int(value) if value.strip().lstrip("+-").isdigit() else float(value)
            kind = chart_kind(value)
        except ValueError:
            pass
    if kind not in ("number", "missing"):
        raise _refuse(f"{value!r:.40} in {axis}, which is not a number: a chart has numbers there")
    _check_exact(number := chart_number(value))
    return number


def _check_exact(number: Any) -> None:
    if not is_exact(number):
        raise InvalidComponent(f"a plotly figure with {number}, {TOO_LARGE}")


# -- common labels of all traces -------------------------------------------------------------------


def _aligned(
    points: list[_Points], kind: str, axis: Any
) -> tuple[list[Json], list[list[int | float | None]]]:
    """Return the labels of all traces, and per trace a value or a gap for each label."""
    labels = [label for one in points for label in one.labels]
    if kind == "scatter" and all(isinstance(label, int | float) for label in labels):
        return _one_label_per_point(points)
    if kind in ("bar", "pie"):
        points = [_summed(one) for one in points]
    is_continuous = _is_continuous(points, axis)
    for one in points:
        _check_order(one, kind, is_continuous)
    if all(one.labels == points[0].labels for one in points) and not is_continuous:
        labels = points[0].labels
        order = _ordered(labels, axis)
        return [labels[at] for at in order], [[one.values[at] for at in order] for one in points]
    labels = list({_key(label): label for one in points for label in one.labels}.values())
    if is_continuous:
        labels.sort()
    else:
        labels = [labels[at] for at in _ordered(labels, axis)]
    found = [dict(zip(map(_key, one.labels), one.values, strict=True)) for one in points]
    return labels, [[values.get(_key(label)) for label in labels] for values in found]


def _key(label: Json) -> tuple[str, Json]:
    """Return a key that is equal for equal labels: 1 equals 1.0, but not `"1"`."""
    return type(label).__name__ if isinstance(label, str) else "number", label


def _one_label_per_point(
    points: list[_Points],
) -> tuple[list[Json], list[list[int | float | None]]]:
    """Return the points of all traces, each with its own label.

    Several points of a scatter chart may have the same x, so labels cannot be merged.
    """
    if all(one.labels == points[0].labels for one in points):
        return points[0].labels, [one.values for one in points]
    labels: list[Json] = []
    columns: list[list[int | float | None]] = [[] for _ in points]
    for number, one in enumerate(points):
        labels += one.labels
        for other, column in enumerate(columns):
            column += one.values if other == number else [None] * len(one.labels)
    return labels, columns


def _summed(points: _Points) -> _Points:
    """Add up the values of each label, as plotly stacks bars and joins slices."""
    sums: dict[tuple[str, Json], int | float | None] = {}
    signs: dict[tuple[str, Json], bool] = {}
    for label, value in zip(points.labels, points.values, strict=True):
        key = _key(label)
        if not value:  # a gap, or 0
            sums[key] = value if sums.get(key) is None else sums[key]
            continue
        if signs.setdefault(key, value > 0) != (value > 0):
            raise _refuse(f"positive and negative bars of the label {label!r:.40}: sum them up")
        sums[key] = (sums.get(key) or 0) + value
    for one in sums.values():
        _check_exact(one)
    return _Points(points.name, [label for _, label in sums], list(sums.values()))


def _is_continuous(points: list[_Points], axis: Any) -> bool:
    """Return whether labels are numbers or dates, which plotly places by size."""
    if axis is None or axis.type in ("category", "multicategory"):
        return False
    labels = [label for one in points for label in one.labels]
    if all(isinstance(label, int | float) for label in labels):
        return True
    return all(isinstance(label, str) and _DATE.fullmatch(label) for label in labels)


def _check_order(points: _Points, kind: str, is_continuous: bool) -> None:
    """Refuse several values for one label, and a line that reverses its direction."""
    labels = points.labels
    if len(set(map(_key, labels))) < len(labels):
        raise _refuse(
            f"several values at one x in a {kind} trace",
            "sum them up first, as with df.groupby(…).sum(), or " + _INSTEAD,
        )
    is_line = kind in ("line", "area") and is_continuous
    if is_line and labels not in (sorted(labels), sorted(labels, reverse=True)):
        raise _refuse("a line that reverses its direction: sort the values by x")


def _ordered(labels: Sequence[Json], axis: Any) -> list[int]:
    """Return the indexes of labels in the category order of the figure's axis."""
    wanted = [] if axis is None or axis.categoryarray is None else _labels(axis.categoryarray)
    place = {_key(label): number for number, label in enumerate(wanted)}
    return sorted(range(len(labels)), key=lambda at: (place.get(_key(labels[at]), len(wanted)), at))


def _thinned(
    labels: list[Json], columns: list[list[int | float | None]], kind: str
) -> tuple[list[Json], list[list[int | float | None]], str]:
    """Return every n-th point of a line with more than `MAX_POINTS`, and a note about it."""
    count = len(labels)
    if count <= MAX_POINTS:
        return labels, columns, ""
    if kind in ("bar", "pie"):
        raise _refuse(f"{count:,} {kind} labels; a chart shows {MAX_POINTS:,}")
    step = -(-count // MAX_POINTS)
    mark = f"one point in {step:,} of {count:,}"
    return labels[::step], [column[::step] for column in columns], mark
