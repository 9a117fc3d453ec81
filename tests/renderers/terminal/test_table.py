"""Tables: aligned, fitted, paged, readable when they are too wide."""

from __future__ import annotations

import pytest

from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp_terminal.drawing.table import fitted
from tests.renderers.terminal.drawing import drawn, painted, picture


def test_numbers_stand_right_wide_characters_keep_the_columns_and_a_marked_row_has_a_sign() -> None:
    rows = [["chevrolet", 18, 1970], ["日本車", 15.5, None], ["👨‍👩‍👧 x", -3, 2]]
    headers = ["name", "mpg", "年"]
    assert drawn("table", title="Cars", headers=headers, rows=rows, highlight=[1]) == picture(
        """
        Cars
          name        mpg    年
          ─────────  ────  ────
          chevrolet  18    1970
        ▸ 日本車     15.5     –
          👨‍👩‍👧 x       -3       2
        """
    )


def test_numbers_meet_at_their_decimal_points() -> None:
    rows = [["a", 1.5], ["b", 12.25], ["c", 3], ["d", None], ["e", 1e-7]]
    assert drawn("table", headers=["", "kg"], rows=rows) == picture(
        """
              kg
        ─  ─────
        a   1.5
        b  12.25
        c   3
        d      –
        e  1e-07
        """
    )


def test_large_integers_show_all_their_digits_among_other_numbers() -> None:
    rows = [["9007199254740993"], [9007199254740993], ["-9223372036854775808"], [1]]
    assert drawn("table", headers=["id"], rows=rows) == picture(
        """
                          id
        ────────────────────
            9007199254740993
            9007199254740993
        -9223372036854775808
                           1
        """
    )


def test_a_column_too_narrow_for_the_blanks_shows_the_number_without_them() -> None:
    rows = [["word " * 4, 123456], ["word " * 4, 1.123456]]
    assert drawn("table", 20, headers=["", "n"], rows=rows) == picture(
        """
                           n
        ─────────  ─────────
        word wor…     123456
        word wor…   1.123456
        """
    )


def test_without_unicode_only_ascii_is_drawn() -> None:
    rows = [["a name that is too long", 1]]
    found = drawn("table", 20, unicode=False, headers=["name", "n"], rows=rows, highlight=[0])
    assert found == picture(
        """
          name             n
          ---------------  -
        > a name that is~  1
        """
    )


def test_columns_that_are_too_wide_are_cut_the_widest_first() -> None:
    rows = [["a fairly long name", "a note that is long", 1]]
    assert drawn("table", 24, headers=["name", "note", "n"], rows=rows) == picture(
        """
        name        note       n
        ──────────  ─────────  ─
        a fairly …  a note t…  1
        """
    )


def test_more_columns_than_fit_are_shown_as_records() -> None:
    headers = ["alpha", "beta", "gamma", "delta", "eps"]
    rows = [["aaaaaaaa", "bbbbbbbb", 1, 2, 3], ["a", None, 4, 5, 6]]
    assert drawn("table", 24, headers=headers, rows=rows) == picture(
        """
        alpha  aaaaaaaa
        beta   bbbbbbbb
        gamma  1
        delta  2
        eps    3
        ────────────────────
        alpha  a
        beta   –
        gamma  4
        delta  5
        eps    6
        """
    )


def test_rows_may_be_longer_or_shorter_than_the_headers() -> None:
    assert drawn("table", headers=["a"], rows=[[1, 2], [3]]) == picture(
        """
        a
        ─  ─
        1  2
        3
        """
    )


def test_an_empty_table_says_so() -> None:
    assert drawn("table", headers=["n"], rows=[]) == "n\n─\nno rows"


def test_each_tab_stands_under_its_name() -> None:
    tabs = [
        {"name": "One", "headers": ["a"], "rows": [[1]]},
        {"name": "Two", "headers": ["b"], "rows": [["x"]]},
    ]
    assert drawn("table", headers=[], rows=[], tabs=tabs) == picture(
        """
        One
        a
        ─
        1

        Two
        b
        ─
        x
        """
    )


def test_a_cell_stays_on_its_line_whatever_is_in_it() -> None:
    rows = [["two\nlines"], ["a\tb"], [True], [{"a": 1}]]
    assert drawn("table", headers=["t"], rows=rows) == picture(
        """
        t
        ─────────
        two␊lines
        a b
        true
        {"a": 1}
        """
    )


