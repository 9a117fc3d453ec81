"""Columns of data as a chart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from arp import ui
from arp.protocol.errors import InvalidComponent
from arp.protocol.json_value import JsonObject

SALES = pd.DataFrame(
    {
        "month": ["Jan", "Feb", "Mar"],
        "sales": [1.5, float("nan"), float("inf")],
        "cost": [1, 2, 3],
    }
)

LONG = [
    {"month": "Jan", "region": "N", "sales": 1},
    {"month": "Jan", "region": "S", "sales": 2},
    {"month": "Feb", "region": "N", "sales": 3},
]


def chart(*given: Any, **more: Any) -> JsonObject:
    return ui.chart(*given, **more).props


def test_columns_by_name() -> None:
    assert chart("bar", SALES, x="month", y="sales") == {
        "type": "bar",
        "labels": ["Jan", "Feb", "Mar"],
        "datasets": [{"label": "sales", "data": [1.5, None, None]}],
        "x_title": "month",
        "y_title": "sales",
    }


def test_without_names_the_first_texts_are_labels_and_all_numbers_are_values() -> None:
    made = chart("line", pl.DataFrame({"cost": [1, 2], "month": ["Jan", "Feb"], "tax": [0.5, 1]}))
    assert made["labels"] == ["Jan", "Feb"]
    assert [one["label"] for one in made["datasets"]] == ["cost", "tax"]
    assert (made["x_title"], "y_title" in made) == ("month", False)


def test_index_of_pandas_has_the_labels() -> None:
    days = SALES.set_index(pd.date_range("2026-01-01", periods=3, name="day"))
    made = chart("line", days, y=["cost"], x_title="Day")
    assert made["labels"] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert made["x_title"] == "Day"
    grouped = pd.DataFrame(LONG).groupby(["month", "region"]).sum()
    made = chart("bar", grouped)
    assert made["labels"] == ["Feb / N", "Jan / N", "Jan / S"]
    assert made["x_title"] == "month / region"


def test_numbers_alone_are_counted() -> None:
    for given in ([3, 4], np.array([3, 4]), pd.Series([3, 4]), (one for one in (3, 4))):
        made = chart("line", given)
        assert (made["labels"], made["datasets"][0]["data"]) == ([1, 2], [3, 4])


def test_first_column_is_x_of_a_scatter_chart() -> None:
    made = chart("scatter", {"height": [1.6, 1.8], "weight": [60, 80]})
    assert made["labels"] == [1.6, 1.8]
    assert made["datasets"] == [{"label": "weight", "data": [60, 80]}]


def test_rows_of_one_column_are_series() -> None:
    made = chart("bar", LONG, x="month", y="sales", by="region")
    assert made["labels"] == ["Jan", "Feb"]
    assert made["datasets"] == [
        {"label": "N", "data": [1, 3]},
        {"label": "S", "data": [2, None]},
    ]


def test_many_rows_are_thinned_and_the_title_says_so() -> None:
    many = pd.DataFrame({"x": range(50_000)})
    line = chart("line", many, title="Load")
    assert (len(line["labels"]), line["title"]) == (2_000, "Load (one row in 25 of 50,000)")
    assert line["datasets"][0]["data"][:3] == [0, 25, 50]
    bars = chart("bar", many)
    assert (len(bars["labels"]), bars["title"]) == (2_000, "First 2,000 of 50,000 rows")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: chart("bar", SALES, y="month"), "column 'month' is not of numbers; numbers are"),
        (lambda: chart("bar", SALES, y="slaes"), "y: no column 'slaes'; did you mean 'sales'?"),
        (lambda: chart("bar", SALES, x="day"), "x: no column 'day'; there are: month, sales"),
        (lambda: chart("bar", SALES, x=3), "x: expected the name of a column, got number"),
        (lambda: chart("pie", SALES), "a pie shows one column; take y='sales', or another"),
        (lambda: chart("bar", SALES[["month"]]), "none of the columns month has numbers to draw"),
        (lambda: chart("bar", LONG * 2, by="region"), "two rows have region='N' and the label"),
        (lambda: chart("bar", LONG, by="area"), "by: no column 'area'"),
        (lambda: chart("bar", 5), "expected a data frame, an array, or a list of numbers"),
        (lambda: chart("bar", "sales.csv"), "mappings or models, got str; or pass labels=…"),
        (lambda: chart("bar", LONG, labels=["a"]), "give data, or labels and datasets, not both"),
        (lambda: chart("bar", x="month"), "x, y and by are columns of data; give the data too"),
        (lambda: chart("bar"), "give data, or labels=… and datasets=[ui.dataset(…)]"),
        (lambda: chart("bar", pl.LazyFrame({"a": [1]})), "a LazyFrame has no rows yet"),
    ],
)
def test_what_cannot_be_drawn_is_refused_where_it_is_written(make: Any, says: str) -> None:
    with pytest.raises(InvalidComponent) as refused:
        make()
    assert says in str(refused.value)
    assert str(refused.value).startswith("ui.chart: ")


def test_more_series_than_there_are_colours_are_refused() -> None:
    many = [{"at": one, "who": f"w{one}", "n": 1} for one in range(21)]
    with pytest.raises(InvalidComponent, match="by: column 'who' has 21 values; at most 20"):
        ui.chart("line", many, x="at", by="who")
