"""Charts and product cards as tables, and tables that are cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arp.surface.as_table import cards_as_table, chart_as_table, cut_table, not_shown

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