def test_a_column_of_words_and_numbers_is_a_column_of_words() -> None:
    assert drawn("table", headers=["id"], rows=[["x12"], [7]]) == "id\n───\nx12\n7"


def test_ten_thousand_rows_are_paged() -> None:
    """T14, T15: only the first page is drawn."""
    rows = [[number, f"name {number}", number * 1.5] for number in range(10_000)]
    component = Component("t", "table", {"headers": ["n", "name", "x"], "rows": rows})
    lines = painted(component, width=80, colour=False)
    assert len(lines) == 103
    assert lines[2] == " 0  name 0     0"
    assert lines[101] == "99  name 99  148.5"
    assert lines[102] == "… 9,900 more rows"


def test_a_pipe_gets_every_row() -> None:
    rows = [[number] for number in range(150)]
    lines = painted(
        Component("t", "table", {"headers": ["n"], "rows": rows}), colour=False, max_rows=None
    )
    assert lines[-1] == "149"
    assert len(lines) == 152


@pytest.mark.parametrize(
    ("wanted", "room", "widths"),
    [
        ([3, 4], 10, [3, 4]),
        ([10, 10], 16, [8, 8]),
        ([2, 20, 20], 20, [2, 9, 9]),
        ([2, 20, 21], 21, [2, 10, 9]),
        ([9, 9, 9], 14, None),
    ],
)
def test_the_widest_columns_give_way_first(
    wanted: list[int], room: int, widths: list[int] | None
) -> None:
    assert fitted(wanted, room) == widths


def test_rows_that_can_be_selected_have_their_numbers() -> None:
    rows: list[Json] = [["Ann", 3], ["Bob", 51]]
    assert drawn(
        "table", title="Who?", headers=["name", "age"], rows=rows, selectable="many", highlight=[1]
    ) == picture(
        """
        ┃ Who?
        ┃   #  name  age
        ┃   ─  ────  ───
        ┃   1  Ann     3
        ┃ ▸ 2  Bob    51
        """
    )


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (1, "✓ Who? → 2 Bob"),
        ([1, 0], "✓ Who? → 2 Bob, 1 Ann"),
        ([], "✓ Who? → none"),
        (list(range(7)), "✓ Who? → 1 Ann, 2 Bob, 3, 4, 5 and 2 more"),
        ("odd", "✓ Who? → odd"),
    ],
)
def test_a_selection_that_was_made_is_one_line(answer: Json, shown: str) -> None:
    rows: list[Json] = [["Ann", 3], ["Bob", 51]]
    about: JsonObject = {
        "title": "Who?",
        "headers": ["name", "age"],
        "rows": rows,
        "selectable": "many",
    }
    assert drawn("table", **about, state="answered", answer=answer) == shown


def test_a_withdrawn_selection_says_so() -> None:
    about: JsonObject = {"headers": ["n"], "rows": [[1]], "selectable": "one", "state": "cancelled"}
    assert drawn("table", **about) == "○ Question (withdrawn)"


def test_a_wide_table_is_cut_into_blocks_that_can_be_read() -> None:
    """Nine columns at 80 cells had seven characters each; 24 were 2,400 lines."""
    heads = [f"Column {n} of nine" for n in range(9)]
    nine = drawn("table", 80, headers=heads, rows=[[f"value {n}" for n in range(9)]] * 3)
    assert "columns 1, 2, 3, 4, 5" in nine
    assert nine.count("value 0") == 3 * nine.count("columns 1,")
    assert all(f"value {n}" in nine for n in range(9))
    wide = [f"column {n}" for n in range(24)]
    rows = [[f"value {row}.{n}" for n in range(24)] for row in range(100)]
    lines = drawn("table", 80, headers=wide, rows=rows).splitlines()
    assert len(lines) < 150
    assert lines[-1] == "… 80 more rows"
    whole = drawn("table", 400, headers=wide, rows=rows)
    assert "columns 1" not in whole
    assert len(whole.splitlines()) == 102


def test_headers_with_the_same_beginning_stay_different() -> None:
    heads = [f"Average temperature of {town}" for town in ("Oslo", "Bergen", "Moss")]
    first = drawn("table", 40, headers=heads, rows=[[1, 2, 3]]).splitlines()[0]
    assert all(town in first for town in ("Oslo", "rgen", "Moss"))
