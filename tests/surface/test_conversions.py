"""Nothing is lost on the way down the catalog's chain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.surface import conversions
from arp.surface.conversions import (
    cards_as_table,
    chart_as_table,
    cut_table,
    diff_as_code,
    not_shown,
    unified,
)

CHARTS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "schemas" / "cases" / "chart_tables.json").read_text("utf-8")
)


@pytest.mark.parametrize("case", CHARTS, ids=[case["name"] for case in CHARTS])
def test_a_chart_becomes_the_table_of_the_shared_case(case: dict[str, Any]) -> None:
    table = {"headers": case["headers"], "rows": case["rows"]}
    assert chart_as_table(case["props"]) == table
    titled = {**case["props"], "title": "Sales", "height": 300}
    assert chart_as_table(titled) == {"title": "Sales", **table}


def test_an_empty_chart_becomes_an_empty_table() -> None:
    chart: dict[str, Any] = {"type": "pie", "labels": [], "datasets": []}
    assert chart_as_table(chart) == {"headers": [""], "rows": []}


def test_product_cards_become_a_table_of_what_any_of_them_says() -> None:
    cards = {
        "title": "Shoes",
        "cards": [
            {"name": "A", "price": 9.5, "image": "data:image/png;base64,aGk=", "badge": "new"},
            {"name": "B", "image": "https://example.com/b.png", "url": "https://example.com/b"},
        ],
    }
    assert cards_as_table(cards) == {
        "title": "Shoes",
        "headers": ["Name", "Price", "Badge", "Link", "Image"],
        "rows": [
            ["A", 9.5, "new", None, None],
            ["B", None, None, "https://example.com/b", "https://example.com/b.png"],
        ],
    }
    assert cards_as_table({"cards": []}) == {"headers": [], "rows": []}


def test_a_long_table_is_cut_with_a_mark_that_says_how_many_are_missing() -> None:
    table = {
        "title": "T",
        "headers": ["a", "b"],
        "rows": [[1, 2], [3, 4], [5, 6], [7, 8]],
        "highlight": [0, 3],
    }
    assert cut_table(table, 2) == {
        "title": "T",
        "headers": ["a", "b"],
        "rows": [[1, 2], [3, 4], ["… 2 more rows not shown", None]],
        "highlight": [0],
    }
    assert table["rows"] == [[1, 2], [3, 4], [5, 6], [7, 8]]


def test_a_table_that_fits_is_given_as_it_is() -> None:
    table = {"headers": [], "rows": [[1]], "tabs": [{"name": "n", "headers": [], "rows": []}]}
    assert cut_table(table, 1) is table
    assert cut_table({"headers": [], "rows": [[1], [2]]}, 1)["rows"] == [
        [1],
        ["… 1 more row not shown"],
    ]


def test_tables_in_tabs_are_cut_each_by_itself() -> None:
    long = {"name": "long", "headers": ["a"], "rows": [[1], [2], [3]]}
    short = {"name": "short", "headers": ["a"], "rows": [[1]]}
    table = {"headers": [], "rows": [], "tabs": [long, short]}
    assert cut_table(table, 1) == {
        "headers": [],
        "rows": [],
        "tabs": [
            {"name": "long", "headers": ["a"], "rows": [[1], ["… 2 more rows not shown"]]},
            short,
        ],
    }


def test_one_missing_row_is_said_in_the_singular() -> None:
    assert not_shown(1) == "… 1 more row not shown"


def test_a_cut_table_of_rows_to_select_has_no_row_that_is_none() -> None:
    """Who selected the mark would select a row that is not shown."""
    table = {"headers": ["n"], "rows": [[1], [2], [3]], "selectable": "many"}
    assert cut_table(table, 2) == {**table, "title": "… 1 more row not shown", "rows": [[1], [2]]}
    titled = {**table, "title": "Pick"}
    assert cut_table(titled, 1)["title"] == "Pick (… 2 more rows not shown)"


LINES = "".join(f"line {n}\n" for n in range(1, 10))


def test_a_diff_becomes_a_code_block_in_the_language_diff() -> None:
    diff = {
        "title": "Config",
        "before": "a\nb\nc\n",
        "after": "a\nB\nc\n",
        "before_label": "old.cfg",
        "after_label": "new.cfg",
        "language": "ini",
    }
    assert diff_as_code(diff) == {
        "title": "Config",
        "language": "diff",
        "code": "--- old.cfg\n+++ new.cfg\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c",
    }
    assert diff_as_code({"before": "a", "after": "b"}) == {
        "language": "diff",
        "code": "--- before\n+++ after\n@@ -1 +1 @@\n-a\n+b",
    }


def test_equal_texts_have_no_difference() -> None:
    assert unified("a\n", "a\n", "x", "y") == ["--- x", "+++ y", "(no difference)"]


def test_a_missing_last_line_break_is_said_where_only_one_text_misses_it() -> None:
    assert unified("a\nb", "a\nb\n", "x", "y") == [
        "--- x",
        "+++ y",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b\n\\ No newline at end of file",
        "+b",
    ]
    assert unified("a\n", "b", "x", "y")[-1] == "+b\n\\ No newline at end of file"
    assert unified("", "a", "x", "y") == ["--- x", "+++ y", "@@ -0,0 +1 @@", "+a"]


def test_texts_too_long_to_compare_are_shown_as_replaced_between_their_equal_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversions, "MAX_COMPARED", 3)
    after = LINES.replace("line 5\n", "five\n").replace("line 6\n", "six\n")
    assert unified(LINES, after, "x", "y") == [
        "--- x",
        "+++ y",
        "@@ -2,8 +2,8 @@",
        " line 2",
        " line 3",
        " line 4",
        "-line 5",
        "-line 6",
        "+five",
        "+six",
        " line 7",
        " line 8",
        " line 9",
    ]


text = st.text(alphabet="ab\n", max_size=12)


@given(text, text, st.sampled_from([0, 1_000_000]))
def test_what_is_marked_leads_from_one_text_to_the_other(
    before: str, after: str, most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversions, "MAX_COMPARED", most)
        lines = [line.split("\n")[0] for line in unified(before, after, "x", "y")[2:]]
    removed = [line[1:] for line in lines if line.startswith("-")]
    added = [line[1:] for line in lines if line.startswith("+")]
    for line in removed:
        assert line in before.split("\n")
    for line in added:
        assert line in after.split("\n")
    grown = len(after.removesuffix("\n").split("\n")) if after else 0
    shrunk = len(before.removesuffix("\n").split("\n")) if before else 0
    assert len(added) - len(removed) == grown - shrunk
