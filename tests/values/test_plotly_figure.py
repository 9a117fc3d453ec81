"""Figures of plotly as charts."""

from __future__ import annotations

from typing import Any

import plotly.express as px
import plotly.graph_objects as go
import pytest

from arp.protocol.errors import InvalidComponent
from arp.values.display import as_component


def props(figure: Any) -> Any:
    made = as_component(figure, "turn.show")
    assert made.type == "chart"
    return made.props


def test_bars_with_titles() -> None:
    figure = px.bar({"month": ["Jan", "Feb"], "sales": [1.5, 2]}, x="month", y="sales", title="T")
    assert props(figure) == {
        "type": "bar",
        "labels": ["Jan", "Feb"],
        "datasets": [{"label": "", "data": [1.5, 2.0]}],
        "title": "T",
        "x_title": "month",
        "y_title": "sales",
    }


def test_traces_share_labels_and_gaps_stay_gaps() -> None:
    figure = go.Figure(
        [
            go.Scatter(x=["a", "b"], y=[1, None], name="one", mode="lines"),
            go.Scatter(x=["b", "c"], y=[2, 3]),
        ]
    )
    made = props(figure)
    assert (made["type"], made["labels"]) == ("line", ["a", "b", "c"])
    assert made["datasets"] == [
        {"label": "one", "data": [1, None, None]},
        {"label": "trace 2", "data": [None, 2, 3]},
    ]


@pytest.mark.parametrize(
    ("trace", "kind", "labels", "data"),
    [
        (go.Pie(labels=["a", "b"], values=[1, 2]), "pie", ["a", "b"], [1, 2]),
        (go.Bar(y=["a", "b"], x=[1, 2], orientation="h"), "bar", ["a", "b"], [1, 2]),
        (go.Scatter(x=[1, 2], y=[3, 4], mode="markers"), "scatter", [1, 2], [3, 4]),
        (go.Scatter(x=[1, 2], y=[3, 4], fill="tozeroy"), "area", [1, 2], [3, 4]),
        (go.Scatter(y=[3, 4]), "line", [0, 1], [3, 4]),
    ],
)
def test_each_kind_of_trace(trace: Any, kind: str, labels: list[Any], data: list[Any]) -> None:
    made = props(go.Figure(trace))
    assert (made["type"], made["labels"]) == (kind, labels)
    assert made["datasets"][0]["data"] == data


@pytest.mark.parametrize(
    ("figure", "says"),
    [
        (go.Figure(go.Heatmap(z=[[1]])), "turn.show: a plotly figure with a heatmap trace"),
        (go.Figure([go.Bar(y=[1]), go.Scatter(y=[1])]), "with bar, scatter: a chart has one kind"),
        (go.Figure(), "a plotly figure with nothing"),
    ],
)
def test_what_no_chart_shows_is_refused_with_what_to_do(figure: Any, says: str) -> None:
    with pytest.raises(InvalidComponent) as refused:
        as_component(figure, "turn.show")
    assert says in str(refused.value)
    assert "draw it: ui.image(figure.to_image(format='png')" in str(refused.value)


# -- what a chart has other rules for --------------------------------------------------------------


def data(figure: Any) -> list[list[Any]]:
    return [one["data"] for one in props(figure)["datasets"]]


@pytest.mark.parametrize("mode", ["group", "stack", "relative", "overlay"])
def test_bars_of_one_label_are_added_up_as_plotly_stacks_them(mode: str) -> None:
    bars = go.Bar(x=["Sun", "Sun", "Sat", "Sun"], y=[10, 20, 5, None])
    made = props(go.Figure(bars, {"barmode": mode}))
    assert (made["labels"], made["datasets"][0]["data"]) == (["Sun", "Sat"], [30, 5])


def test_slices_of_one_label_are_added_up_and_labels_alone_are_counted() -> None:
    made = props(go.Figure(go.Pie(labels=["a", "b", "a"], values=[1, 2, 3])))
    assert (made["labels"], made["datasets"][0]["data"]) == (["a", "b"], [4, 2])
    assert data(go.Figure(go.Pie(labels=["a", "b", "a"]))) == [[2, 1]]


def test_hidden_traces_are_left_out() -> None:
    hidden = [go.Bar(x=[1], y=[2], visible=False), go.Bar(x=[1], y=[4], visible="legendonly")]
    assert data(go.Figure([*hidden, go.Bar(x=[1], y=[3])])) == [[3]]


