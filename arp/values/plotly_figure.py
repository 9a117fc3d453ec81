"""Convert plotly figures to charts: lines, bars, areas, points and pies.

A figure with other traces, or with two kinds of these, is refused with advice: to draw it as a
picture, plotly needs a browser, which this package must not start.
"""

from __future__ import annotations

from typing import Any, Final

from arp.protocol.components import Component
from arp.protocol.errors import InvalidComponent
from arp.protocol.json_value import Json, JsonObject
from arp.values.cell import cell_of, cells_of

_DRAWN: Final = "bar, pie and scatter traces (lines, areas, points)"


def is_plotly(value: Any) -> bool:
    """Return whether a value is a figure of plotly."""
    return any(
        kind.__module__.partition(".")[0] == "plotly" and kind.__name__ == "BaseFigure"
        for kind in type(value).__mro__
    )


def chart_of(figure: Any) -> Component:
    """Return a figure as a chart.

    Raises:
        InvalidComponent: A chart cannot show it; the message says why.
    """
    traces = list(figure.data)
    kinds = list(dict.fromkeys(_kind(trace) for trace in traces))
    if len(kinds) != 1 or (kinds == ["pie"] and len(traces) > 1):
        found = ", ".join(dict.fromkeys(str(trace.type) for trace in traces)) or "nothing"
        raise InvalidComponent(
            f"a plotly figure with {found}: a chart has one kind of trace; "
            "draw it: ui.image(figure.to_image(format='png'), 'what it shows')"
        )
    points = [_points(trace, kinds[0]) for trace in traces]
    labels = list(dict.fromkeys(label for pairs in points for label, _ in pairs))
    datasets: list[JsonObject] = []
    for number, (trace, pairs) in enumerate(zip(traces, points, strict=True), 1):
        values = dict(pairs)
        name = str(trace.name or (f"trace {number}" if len(traces) > 1 else ""))
        datasets.append({"label": name, "data": [values.get(label) for label in labels]})
    props: JsonObject = {"type": kinds[0], "labels": labels, "datasets": datasets}
    layout = figure.layout
    given = {
        "title": layout.title.text,
        "x_title": layout.xaxis.title.text if kinds[0] != "pie" else None,
        "y_title": layout.yaxis.title.text if kinds[0] != "pie" else None,
    }
    props |= {name: str(one) for name, one in given.items() if one}
    return Component("", "chart", props)


def _kind(trace: Any) -> str:
    if trace.type in ("bar", "pie"):
        return str(trace.type)
    if trace.type not in ("scatter", "scattergl"):
        raise InvalidComponent(
            f"a plotly figure with a {trace.type} trace: charts show {_DRAWN}; "
            "draw it: ui.image(figure.to_image(format='png'), 'what it shows')"
        )
    if trace.fill not in (None, "none"):
        return "area"
    # Like plotly: `lines+markers` is a line.
    return "scatter" if trace.mode == "markers" else "line"


def _points(trace: Any, kind: str) -> list[tuple[Json, Json]]:
    if kind == "pie":
        labels, values = trace.labels, trace.values
    elif trace.type == "bar" and trace.orientation == "h":
        labels, values = trace.y, trace.x
    else:
        labels, values = trace.x, trace.y
    numbers = [_number(one) for one in ([] if values is None else values)]
    if labels is None:
        return list(enumerate(numbers))
    return list(zip(map(_label, cells_of(list(labels))), numbers, strict=False))


def _label(cell: Json) -> Json:
    return "" if cell is None else str(cell) if isinstance(cell, bool) else cell


def _number(value: Any) -> Json:
    cell = cell_of(value)
    return cell if isinstance(cell, int | float) and not isinstance(cell, bool) else None
