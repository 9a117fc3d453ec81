"""Every component type at a fixed width, written out by hand; levels and fallbacks."""

from __future__ import annotations

import pytest

from arp.protocol.catalog import CATALOG
from arp.protocol.components import AUTHOR, Component
from arp.protocol.json_value import JsonObject
from arp_terminal import render as render_module
from tests.renderers.terminal.drawing import drawn, painted, picture


def plain(component: Component, level: str = "standard") -> list[str]:
    return painted(component, width=60, colour=False, level=level)


def test_every_core_component_has_a_drawing() -> None:
    assert set(render_module._DRAWINGS) == {*CATALOG, AUTHOR}


def test_text_is_shown_as_it_is_written() -> None:
    assert drawn("text", content="# no *markdown*\n  here") == "# no *markdown*\n  here"
    assert drawn("text", text="the alias") == "the alias"


def test_text_that_says_so_is_markdown() -> None:
    assert drawn("text", content="**bold**", format="markdown") == "bold"
    assert drawn("markdown", content="# Head") == "Head\n━━━━"


def test_status_card() -> None:
    assert drawn(
        "status-card",
        status="error",
        title="Query failed",
        message="no such table: cars",
        sections=[
            {"label": "SQL", "content": "SELECT *\nFROM cars", "style": "code"},
            {"label": "Hint", "content": "there is: weather"},
        ],
    ) == picture(
        """
        ┃ ✗ Query failed
        ┃ no such table: cars
        ┃ SQL
        ┃   SELECT *
        ┃   FROM cars
        ┃ Hint
        ┃   there is: weather
        """
    )


@pytest.mark.parametrize(
    ("status", "unicode_line", "ascii_line"),
    [
        ("success", "┃ ✓ Done", "| OK: Done"),
        ("error", "┃ ✗ Done", "| ERROR: Done"),
        ("warning", "┃ ▲ Done", "| WARNING: Done"),
        ("info", "┃ ℹ Done", "| INFO: Done"),
    ],
)
def test_a_status_is_told_by_a_sign_and_not_by_colour_alone(
    status: str, unicode_line: str, ascii_line: str
) -> None:
    assert drawn("status-card", status=status, title="Done") == unicode_line
    assert drawn("status-card", unicode=False, status=status, title="Done") == ascii_line


def test_key_value_puts_values_in_a_column_and_wraps_long_ones() -> None:
    items = [
        {"key": "File", "value": "weather.csv"},
        {"key": "Rows", "value": 1461},
        {"key": "Dry", "value": None},
        {"key": "Note", "value": "many words that do not fit into one line of this width at all"},
    ]
    assert drawn("key-value", cells=40, title="Data", items=items) == picture(
        """
        Data
        File  weather.csv
        Rows  1461
        Dry   –
        Note  many words that do not fit into
              one line of this width at all
        """
    )


def test_progress_counts_steps_and_signs_each() -> None:
    steps = [
        {"name": "Read", "status": "done", "detail": "1,461 rows"},
        {"name": "Check", "status": "active"},
        {"name": "Write", "status": "pending"},
        {"name": "Send", "status": "failed", "detail": "no disk"},
    ]
    assert drawn("progress", cells=40, title="Import", steps=steps) == picture(
        """
        Import  ━━╌╌╌╌╌╌╌╌ 1/4
        ✓ Read  1,461 rows
        ▸ Check
        ○ Write
        ✗ Send  no disk
        """
    )
    assert drawn("progress", cells=40, unicode=False, title="Import", steps=steps) == picture(
        """
        Import  ##........ 1/4
        [x] Read  1,461 rows
        [>] Check
        [ ] Write
        [!] Send  no disk
        """
    )


def test_image_says_what_it_shows_and_where_it_is() -> None:
    src = "https://example.com/bay.png"
    assert drawn(
        "image", src=src, alt="The bay", width=60, height=40, caption="at night"
    ) == picture(
        """
        ▣ The bay  60×40
          https://example.com/bay.png
          at night
        """
    )


def test_the_data_of_an_embedded_image_are_not_poured_out() -> None:
    src = "data:image/png;base64," + "A" * 4000
    assert drawn("image", src=src, alt="Dot") == picture(
        """
        ▣ Dot
          embedded image/png, 4,000 characters
        """
    )


