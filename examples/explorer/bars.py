"""A chart as text, for renderers without charts: a bar and a number for each value."""

from __future__ import annotations

from charts import ChartPlan, Number

WIDTH = 24
"""Width of the longest bar, so that a line fits on a phone."""

MAX_LINES = 40
"""Most lines of a chart; the numbers are also in the table."""

MAX_LABEL = 16


def chart_in_letters(chart: ChartPlan) -> str | None:
    """Return the chart as lines of text; `None` if it has too many values."""
    lines = len(chart.labels) * len(chart.series)
    if chart.kind == "scatter" or lines > MAX_LINES:
        return None
    values = [value for series in chart.series for value in series.data if value is not None]
    top = max((abs(value) for value in values), default=0)
    labels = [str(label)[:MAX_LABEL] for label in chart.labels]
    width = max(map(len, labels), default=0)
    names = [series.label[:MAX_LABEL] if len(chart.series) > 1 else "" for series in chart.series]
    name_width = max(map(len, names), default=0)
    drawn = []
    for index, label in enumerate(labels):
        for number, (name, series) in enumerate(zip(names, chart.series, strict=True)):
            place = f"{label if number == 0 else '':<{width}} "
            kind = f"{name:<{name_width}} " if name_width else ""
            drawn.append(place + kind + _bar(series.data[index], top))
    return "\n".join(drawn)


def _bar(value: Number | None, top: Number) -> str:
    if value is None:
        return "–"
    length = round(WIDTH * abs(value) / top) if top else 0
    return f"{('█' if value >= 0 else '░') * length} {value:g}".lstrip()
