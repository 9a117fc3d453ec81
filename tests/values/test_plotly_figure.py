"""Figures of plotly as charts."""

from __future__ import annotations

from typing import Any

import plotly.express as px
import plotly.graph_objects as go
import pytest

from arp.protocol.errors import InvalidComponent
from arp.values.shown import as_component


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