def test_product_cards() -> None:
    cards = [
        {
            "name": "Gravel",
            "price": "€ 1,200",
            "brand": "Acme",
            "badge": "New",
            "description": "Goes everywhere.",
            "url": "https://shop.example/g",
            "image": "https://shop.example/g.png",
        },
        {"name": "City", "price": 450},
    ]
    assert drawn("product-cards", title="Bikes", cards=cards) == picture(
        """
        Bikes
        ▌ Gravel  € 1,200  [New]
        ▌ Acme
        ▌ Goes everywhere.
        ▌ https://shop.example/g
        ▌ image: https://shop.example/g.png

        ▌ City  450
        """
    )


def test_code_is_shown_without_a_border_and_long_lines_go_on_behind_a_sign() -> None:
    code = "def f(x):\n    return x + 1111111111 + 2222222222 + 3333333333"
    assert drawn("code-block", cells=40, title="f.py", language="python", code=code) == picture(
        """
        f.py  python
          def f(x):
              return x + 1111111111 + 2222222222
          ↪  + 3333333333
        """
    )


def test_each_tab_of_code_stands_under_its_name() -> None:
    tabs = [
        {"name": "a.sql", "language": "sql", "code": "SELECT 1"},
        {"name": "b.txt", "code": "two"},
    ]
    assert drawn("code-block", tabs=tabs) == picture(
        """
        a.sql  sql
          SELECT 1
        b.txt
          two
        """
    )


def test_group_stacks_its_children_with_its_gap() -> None:
    children = [child("one"), child("two")]
    assert drawn("group", children=children) == "one\n\ntwo"
    assert drawn("group", children=children, gap="none") == "one\ntwo"
    assert drawn("group", children=children, gap="large") == "one\n\n\ntwo"


def test_a_horizontal_group_stands_side_by_side_where_there_is_room() -> None:
    children = [child("one\nmore"), child("two")]
    assert drawn("group", cells=60, children=children, direction="horizontal") == picture(
        """
        one                            two
        more
        """
    )
    assert drawn("group", cells=40, children=children, direction="horizontal") == "one\nmore\n\ntwo"


def test_split_follows_its_ratio() -> None:
    left, right = child("left"), child("right")
    assert (
        drawn("split", cells=80, ratio="1:2", left=left, right=right) == "left" + " " * 24 + "right"
    )
    assert drawn("split", cells=80, direction="vertical", left=left, right=right) == "left\n\nright"


def test_tabs_are_shown_one_below_the_other() -> None:
    tabs = [
        {"label": "First", "component": child("one")},
        {"label": "Second", "component": child("two")},
    ]
    assert drawn("tabs", tabs=tabs) == "[First]\none\n\n[Second]\ntwo"


def test_a_drawing_in_a_column_fits_the_column() -> None:
    chart = {
        "id": "x",
        "type": "chart",
        "props": {"type": "bar", "labels": ["a"], "datasets": [{"data": [1]}]},
    }
    lines = painted(
        Component("s", "split", {"left": chart, "right": child("right")}), width=62, colour=False
    )
    assert lines == ["a  " + "█" * 25 + " 1" + "  right"]


def test_a_component_beyond_the_level_shows_its_fallback() -> None:
    fallback = Component("", "text", {"content": "in words"})
    component = Component("c", "chart", {"type": "pie", "labels": [], "datasets": []}, 1, fallback)
    assert plain(component, level="minimal") == ["in words"]
    assert plain(component) == ["no data"]


def test_a_type_that_is_not_known_shows_its_fallback_or_one_line() -> None:
    assert plain(
        Component("c", "x-acme-globe", {}, 1, Component("", "text", {"content": "here"}))
    ) == ["here"]
    assert plain(Component("c", "x-acme-globe", {"secret": 1})) == [
        "(x-acme-globe cannot be shown in a terminal)"
    ]


def test_nesting_without_end_is_cut() -> None:
    component: JsonObject = child("deep")
    for _ in range(20):
        component = {"id": "g", "type": "group", "props": {"children": [component]}}
    assert drawn("group", children=[component]) == "… nested too deep to be shown"


def child(content: str) -> JsonObject:
    return {"id": content, "type": "text", "props": {"content": content}}
