"""Charts and product cards as tables, and tables that are cut."""

from __future__ import annotations

from typing import Any

from arp.surface.as_table import cards_as_table, chart_as_table, cut_table, not_shown


def test_a_chart_becomes_a_row_for_each_label_and_a_column_for_each_dataset() -> None:
    chart = {
        "type": "bar",
        "title": "Sales",
        "labels": ["Jan", 2],
        "datasets": [{"label": "2025", "data": [1, None]}, {"data": [2.5, 3]}],
        "height": 300,
    }
    assert chart_as_table(chart) == {
        "title": "Sales",
        "headers": ["", "2025", "#2"],
        "rows": [["Jan", 1, 2.5], [2, None, 3]],
    }


def test_a_chart_with_more_values_than_labels_loses_none() -> None:
    chart = {"type": "scatter", "labels": [0.5], "datasets": [{"label": "y", "data": [1, 2]}]}
    assert chart_as_table(chart) == {"headers": ["x", "y"], "rows": [[0.5, 1], ["", 2]]}
    longer = {"type": "line", "labels": ["a", "b"], "datasets": [{"label": "y", "data": [1]}]}
    assert chart_as_table(longer) == {"headers": ["", "y"], "rows": [["a", 1], ["b", None]]}


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
