"""Describes a result in a sentence or two: its size, its highest and lowest value."""

from __future__ import annotations

from charts import ChartPlan, Number, Series
from connection import Result
from headings import heading

MAX_SENTENCES = 2
"""Most series that are described; each has one sentence."""


def size_of(result: Result) -> str:
    """Return how many rows there are: `12 rows`, `the first 1,000 rows`."""
    count = len(result.rows)
    if result.truncated:
        return f"the first {count:,} rows"
    return "no row" if count == 0 else "1 row" if count == 1 else f"{count:,} rows"


def summary(result: Result, chart: ChartPlan | None) -> str:
    """Return a description of a result as Markdown; for a single value, the value."""
    if len(result.rows) == 1 and len(result.columns) <= 4:
        pairs = zip(result.columns, result.rows[0], strict=True)
        values = [f"{heading(name)} is **{_format(value)}**" for name, value in pairs]
        return ", ".join(values) + "."
    if not result.rows:
        return "There is no row like that."
    extremes = [_extremes(series, chart) for series in chart.series] if chart else []
    sentences = [sentence for sentence in extremes if sentence][:MAX_SENTENCES]
    return " ".join(sentences) or f"That is {size_of(result)}."


def _extremes(series: Series, chart: ChartPlan) -> str:
    if chart.kind == "scatter":
        return ""
    points: list[tuple[Number, str | Number]] = [
        (value, label)
        for value, label in zip(series.data, chart.labels, strict=True)
        if value is not None
    ]
    if len(points) < 2:
        return ""
    high = max(points, key=lambda point: point[0])
    low = min(points, key=lambda point: point[0])
    if high[0] == low[0]:
        return ""
    name = series.label[:1].upper() + series.label[1:]
    return (
        f"**{name}** is highest for {high[1]} ({_format(high[0])})"
        f" and lowest for {low[1]} ({_format(low[0])})."
    )


def _format(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else "unknown" if value is None else str(value)