@pytest.mark.parametrize(
    ("trace", "labels", "values"),
    [
        (go.Scatter(y=[3, 4], x0=10, dx=5), [10, 15], [3, 4]),
        (go.Scatter(x=[3, 4], y0=1, dy=0.5), [3, 4], [1, 1.5]),
        (go.Bar(x=[3, 4], y0=7, orientation="h"), [7, 8], [3, 4]),
        (go.Bar(x=[3, 4]), [0, 1], [3, 4]),
        (go.Bar(x=["a", "b"], y=["3", " 4.5 "]), ["a", "b"], [3, 4.5]),
        (go.Bar(x=["a", "b"], y=["", float("nan")]), ["a", "b"], [None, None]),
        (go.Bar(x=[2, 1], y=[5, 6]), [1, 2], [6, 5]),
        (go.Bar(x=["b", "a"], y=[5, 6]), ["b", "a"], [5, 6]),
        (go.Bar(x=["a", None], y=[5, 6]), ["a"], [5]),
        (go.Scatter(x=[3, 1], y=[5, 6], mode="markers"), [3, 1], [5, 6]),
        (go.Scatter(x=[1, 1], y=[5, 6], mode="markers"), [1, 1], [5, 6]),
    ],
)
def test_values_and_labels_are_those_of_the_figure(
    trace: Any, labels: list[Any], values: list[Any]
) -> None:
    made = props(go.Figure(trace))
    assert (made["labels"], made["datasets"][0]["data"]) == (labels, values)


def test_titles_of_horizontal_bars_change_places_too() -> None:
    titles = {"xaxis": {"title": {"text": "Total"}}, "yaxis": {"title": {"text": "<b>Day</b>"}}}
    made = props(go.Figure(go.Bar(x=[3], y=["a"], orientation="h"), titles))
    assert (made["x_title"], made["y_title"]) == ("Day", "Total")


def test_lines_with_other_places_share_them_in_order() -> None:
    """Otherwise a line would go back: labels are drawn one after the other."""
    made = props(go.Figure([go.Scatter(x=[1, 3], y=[1, 3]), go.Scatter(x=[2, 4], y=[2, 4])]))
    assert made["labels"] == [1, 2, 3, 4]
    assert data(go.Figure([go.Scatter(x=[1, 3], y=[1, 3]), go.Scatter(x=[2, 4], y=[2, 4])])) == [
        [1, None, 3, None],
        [None, 2, None, 4],
    ]
    days = [go.Bar(x=["2026-02-01"], y=[2]), go.Bar(x=["2026-01-01"], y=[1])]
    assert props(go.Figure(days))["labels"] == ["2026-01-01", "2026-02-01"]


def test_order_of_categories_is_that_of_the_axis() -> None:
    axis = {"xaxis": {"categoryarray": ["c", "b"], "categoryorder": "array"}}
    made = props(go.Figure(go.Bar(x=["a", "b", "c"], y=[1, 2, 3]), axis))
    assert (made["labels"], made["datasets"][0]["data"]) == (["c", "b", "a"], [3, 2, 1])


def test_points_of_several_traces_keep_their_places() -> None:
    figure = go.Figure(
        [go.Scatter(x=[1, 1], y=[1, 2], mode="markers"), go.Scatter(x=[1], y=[9], mode="markers")]
    )
    assert props(figure)["labels"] == [1, 1, 1]
    assert data(figure) == [[1, 2, None], [None, None, 9]]


def test_many_points_are_thinned_and_the_title_says_so() -> None:
    made = props(go.Figure(go.Scatter(y=list(range(50_000))), {"title": {"text": "Load"}}))
    assert (len(made["labels"]), made["title"]) == (2_000, "Load (one point in 25 of 50,000)")


@pytest.mark.parametrize(
    ("figure", "says"),
    [
        (go.Figure(go.Bar(x=["a", "a"], y=[1, -1])), "positive and negative bars of the label 'a'"),
        (go.Figure(go.Bar(x=["a"], y=["much"])), "'much' in y, which is not a number"),
        (go.Figure(go.Bar(x=["a"], y=[True])), "True in y, which is not a number"),
        (
            go.Figure(go.Scatter(y=[1], x0="2026-01-01")),
            "x0='2026-01-01': give x, a value for each",
        ),
        (go.Figure(go.Scatter(y=[1], mode="text")), "mode='text': a chart has no texts"),
        (go.Figure(go.Bar(x=["a"], y=[1], visible=False)), "with hidden traces only"),
        (
            go.Figure(go.Bar(x=list(map(str, range(2001))), y=[1] * 2001)),
            "2,001 bar labels; a chart",
        ),
        (
            go.Figure([go.Bar(x=["a"], y=[1]), go.Bar(x=[1], y=["a"], orientation="h")]),
            "vertical and horizontal bars",
        ),
        (go.Figure(go.Scatter(x=["a", "a"], y=[1, 2], mode="markers")), "several values at one x"),
    ],
)
def test_what_a_chart_would_show_otherwise_is_refused(figure: Any, says: str) -> None:
    with pytest.raises(InvalidComponent) as refused:
        as_component(figure, "turn.show")
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "trace",
    [
        go.Bar(x=["a"], y=[2**53]),
        go.Bar(x=["a", "a"], y=[2**52, 2**52]),
        go.Scatter(x=[1, 2], y=["9007199254740993", "1"]),
        go.Scatter(x=[1], y0=2**60),
    ],
)
def test_integers_that_renderers_would_round_are_refused(trace: Any) -> None:
    with pytest.raises(InvalidComponent, match="which many renderers would round; give it as"):
        as_component(go.Figure(trace), "turn.show")


def test_large_integers_as_labels_are_text() -> None:
    assert props(go.Figure(go.Bar(x=[2**60], y=[1])))["labels"] == [str(2**60)]
