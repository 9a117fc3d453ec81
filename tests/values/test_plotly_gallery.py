"""Figures as in plotly's gallery: each shows all its values, or is refused with what to do.

`total` is the sum of the values that the figure is made of, taken from its data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import pytest

from arp.protocol.errors import InvalidComponent
from arp.protocol.validate import check_component
from arp.values.display import as_component

TIPS = px.data.tips()
IRIS = px.data.iris()
GAPMINDER = px.data.gapminder()
MEDALS = px.data.medals_long()
WIDE = px.data.medals_wide()
STOCKS = px.data.stocks()
WIND = px.data.wind()
CANADA = GAPMINDER[GAPMINDER.country == "Canada"]
OCEANIA = GAPMINDER[GAPMINDER.continent == "Oceania"]
YEAR = GAPMINDER[GAPMINDER.year == 2007]
BIG = YEAR[YEAR["pop"] > 2e8]
DAYS = TIPS.groupby("day", as_index=False).tip.sum()


class Shown(NamedTuple):
    """A chart: its kind, the labels, the series, and the sum of all values."""

    kind: str
    labels: int
    series: int
    total: float


class Figure(NamedTuple):
    """A figure of the gallery, and what shows of it."""

    name: str
    make: Callable[[], Any]
    shown: Shown | str
    """A text is a part of the refusal."""


def wide_sum(frame: pd.DataFrame) -> float:
    return float(frame.select_dtypes("number").sum().sum())


GALLERY = [
    # -- bars
    Figure(
        "bars of raw rows",
        lambda: px.bar(TIPS, x="day", y="total_bill"),
        Shown("bar", 4, 1, TIPS.total_bill.sum()),
    ),
    Figure(
        "stacked bars of raw rows",
        lambda: px.bar(TIPS, x="sex", y="total_bill", color="time"),
        Shown("bar", 2, 2, TIPS.total_bill.sum()),
    ),
    Figure(
        "grouped bars of raw rows",
        lambda: px.bar(TIPS, x="sex", y="total_bill", color="smoker", barmode="group"),
        Shown("bar", 2, 2, TIPS.total_bill.sum()),
    ),
    Figure(
        "bars by year",
        lambda: px.bar(CANADA, x="year", y="pop"),
        Shown("bar", 12, 1, CANADA["pop"].sum()),
    ),
    Figure(
        "long-form bars",
        lambda: px.bar(MEDALS, x="nation", y="count", color="medal", title="Long-Form Input"),
        Shown("bar", 3, 3, MEDALS["count"].sum()),
    ),
    Figure(
        "wide-form bars",
        lambda: px.bar(WIDE, x="nation", y=["gold", "silver", "bronze"]),
        Shown("bar", 3, 3, wide_sum(WIDE)),
    ),
    Figure(
        "bars with texts",
        lambda: px.bar(MEDALS, x="medal", y="count", color="nation", text_auto=True),
        Shown("bar", 3, 3, MEDALS["count"].sum()),
    ),
    Figure(
        "horizontal bars",
        lambda: px.bar(TIPS, x="total_bill", y="day", orientation="h"),
        Shown("bar", 4, 1, TIPS.total_bill.sum()),
    ),
    Figure(
        "horizontal bars without labels",
        lambda: go.Figure(go.Bar(x=[20, 14, 23])),
        Shown("bar", 3, 1, 57),
    ),
    Figure(
        "bars in a wanted order",
        lambda: px.bar(DAYS, x="day", y="tip", category_orders={"day": ["Thur", "Fri"]}),
        Shown("bar", 4, 1, TIPS.tip.sum()),
    ),
    Figure(
        "bars of categories in categories",
        lambda: go.Figure(go.Bar(x=[["A", "A", "B"], ["x", "y", "x"]], y=[1, 2, 3])),
        Shown("bar", 3, 1, 6),
    ),
    Figure(
        "bars coloured by hand",
        lambda: go.Figure(go.Bar(x=["a", "b"], y=[1, 2], marker_color=["grey", "crimson"])),
        Shown("bar", 2, 1, 3),
    ),
    Figure(
        "relative bars",
        lambda: go.Figure([go.Bar(y=[1, 4]), go.Bar(y=[-1, -3])], {"barmode": "relative"}),
        Shown("bar", 2, 2, 1),
    ),
    Figure(
        "bars coloured by a value",
        lambda: px.bar(CANADA, x="year", y="pop", color="lifeExp"),
        "whose color is a value",
    ),
    Figure(
        "bars in facets",
        lambda: px.bar(TIPS, x="sex", y="total_bill", facet_col="day"),
        "several plots (facets",
    ),
    Figure(
        "bars with a base",
        lambda: go.Figure(go.Bar(x=[1, 2], y=[5, 6], base=[-5, -6])),
        "bars that do not begin at 0",
    ),
    Figure(
        "Gantt chart",
        lambda: px.timeline(
            pd.DataFrame({"task": ["A"], "start": ["2026-01-01"], "end": ["2026-02-28"]}),
            x_start="start",
            x_end="end",
            y="task",
        ),
        "bars that do not begin at 0",
    ),
    Figure(
        "bars with error bars",
        lambda: go.Figure(go.Bar(x=["a"], y=[3], error_y={"type": "data", "array": [1]})),
        "error bars (error_y)",
    ),
    Figure(
        "bars as shares",
        lambda: go.Figure([go.Bar(y=[1, 4]), go.Bar(y=[1, 3])], {"barnorm": "percent"}),
        "values that plotly turns into shares",
    ),
    # -- lines and areas
    Figure(
        "line",
        lambda: px.line(CANADA, x="year", y="lifeExp", title="Life expectancy in Canada"),
        Shown("line", 12, 1, CANADA.lifeExp.sum()),
    ),
    Figure(
        "lines by colour with markers",
        lambda: px.line(OCEANIA, x="year", y="lifeExp", color="country", markers=True),
        Shown("line", 12, 2, OCEANIA.lifeExp.sum()),
    ),
    Figure(
        "lines of dates",
        lambda: px.line(STOCKS, x="date", y=STOCKS.columns[1:]),
        Shown("line", 105, 6, wide_sum(STOCKS)),
    ),
    Figure(
        "step lines",
        lambda: go.Figure(go.Scatter(x=[1, 2, 3], y=[1, 3, 2], line={"shape": "hv"})),
        Shown("line", 3, 1, 6),
    ),
    Figure(
        "line of which some values are missing",
        lambda: go.Figure(go.Scatter(x=[1, 2, 3], y=[1, None, 2])),
        Shown("line", 3, 1, 3),
    ),
    Figure(
        "one of two lines hidden",
        lambda: go.Figure([go.Scatter(y=[1, 2]), go.Scatter(y=[5, 5], visible="legendonly")]),
        Shown("line", 2, 1, 3),
    ),
    Figure(
        "line of raw rows",
        lambda: px.line(TIPS, x="day", y="tip"),
        "several values at one x in a line trace; sum them up first",
    ),
    Figure(
        "connected scatter",
        lambda: px.line(CANADA.sort_values("pop"), x="gdpPercap", y="lifeExp"),
        "a line that reverses its direction",
    ),
    Figure(
        "line on a second axis",
        lambda: go.Figure([go.Scatter(y=[1, 2]), go.Scatter(y=[40, 50], yaxis="y2")]),
        "several plots (facets, subplots or a second axis)",
    ),
    Figure(
        "stacked areas",
        lambda: px.area(OCEANIA, x="year", y="pop", color="country"),
        Shown("area", 12, 2, OCEANIA["pop"].sum()),
    ),
    Figure(
        "filled area",
        lambda: go.Figure(go.Scatter(x=[1, 2, 3], y=[0, 2, 3], fill="tozeroy")),
        Shown("area", 3, 1, 5),
    ),
    Figure(
        "stacked shares",
        lambda: go.Figure(go.Scatter(y=[1, 2], stackgroup="one", groupnorm="percent")),
        "values that plotly turns into shares",
    ),
    Figure(
        "filled band",
        lambda: go.Figure(go.Scatter(x=[1, 2, 2, 1], y=[1, 1, 2, 2], fill="toself")),
        "a filled shape (fill='toself')",
    ),
    # -- points
    Figure(
        "points",
        lambda: px.scatter(TIPS, x="total_bill", y="tip"),
        Shown("scatter", 244, 1, TIPS.tip.sum()),
    ),
    Figure(
        "points by colour",
        lambda: px.scatter(IRIS, x="sepal_width", y="sepal_length", color="species"),
        Shown("scatter", 150, 3, IRIS.sepal_length.sum()),
    ),
    Figure(
        "points on a log axis",
        lambda: px.scatter(YEAR, x="gdpPercap", y="lifeExp", log_x=True),
        Shown("scatter", len(YEAR), 1, YEAR.lifeExp.sum()),
    ),
    Figure(
        "points by WebGL",
        lambda: px.scatter(YEAR, x="gdpPercap", y="lifeExp", render_mode="webgl"),
        Shown("scatter", len(YEAR), 1, YEAR.lifeExp.sum()),
    ),
    Figure(
        "bubbles",
        lambda: px.scatter(YEAR, x="gdpPercap", y="lifeExp", size="pop", log_x=True),
        "whose size is a value",
    ),
    Figure(
        "points coloured by a value",
        lambda: px.scatter(IRIS, x="sepal_width", y="sepal_length", color="petal_length"),
        "whose color is a value",
    ),
    Figure(
        "points over categories",
        lambda: px.scatter(MEDALS, x="count", y="nation"),
        "values from left to right (orientation='h')",
    ),
    Figure(
        "points with a histogram beside them",
        lambda: px.scatter(IRIS, x="sepal_length", y="sepal_width", marginal_x="histogram"),
        "a plotly figure with a histogram trace",
    ),
    Figure(
        "animated points",
        lambda: px.scatter(GAPMINDER, x="gdpPercap", y="lifeExp", animation_frame="year"),
        "12 frames: a chart is one picture",
    ),
    Figure(
        "strips",
        lambda: px.strip(TIPS, x="total_bill", y="day"),
        "a plotly figure with a box trace",
    ),
    # -- pies
    Figure(
        "pie",
        lambda: px.pie(BIG, values="pop", names="country"),
        Shown("pie", len(BIG), 1, BIG["pop"].sum()),
    ),
    Figure(
        "pie of raw rows",
        lambda: px.pie(TIPS, values="tip", names="day"),
        Shown("pie", 4, 1, TIPS.tip.sum()),
    ),
    Figure("pie without values", lambda: px.pie(TIPS, names="day"), Shown("pie", 4, 1, len(TIPS))),
    Figure(
        "ring with a hidden label",
        lambda: go.Figure(
            go.Pie(labels=["a", "b", "c"], values=[1, 2, 3], hole=0.4), {"hiddenlabels": ["b"]}
        ),
        Shown("pie", 2, 1, 4),
    ),
    Figure(
        "negative slice",
        lambda: go.Figure(go.Pie(labels=["a", "b"], values=[1, -2])),
        "a negative value in a pie",
    ),
    Figure(
        "two pies",
        lambda: go.Figure([go.Pie(values=[1, 2]), go.Pie(values=[3, 4])]),
        "with pie: a chart has one kind of trace",
    ),
    # -- others
    Figure("heatmap", lambda: px.imshow([[1, 2], [3, 4]]), "with a heatmap trace"),
    Figure("histogram", lambda: px.histogram(TIPS, x="total_bill"), "with a histogram trace"),
    Figure("boxes", lambda: px.box(TIPS, x="day", y="tip"), "with a box trace"),
    Figure("violins", lambda: px.violin(TIPS, y="total_bill"), "with a violin trace"),
    Figure("treemap", lambda: px.treemap(TIPS, path=["day", "sex"]), "with a treemap trace"),
    Figure("sunburst", lambda: px.sunburst(TIPS, path=["day", "sex"]), "with a sunburst trace"),
    Figure("funnel", lambda: px.funnel({"n": [3, 2], "s": ["a", "b"]}, "n", "s"), "a funnel trace"),
    Figure("waterfall", lambda: go.Figure(go.Waterfall(y=[1, 2])), "with a waterfall trace"),
    Figure(
        "candlesticks",
        lambda: go.Figure(go.Candlestick(open=[1], high=[3], low=[0], close=[2])),
        "with a candlestick trace",
    ),
    Figure(
        "polar bars",
        lambda: px.bar_polar(WIND, r="frequency", theta="direction"),
        "with a barpolar trace",
    ),
    Figure(
        "three dimensions",
        lambda: px.scatter_3d(IRIS, "sepal_length", "sepal_width", "petal_width"),
        "with a scatter3d trace",
    ),
    Figure("number", lambda: go.Figure(go.Indicator(value=3)), "with an indicator trace"),
    Figure("table", lambda: go.Figure(go.Table(header={"values": ["a"]})), "with a table trace"),
    Figure(
        "bars and a line",
        lambda: go.Figure([go.Bar(y=[1, 2]), go.Scatter(y=[1, 2])]),
        "with bar, scatter: a chart has one kind of trace",
    ),
]


def test_there_are_forty() -> None:
    assert len({one.name for one in GALLERY}) == len(GALLERY) >= 40
    assert sum(isinstance(one.shown, Shown) for one in GALLERY) >= 25


@pytest.mark.parametrize("figure", GALLERY, ids=[one.name for one in GALLERY])
def test_figure_shows_all_its_values_or_is_refused_with_what_to_do(figure: Figure) -> None:
    made = figure.make()
    if isinstance(figure.shown, str):
        with pytest.raises(InvalidComponent) as refused:
            as_component(made, "turn.show")
        assert figure.shown in str(refused.value)
        assert "ui.image(figure.to_image(format='png')" in str(refused.value)
        return
    component = check_component(as_component(made, "turn.show"), empty_ids=True)
    props = component.props
    series = props["datasets"]
    total = sum(value or 0 for one in series for value in one["data"])
    assert (props["type"], len(props["labels"]), len(series)) == figure.shown[:3]
    assert total == pytest.approx(figure.shown.total)
    assert all(len(one["data"]) == len(props["labels"]) for one in series)
