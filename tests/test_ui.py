"""The builders: checked at once, plain JSON, nothing shared, convenient Python taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from arp import ui
from arp.protocol.components import Component
from arp.protocol.errors import ArpError, ComponentUnsupported, InvalidComponent, ResourceLimit
from arp.protocol.json_value import is_plain_json
from arp.protocol.validate import check_component

BUILT: list[tuple[Component, Component]] = [
    (ui.text("hi"), Component("", "text", {"content": "hi"})),
    (
        ui.text("hi", format="markdown", id="t", fallback=ui.text("x")),
        Component(
            "t",
            "text",
            {"content": "hi", "format": "markdown"},
            fallback=Component("", "text", {"content": "x"}),
        ),
    ),
    (ui.markdown("# a"), Component("", "markdown", {"content": "# a"})),
    (
        ui.status_card("error", "Failed", "why", sections=[ui.section("l", "c", style="code")]),
        Component(
            "",
            "status-card",
            {
                "status": "error",
                "title": "Failed",
                "message": "why",
                "sections": [{"label": "l", "content": "c", "style": "code"}],
            },
        ),
    ),
    (
        ui.status_card("success", "Done"),
        Component("", "status-card", {"status": "success", "title": "Done"}),
    ),
    (
        ui.table(
            ["a", "b"],
            [("x", 1), {"b": Decimal("2.5"), "a": date(2026, 1, 2), "c": 0}, [None, None]],
            title="T",
            tabs=[ui.table_tab("n", ("h",), [{"h": 1}], highlight=[0])],
            highlight=(0,),
            searchable=True,
            sortable=False,
        ),
        Component(
            "",
            "table",
            {
                "title": "T",
                "headers": ["a", "b"],
                "rows": [["x", 1], ["2026-01-02", 2.5], [None, None]],
                "tabs": [{"name": "n", "headers": ["h"], "rows": [[1]], "highlight": [0]}],
                "highlight": [0],
                "searchable": True,
                "sortable": False,
            },
        ),
    ),
    (
        ui.table("T", ["a"], [{"a": 1}], selectable="many"),
        Component(
            "",
            "table",
            {"title": "T", "headers": ["a"], "rows": [[1]], "selectable": "many"},
        ),
    ),
    (ui.table(), Component("", "table", {"headers": [], "rows": []})),
    (
        ui.code_block("x", "python", title="t"),
        Component("", "code-block", {"title": "t", "language": "python", "code": "x"}),
    ),
    (
        ui.code_block(tabs=[ui.code_tab("a.py", "x", "python"), ui.code_tab("b", "y")]),
        Component(
            "",
            "code-block",
            {
                "tabs": [
                    {"name": "a.py", "code": "x", "language": "python"},
                    {"name": "b", "code": "y"},
                ]
            },
        ),
    ),
    (
        ui.diff("a", "b", title="t", before_label="o", after_label="n", language="c"),
        Component(
            "",
            "diff",
            {
                "title": "t",
                "before": "a",
                "after": "b",
                "before_label": "o",
                "after_label": "n",
                "language": "c",
            },
        ),
    ),
    (
        ui.key_value({"a": 1, "b": None}, title="t"),
        Component(
            "",
            "key-value",
            {"title": "t", "items": [{"key": "a", "value": 1}, {"key": "b", "value": None}]},
        ),
    ),
    (
        ui.key_value([("a", True), ui.item("b", None, style="muted")]),
        Component(
            "",
            "key-value",
            {
                "items": [
                    {"key": "a", "value": True},
                    {"key": "b", "value": None, "style": "muted"},
                ]
            },
        ),
    ),
    (
        ui.progress([ui.step("a", "done"), ui.step("b", "active", "half")], title="t"),
        Component(
            "",
            "progress",
            {
                "title": "t",
                "steps": [
                    {"name": "a", "status": "done"},
                    {"name": "b", "status": "active", "detail": "half"},
                ],
            },
        ),
    ),
    (
        ui.chart(
            "bar",
            labels=(date(2026, 1, 1), 2, "c"),
            datasets=(
                ui.dataset("Sales", (1, Decimal("0.1"), float("nan")), color="teal") for _ in "x"
            ),
            title="t",
            height=200,
            x_title="Quarter",
            y_title="Sales",
            unit="USD",
        ),
        Component(
            "",
            "chart",
            {
                "type": "bar",
                "title": "t",
                "labels": ["2026-01-01", 2, "c"],
                "datasets": [{"label": "Sales", "data": [1, 0.1, None], "color": "teal"}],
                "x_title": "Quarter",
                "y_title": "Sales",
                "unit": "USD",
                "height": 200,
            },
        ),
    ),
    (
        ui.image("/_api/blobs/a1", "a cat", width=1, height=2.5, caption="c"),
        Component(
            "",
            "image",
            {"src": "/_api/blobs/a1", "alt": "a cat", "width": 1, "height": 2.5, "caption": "c"},
        ),
    ),
    (
        ui.product_cards(
            [
                ui.card(
                    "A",
                    price=Decimal("9.50"),
                    image="https://a.example/i.png",
                    brand="b",
                    description="d",
                    badge="n",
                    url="https://a.example",
                ),
                ui.card("B"),
            ],
            title="t",
        ),
        Component(
            "",
            "product-cards",
            {
                "title": "t",
                "cards": [
                    {
                        "name": "A",
                        "price": 9.5,
                        "image": "https://a.example/i.png",
                        "brand": "b",
                        "description": "d",
                        "badge": "n",
                        "url": "https://a.example",
                    },
                    {"name": "B"},
                ],
            },
        ),
    ),
    (
        ui.form(
            [
                ui.field("a", label="A", required=True, placeholder="p", value="v"),
                ui.field("b", options=["x", ui.option("y", 2)]),
                ui.field("c", field_type="date", validation={"min": date(2026, 1, 1)}),
            ],
            title="t",
            description="d",
            submit_label="s",
            submit_action="save",
        ),
        Component(
            "",
            "form",
            {
                "title": "t",
                "description": "d",
                "fields": [
                    {"name": "a", "label": "A", "value": "v", "required": True, "placeholder": "p"},
                    {
                        "name": "b",
                        "field_type": "select",
                        "options": ["x", {"label": "y", "value": 2}],
                    },
                    {"name": "c", "field_type": "date", "validation": {"min": "2026-01-01"}},
                ],
                "submit_label": "s",
                "submit_action": "save",
            },
        ),
    ),
    (
        ui.confirm("t", message="m", confirm_label="y", deny_label="n", destructive=True),
        Component(
            "",
            "confirm",
            {
                "title": "t",
                "message": "m",
                "confirm_label": "y",
                "deny_label": "n",
                "destructive": True,
            },
        ),
    ),
    (
        ui.choices(
            ["a", ui.option("b", 0, description="d", icon="★", disabled=True)],
            title="t",
            style="list",
            multi_select=True,
        ),
        Component(
            "",
            "choices",
            {
                "title": "t",
                "options": [
                    "a",
                    {"label": "b", "value": 0, "description": "d", "icon": "★", "disabled": True},
                ],
                "style": "list",
                "multi_select": True,
            },
        ),
    ),
    (
        ui.text_input("l", placeholder="p", max_length=3, multiline=True, submit_label="s"),
        Component(
            "",
            "text-input",
            {
                "label": "l",
                "placeholder": "p",
                "max_length": 3,
                "multiline": True,
                "submit_label": "s",
            },
        ),
    ),
    (
        ui.group([ui.text("a", id="a"), ui.text("b")], direction="horizontal", gap="small"),
        Component(
            "",
            "group",
            {
                "direction": "horizontal",
                "gap": "small",
                "children": [
                    {"id": "a", "type": "text", "props": {"content": "a"}},
                    {"id": "", "type": "text", "props": {"content": "b"}},
                ],
            },
        ),
    ),
    (
        ui.tabs([ui.tab("L", ui.text("a"), icon="★")], active_tab=0),
        Component(
            "",
            "tabs",
            {
                "tabs": [
                    {
                        "label": "L",
                        "icon": "★",
                        "component": {"id": "", "type": "text", "props": {"content": "a"}},
                    }
                ],
                "active_tab": 0,
            },
        ),
    ),
    (
        ui.split(ui.text("a"), ui.text("b"), ratio="1:2", direction="vertical"),
        Component(
            "",
            "split",
            {
                "direction": "vertical",
                "ratio": "1:2",
                "left": {"id": "", "type": "text", "props": {"content": "a"}},
                "right": {"id": "", "type": "text", "props": {"content": "b"}},
            },
        ),
    ),
    (
        ui.custom("x-acme-map", {"at": (1, 2)}, fallback=ui.text("map"), id="m"),
        Component(
            "m",
            "x-acme-map",
            {"at": [1, 2]},
            fallback=Component("", "text", {"content": "map"}),
        ),
    ),
]


@pytest.mark.parametrize(("built", "expected"), BUILT, ids=lambda value: value.type)
def test_a_builder_gives_the_component_of_the_wire(built: Component, expected: Component) -> None:
    assert built == expected
    assert is_plain_json(built.props)
    assert check_component(built, empty_ids=True) is built


REFUSED: list[tuple[Callable[[], Any], type[ArpError], str]] = [
    (
        lambda: ui.table(["a"], [[1], [2], [3], 4]),  # the mistake
        InvalidComponent,
        "ui.table: rows[3]: expected array, got number",
    ),
    (
        lambda: ui.table("ab", [[1]]),
        InvalidComponent,
        "ui.table: headers: expected array, got string",
    ),
    *(
        (
            call,
            InvalidComponent,
            "ui.table: expected (headers, rows, title=…) or (title, headers, rows)",
        )
        for call in (
            lambda: ui.table(["a"], [[1]], [[2]]),
            lambda: ui.table("T", ["a"], [[1]], title="again"),
            lambda: ui.table("T", ["a"], [[1]], [[2]]),
        )
    ),
    (
        lambda: ui.table(["a"], [[1]], selectable="two"),  # type: ignore[arg-type]  # the mistake
        InvalidComponent,
        "ui.table: selectable: 'two' is not one of none, one, many",
    ),
    (
        lambda: ui.table(["a"], 5),  # the mistake
        InvalidComponent,
        "ui.table: rows: expected array, got number",
    ),
    (
        lambda: ui.table(["a"], [[b"x"]]),
        InvalidComponent,
        "ui.table: rows[0][0]: bytes is not a JSON value",
    ),
    (lambda: ui.code_block(), InvalidComponent, "ui.code_block: needs code or tabs"),
    (
        lambda: ui.text(5),  # type: ignore[arg-type]  # the mistake
        InvalidComponent,
        "ui.text: content: expected string, got number",
    ),
    (
        lambda: ui.text("a", id="a/b"),
        InvalidComponent,
        "ui.text: id: expected 1…128 printable characters without /, got 'a/b'",
    ),
    (
        lambda: ui.text("a", fallback="b"),  # type: ignore[arg-type]  # the mistake
        InvalidComponent,
        "ui.text: fallback is a component, such as ui.text(…)",
    ),
    (
        lambda: ui.step("a", "dne"),  # type: ignore[arg-type]  # the mistake
        InvalidComponent,
        "ui.step: status: 'dne' is not one of done, active, pending, failed",
    ),
    (
        lambda: ui.field("a", field_type="select"),
        InvalidComponent,
        "ui.field: a select field needs options",
    ),
    (
        lambda: ui.dataset("a", 5),  # type: ignore[arg-type]  # the mistake
        InvalidComponent,
        "ui.dataset: data: expected array, got number",
    ),
    (
        lambda: ui.chart("bar", labels=["a"], datasets=[{"label": "x", "data": ["1"]}]),
        InvalidComponent,
        "ui.chart: datasets[0].data[0]: expected number or null, got string",
    ),
    (
        lambda: ui.key_value(["ab"]),  # type: ignore[list-item]  # the mistake
        InvalidComponent,
        "ui.key_value: items[0]: expected (key, value) or ui.item(…)",
    ),
    (
        lambda: ui.group([ui.text("a", id="x"), ui.text("b", id="x")]),
        InvalidComponent,
        'ui.group: children[1].id: "x" is used twice',
    ),
    (
        lambda: ui.group([ui.group([ui.group([ui.group([])])])]),
        ResourceLimit,
        "ui.group: children[0].props.children[0].props.children[0]: nested deeper than 3 levels",
    ),
    (
        lambda: ui.custom("map", {}, fallback=ui.text("a")),
        ComponentUnsupported,
        'ui.custom: type: no component "map"; known are ',
    ),
]


@pytest.mark.parametrize(("build", "kind", "message"), REFUSED)
def test_a_mistake_is_refused_where_it_is_made(
    build: Callable[[], Any], kind: type[ArpError], message: str
) -> None:
    with pytest.raises(kind) as refused:
        build()
    assert refused.value.message.startswith(message)


class DataFrame:
    """As pandas has it: gone through, it gives the names of its columns."""

    columns = ("a", "b")

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def to_dict(self) -> dict[str, Any]:
        return {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    "make",
    [
        lambda frame: ui.table(frame),
        lambda frame: ui.table(frame.columns, frame),
        lambda frame: ui.table(rows=frame),
    ],
)
def test_a_data_frame_makes_no_empty_table(make: Callable[[Any], Component]) -> None:
    """It says what to write."""
    with pytest.raises(InvalidComponent, match=r"not a DataFrame; ui\.table\(df\.columns, "):
        make(DataFrame())


def test_nothing_is_shared_with_what_was_given() -> None:
    row = ["a"]
    part = {"label": "d", "data": [1]}
    child = ui.table(["h"], [row], id="t")
    chart = ui.chart("bar", labels=row, datasets=[part])
    group = ui.group([child], fallback=child)
    row.append("b")
    part["label"] = "changed"
    child.props["headers"].append("changed")
    assert chart.props["labels"] == ["a"]
    assert chart.props["datasets"] == [{"label": "d", "data": [1]}]
    assert group.props["children"][0]["props"] == {"headers": ["h"], "rows": [["a"]]}
    assert group.fallback is not None
    assert group.fallback.props == {"headers": ["h"], "rows": [["a"]]}


def test_sources_are_numbered_and_fall_back_to_a_list() -> None:
    """Nothing in a title or an excerpt is markup."""
    built = ui.sources(
        [ui.source("A *report*", "https://example.org/a", "so\nmuch"), {"title": "Second"}], id="s"
    )
    assert built == Component(
        "s",
        "x-arp-sources",
        {
            "sources": [
                {"title": "A *report*", "url": "https://example.org/a", "excerpt": "so\nmuch"},
                {"title": "Second"},
            ]
        },
        fallback=Component(
            "",
            "markdown",
            {"content": "1. [A \\*report\\*](<https://example.org/a>): so much\n2. Second"},
        ),
    )


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: ui.source("x", "javascript:alert(1)"), "ui.source: url: expected an http"),
        (lambda: ui.sources([{"url": "https://a.example"}]), "ui.sources: sources[0]"),
        (lambda: ui.sources([{"title": "x", "url": "data:,x"}]), "ui.sources: sources[0].url"),
    ],
)
def test_a_source_that_is_none_is_refused(made: Callable[[], object], told: str) -> None:
    with pytest.raises(InvalidComponent) as refused:
        made()
    assert told in str(refused.value)


def test_all_public_names_are_listed() -> None:
    """`from arp.ui import *` gives the builders, and nothing that the module imports itself."""
    own = {
        name
        for name, value in vars(ui).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == "arp.ui"
    }
    assert set(ui.__all__) >= own | {"converter"}
    assert all(hasattr(ui, name) for name in ui.__all__)
    assert not {"re", "msgspec", "of", "Any", "InvalidComponent"} & set(ui.__all__)
