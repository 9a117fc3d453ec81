"""Columns of data as a chart."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
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
        (lambda: chart("pie", SALES), "a pie shows one column; use y='sales', or another"),
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


# -- names and values that are alike ---------------------------------------------------------------


def test_columns_of_one_name_have_their_own_numbers() -> None:
    frame = pd.DataFrame([["a", 1, 2], ["b", 3, 4]], columns=["m", "v", "v"])
    assert chart("bar", frame)["datasets"] == [
        {"label": "v", "data": [1, 3]},
        {"label": "v", "data": [2, 4]},
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda frame: ui.chart("bar", frame, y="1"),
        lambda frame: ui.chart("bar", frame, x="1"),
        lambda frame: ui.chart("bar", frame, y="m", by="1"),
        lambda frame: ui.table(["m", "1"], frame),
    ],
)
def test_a_name_of_two_columns_is_refused_where_it_is_written(make: Any) -> None:
    for names in (["m", 1, "1"], ["m", "1", "1"]):
        frame = pd.DataFrame([[5, 1, 2]], columns=names)
        with pytest.raises(InvalidComponent, match="2 columns are named '1'; give each its own"):
            make(frame)
    with pytest.raises(InvalidComponent, match="2 columns are named '1'; give each its own"):
        make([{"m": 5, 1: 1, "1": 2}])


def test_a_column_without_a_name_has_none_and_is_no_column_0() -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=pd.Index([0, None, np.nan], dtype=object))
    made = chart("bar", frame)["datasets"]
    assert [(one["label"], one["data"]) for one in made] == [
        ("0", [1]),
        ("(unnamed)", [2]),
        ("(unnamed)", [3]),
    ]


def test_series_of_values_that_would_be_named_alike_are_refused() -> None:
    rows = [{"at": "a", "by": 1, "n": 1}, {"at": "b", "by": "1", "n": 2}]
    with pytest.raises(InvalidComponent, match=r"by: column 'by' has different .* named '1'"):
        ui.chart("bar", rows, x="at", y="n", by="by")
    rows = [{"at": 1, "by": "a", "n": 1}, {"at": "1", "by": "b", "n": 2}]
    with pytest.raises(InvalidComponent, match=r"x: column 'at' has different .* named '1'"):
        ui.chart("bar", rows, x="at", y="n", by="by")


def test_rows_without_a_value_of_by_are_a_series_of_their_own() -> None:
    frame = pd.DataFrame({"at": ["a", "a", "b"], "by": ["x", None, None], "n": [1, 2, 3]})
    assert chart("bar", frame, x="at", y="n", by="by")["datasets"] == [
        {"label": "x", "data": [1, None]},
        {"label": "(missing)", "data": [2, 3]},
    ]
    whole = pd.DataFrame({"at": ["a", "a"], "by": [1.0, 1], "n": [1, 2]})
    with pytest.raises(InvalidComponent, match="two rows have by=1"):
        ui.chart("bar", whole, x="at", y="n", by="by")


def test_averages_of_databases_are_drawn_and_a_table_keeps_their_digits() -> None:
    rows = [{"m": "a", "v": Decimal("33.3333333333333333")}, {"m": "b", "v": Decimal(20)}]
    assert chart("bar", rows)["datasets"][0]["data"] == [33.333333333333336, 20]
    assert ui.table(rows).props["rows"] == [["a", "33.3333333333333333"], ["b", 20]]
    assert chart("line", [Decimal("0.1"), Fraction(1, 4)])["datasets"][0]["data"] == [0.1, 0.25]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: chart("bar", [{"a": "x", "ok": True}], y="ok"), "'ok' is of True and False; draw"),
        (lambda: chart("line", [timedelta(1)]), "'value' is of durations; draw numbers, as with"),
        (lambda: chart("bar", [{"t": timedelta(1)}], y="t"), "'t' is of durations; draw numbers"),
        (lambda: chart("bar", [Decimal("1E+400")]), "has 1E+400, which is too large for a float"),
        (lambda: chart("bar", [2**53]), "y: column 'value' has 9007199254740992, an integer"),
        (
            lambda: chart("scatter", {"x": [2**53, 1], "y": [1, 2]}),
            "x: column 'x' has 9007199254740992, an integer beyond",
        ),
        (
            lambda: chart("scatter", {"x": [1, None], "y": [1, 2]}),
            "x: column 'x' has rows without a number; leave them out first",
        ),
        (lambda: chart("bar", [{"a": 1}], y=1), "y: expected the name of a column, got number"),
        (lambda: chart("bar", {"a": []}), "the data has no rows; show a text instead"),
        (lambda: chart("bar", ["1", "2"]), "make some first, as with pd.to_numeric"),
    ],
)
def test_what_is_no_number_to_draw_is_refused_with_what_to_do(make: Any, says: str) -> None:
    with pytest.raises(InvalidComponent) as refused:
        make()
    assert says in str(refused.value)


def test_large_integers_are_labels_as_text() -> None:
    made = chart("bar", {"id": [2**60, 1], "n": [1, 2]}, x="id")
    assert made["labels"] == [str(2**60), 1]


def test_columns_with_nothing_but_gaps_can_be_named() -> None:
    assert chart("line", {"x": ["a"], "n": [None]}, y="n")["datasets"][0]["data"] == [None]
