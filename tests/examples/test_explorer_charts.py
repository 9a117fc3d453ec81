"""The chart fits the result and holds exactly its numbers, or there is none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from asks import ChartWish
from bars import chart_in_letters
from charts import ChartPlan, Series, choose_chart, thinned
from connection import Cell, Result, plain_cell
from findings import size_of, summary


def result(columns: str, *rows: Sequence[object], truncated: bool = False) -> Result:
    """A result with these columns, separated by spaces."""
    return Result(
        "SELECT",
        tuple(columns.split()),
        [[plain_cell(cell) for cell in row] for row in rows],
        truncated,
        0.0,
    )


BY_KIND = result("kind weight", ["apple", 3], ["pear", 1.5], ["plum", None])
BY_MONTH = result("month low high", ["Jan", 1, 4], ["Feb", 2, 5], ["Mar", 3, 6])


def test_labels_of_text_make_bars() -> None:
    assert choose_chart(BY_KIND) == ChartPlan(
        "bar", ("apple", "pear", "plum"), (Series("weight", (3, 1.5, None)),)
    )


def test_labels_along_time_make_lines_a_series_for_each_column() -> None:
    assert choose_chart(BY_MONTH) == ChartPlan(
        "line",
        ("Jan", "Feb", "Mar"),
        (Series("low", (1, 2, 3)), Series("high", (4, 5, 6))),
    )


@pytest.mark.parametrize(
    "labels",
    [
        ["2012", "2013", "2014"],
        ["2012-01", "2012-02", "2012-03"],
        ["2012-01-01", "2012-01-02 10:00", "2012-01-03"],
        ["2012-Q1", "2012-Q2", "2012-Q3"],
        ["00", "01", "02"],
    ],
)
def test_years_months_days_quarters_and_hours_are_time(labels: list[str]) -> None:
    chart = choose_chart(result("t n", *[[label, 1] for label in labels]))
    assert chart is not None
    assert chart.kind == "line"


def test_days_of_the_week_are_no_course_of_time() -> None:
    chart = choose_chart(result("weekday n", ["Mon", 1], ["Tue", 2], ["Wed", 3]))
    assert chart is not None
    assert chart.kind == "bar"


def test_two_columns_of_numbers_make_a_scatter_with_x_as_labels() -> None:
    assert choose_chart(result("x y", [3, 30], [1, 10], [2, None], [1, 11])) == ChartPlan(
        "scatter", (3, 1, 1), (Series("y", (30, 10, 11)),)
    )


def test_numbers_that_rise_from_row_to_row_are_labels() -> None:
    assert choose_chart(result("from count", [0.5, 7], [1.5, 9])) == ChartPlan(
        "bar", (0.5, 1.5), (Series("count", (7, 9)),)
    )


def test_two_labels_make_a_series_for_each_value_of_the_second() -> None:
    rows: list[list[Cell]] = [["2012", "a", 1], ["2012", "b", 2], ["2013", "b", 3]]
    assert choose_chart(result("year kind n", *rows)) == ChartPlan(
        "bar", ("2012", "2013"), (Series("a", (1, None)), Series("b", (2, 3)))
    )


@pytest.mark.parametrize(
    ("wish", "kind"), [("bar", "bar"), ("line", "line"), ("area", "area"), ("scatter", "scatter")]
)
def test_a_wish_is_followed(wish: ChartWish, kind: str) -> None:
    chart = choose_chart(result("x y", [1, 2], [2, 3]), wish)
    assert chart is not None
    assert chart.kind == kind


def test_a_pie_needs_one_series_without_negative_numbers() -> None:
    pie = choose_chart(result("kind n", ["a", 1], ["b", 2]), "pie")
    negative = choose_chart(result("kind n", ["a", -1], ["b", 2]), "pie")
    several = choose_chart(BY_MONTH, "pie")
    assert pie == ChartPlan("pie", ("a", "b"), (Series("n", (1, 2)),))
    assert negative is not None
    assert several is not None
    assert (negative.kind, several.kind) == ("bar", "line")


def test_a_pie_with_too_many_slices_puts_the_rest_together() -> None:
    pie = choose_chart(result("kind n", *[[f"k{n}", n] for n in range(1, 15)]), "pie")
    assert pie is not None
    assert pie.labels[-1] == "other"
    assert len(pie.labels) == 12
    assert pie.series[0].data[-1] == 1 + 2 + 3
    assert sum(value or 0 for value in pie.series[0].data) == 105


@pytest.mark.parametrize(
    "nothing",
    [
        result("kind n"),
        result("kind n", ["a", 1]),
        result("a b", ["x", "y"], ["z", "w"]),
        result("id name", [1, "a"], [2, "b"]),
        result("a b c d e f", ["x", 1, 2, 3, 4, 5], ["y", 1, 2, 3, 4, 5]),
        result("kind n", *[[f"k{n}", n] for n in range(61)]),
        result("a n", ["x", None], ["y", None]),
        result("", []),
    ],
)
def test_there_is_no_chart_where_a_table_says_more(nothing: Result) -> None:
    assert choose_chart(nothing) is None


def test_no_chart_is_made_where_none_is_wished() -> None:
    assert choose_chart(BY_KIND, "none") is None


def test_the_focus_picks_the_column_that_was_asked_for() -> None:
    wide = result("name a b c d e", ["x", 1, 2, 3, 4, 5], ["y", 6, 7, 8, 9, 10])
    assert choose_chart(wide, focus="c") == ChartPlan("bar", ("x", "y"), (Series("c", (3, 8)),))


def test_long_courses_are_thinned_out_evenly_from_the_first() -> None:
    assert thinned([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 5) == [0, 2, 4, 6, 8]
    assert thinned([1, 2], 5) == [1, 2]
    chart = choose_chart(result("day n", *[[f"{n:04}", n] for n in range(1000, 3000)]), "line")
    assert chart is not None
    assert (len(chart.labels), chart.labels[:2]) == (500, ("1000", "1004"))


def test_a_label_that_is_missing_or_long_stays_readable() -> None:
    chart = choose_chart(result("kind n", [None, 1], ["x" * 100, 2]))
    assert chart is not None
    assert chart.labels == ("(none)", "x" * 60)


def test_a_chart_in_letters_has_every_number() -> None:
    several = choose_chart(BY_MONTH)
    single = ChartPlan("bar", ("a", "bee"), (Series("n", (-2, 4)),))
    assert several is not None
    assert chart_in_letters(several) == (
        "Jan low  ████ 1\n"
        "    high ████████████████ 4\n"
        "Feb low  ████████ 2\n"
        "    high ████████████████████ 5\n"
        "Mar low  ████████████ 3\n"
        "    high ████████████████████████ 6"
    )
    assert chart_in_letters(single) == "a   ░░░░░░░░░░░░ -2\nbee ████████████████████████ 4"


def test_gaps_and_nothing_are_letters_too() -> None:
    assert chart_in_letters(ChartPlan("bar", ("a", "b"), (Series("n", (None, 0)),))) == "a –\nb 0"


def test_what_is_too_much_for_letters_stays_a_table() -> None:
    long = ChartPlan("bar", tuple(range(41)), (Series("n", (1,) * 41),))
    points = ChartPlan("scatter", (1, 2), (Series("n", (1, 2)),))
    assert (chart_in_letters(long), chart_in_letters(points)) == (None, None)


def test_a_summary_tells_the_ends_of_each_series() -> None:
    assert summary(BY_KIND, choose_chart(BY_KIND)) == (
        "**Weight** is highest for apple (3) and lowest for pear (1.5)."
    )
    assert summary(BY_MONTH, choose_chart(BY_MONTH)) == (
        "**Low** is highest for Mar (3) and lowest for Jan (1). "
        "**High** is highest for Mar (6) and lowest for Jan (4)."
    )


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (result("n", [1234]), "n is **1,234**."),
        (result("a b", [1.23456789, None]), "a is **1.23457**, b is **unknown**."),
        (result("a", ["x"]), "a is **x**."),
        (result("a b"), "There is no row like that."),
        (result("a", ["x"], ["y"]), "That is 2 rows."),
        (result("a", ["x"], ["y"], truncated=True), "That is the first 2 rows."),
        (result("kind n", ["a", 1], ["b", 1]), "That is 2 rows."),
    ],
)
def test_a_summary_tells_what_there_is(answer: Result, told: str) -> None:
    assert summary(answer, choose_chart(answer)) == told


def test_the_size_of_a_result_is_described_in_words() -> None:
    assert [size_of(result("a", *rows)) for rows in ([], [[1]], [[1], [2]])] == [
        "no row",
        "1 row",
        "2 rows",
    ]
