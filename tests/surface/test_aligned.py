"""Columns stand under each other, whatever the characters are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.components import Cell
from arp.surface.aligned import aligned, cell_text, padded, width


def test_a_cell_is_one_line_with_numbers_in_full() -> None:
    values = (None, True, False, 1, -2.5, 1e22, "a\n b\tc ", "")
    assert [cell_text(value) for value in values] == [
        "",
        "true",
        "false",
        "1",
        "-2.5",
        "1e+22",
        "a b c",
        "",
    ]


def test_width_counts_columns_of_a_terminal() -> None:
    assert width("abc") == 3
    assert width("二月") == 4
    assert width("\ufb01") == 1
    assert width("\uff21") == 2
    assert width("e\u0301") == 1
    assert width("a\u200db") == 2


def test_a_line_is_filled_up_on_either_side() -> None:
    assert padded("月", 4) == "月  "
    assert padded("1", 3, right=True) == "  1"


def test_text_stands_left_and_numbers_right_under_a_rule() -> None:
    assert aligned(["Month", "Sales"], [["Jan", 1], ["二月", 2.5], ["Mar", None]]) == [
        "Month  Sales",
        "-----  -----",
        "Jan      1",
        "二月     2.5",
        "Mar",
    ]


def test_numbers_meet_at_their_decimal_points() -> None:
    rows: list[list[Cell]] = [
        [1.5, "a"],
        [12.25, "b"],
        [3, "c"],
        [None, "d"],
        [-1e-07, "e"],
        [1000, "f"],
    ]
    assert aligned(["n", "t"], rows) == [
        "      n  t",
        "-------  -",
        "   1.5   a",
        "  12.25  b",
        "   3     c",
        "         d",
        " -1e-07  e",
        "1000     f",
    ]


def test_rows_may_be_longer_and_shorter_than_the_headers() -> None:
    assert aligned(["a"], [[], ["x", "y"]]) == ["a", "-  -", "", "x  y"]


def test_headers_that_say_nothing_are_left_out() -> None:
    assert aligned(["", ""], [["x", True]]) == ["x  true"]
    assert aligned([], []) == []


@given(st.lists(st.lists(st.integers() | st.floats(allow_nan=False) | st.text())))
def test_every_number_of_every_row_is_on_its_line(rows: list[list[int | float | str]]) -> None:
    lines = aligned([], rows)
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        for value in row:
            if not isinstance(value, str):
                assert repr(value) in line


def test_large_integers_stand_right_as_other_numbers() -> None:
    """They come as text, so that nothing rounds them."""
    assert aligned(["id"], [["9007199254740993"], [1]]) == [
        "              id",
        "----------------",
        "9007199254740993",
        "               1",
    ]
