"""What a renderer gets in the place of what it does not know (protocol.md 3)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.catalog import CATALOG, VERSIONS, chain
from arp.protocol.components import Component
from arp.protocol.json_value import JsonObject
from arp.protocol.validate import check_component
from arp.surface.degrade import RendererSupport, answerable, degrade, how_shown

ALL = RendererSupport(VERSIONS)
NOTHING = RendererSupport({})


def knows(*types: str, rows: int | None = None) -> RendererSupport:
    return RendererSupport(dict.fromkeys(types, 1), rows)


def texts(components: list[Component]) -> list[tuple[str, str]]:
    """Ids and contents of components that are all plain text."""
    assert {one.type for one in components} == {"text"}
    return [(one.id, one.props["content"]) for one in components]


CHART = Component(
    "c",
    "chart",
    {"type": "bar", "labels": ["Jan", "Feb"], "datasets": [{"label": "Sales", "data": [1, 2.5]}]},
)
DIFF = Component("d", "diff", {"before": "a", "after": "b"})
CARDS = Component("p", "product-cards", {"cards": [{"name": "A", "price": 3}]})
FACTS = {"id": "k", "type": "key-value", "props": {"items": [{"key": "a", "value": 1}]}}
NOTE = {"id": "n", "type": "text", "props": {"content": "note"}}
TABLE = {"id": "t", "type": "table", "props": {"headers": ["h"], "rows": [[1]]}}


def group(*children: JsonObject, component_id: str = "g") -> JsonObject:
    return {"id": component_id, "type": "group", "props": {"children": list(children)}}


def tabs(*children: JsonObject) -> JsonObject:
    parts = [
        {"label": f"Tab {number}", "component": child} for number, child in enumerate(children, 1)
    ]
    return {"id": "x", "type": "tabs", "props": {"tabs": parts}}


def split(left: JsonObject, right: JsonObject, **more: Any) -> JsonObject:
    return {"id": "s", "type": "split", "props": {"left": left, "right": right, **more}}


# -- one component ---------------------------------------------------------------------------------


def test_what_is_known_stays_as_it_is() -> None:
    for component in (CHART, DIFF, CARDS, check_component(group(NOTE, split(FACTS, TABLE)))):
        (shown,) = degrade(component, ALL)
        assert shown is component


def test_a_chart_becomes_its_table_and_then_its_text() -> None:
    assert degrade(CHART, knows("text", "table")) == [
        Component("c", "table", {"headers": ["", "Sales"], "rows": [["Jan", 1], ["Feb", 2.5]]})
    ]
    assert degrade(CHART, knows("text")) == [
        Component(
            "c",
            "text",
            {
                "content": "     Sales\n---  -----\nJan    1\nFeb    2.5",
                "format": "plain",
            },
        )
    ]


def test_a_diff_becomes_code_and_then_text() -> None:
    code = "--- before\n+++ after\n@@ -1 +1 @@\n-a\n+b"
    assert degrade(DIFF, knows("code-block")) == [
        Component("d", "code-block", {"language": "diff", "code": code})
    ]
    assert texts(degrade(DIFF, NOTHING)) == [("d", code)]


def test_product_cards_become_a_table_and_then_text() -> None:
    assert degrade(CARDS, knows("table")) == [
        Component("p", "table", {"headers": ["Name", "Price"], "rows": [["A", 3]]})
    ]
    assert texts(degrade(CARDS, NOTHING)) == [("p", "Name  Price\n----  -----\nA         3")]


def test_markdown_stays_markdown_as_text() -> None:
    component = Component("m", "markdown", {"content": "# a"})
    assert degrade(component, knows("text")) == [
        Component("m", "text", {"content": "# a", "format": "markdown"})
    ]


def test_a_question_becomes_text_that_says_how_to_answer() -> None:
    component = Component("q", "confirm", {"title": "Go?"})
    assert texts(degrade(component, NOTHING)) == [("q", "Go?\nReply yes or no.")]


def test_a_version_that_is_not_known_is_degraded() -> None:
    newer = msgspec.structs.replace(CHART, version=2)
    assert degrade(newer, ALL)[0].type == "table"
    assert degrade(newer, RendererSupport({"chart": 2})) == [newer]


def test_its_own_fallback_comes_before_the_chain_and_gets_its_id() -> None:
    own = Component("other", "key-value", {"items": [{"key": "best", "value": "Feb"}]})
    component = msgspec.structs.replace(CHART, fallback=own)
    assert degrade(component, knows("table", "key-value")) == [
        Component("c", "key-value", {"items": [{"key": "best", "value": "Feb"}]})
    ]
    assert texts(degrade(component, NOTHING)) == [("c", "best: Feb")]
    assert degrade(component, ALL) == [component]


def test_a_custom_component_is_native_where_it_is_known_and_its_fallback_elsewhere() -> None:
    inner = Component("", "x-acme-plan", {}, fallback=Component("", "text", {"content": "plan"}))
    component = Component("m", "x-acme-map", {"at": [1, 2]}, fallback=inner)
    assert degrade(component, knows("x-acme-map")) == [component]
    assert degrade(component, knows("x-acme-plan")) == [msgspec.structs.replace(inner, id="m")]
    assert degrade(component, NOTHING) == [Component("m", "text", {"content": "plan"})]
    assert texts(degrade(Component("m", "x-acme-map", {}), NOTHING)) == [("m", "[x-acme-map]")]


def test_what_has_no_id_in_a_fallback_gets_one_made_of_its_component() -> None:
    nameless = group(NOTE | {"id": ""}, TABLE, group(FACTS | {"id": ""}, component_id=""))
    component = check_component(
        {"id": "m", "type": "x-acme-map", "props": {}, "fallback": {**nameless, "id": ""}}
    )
    (shown,) = degrade(component, ALL)
    first, second, third = shown.props["children"]
    assert (shown.id, first["id"], second["id"], third["id"]) == ("m", "m/0", "t", "m/2")
    assert third["props"]["children"][0]["id"] == "m/2/0"
    assert component.fallback is not None
    assert component.fallback.props["children"][0]["id"] == ""


def test_tables_are_cut_to_what_the_renderer_takes() -> None:
    long = Component("t", "table", {"headers": ["h"], "rows": [[1], [2], [3]]})
    assert degrade(long, knows("table", rows=1))[0].props["rows"] == [
        [1],
        ["… 2 more rows not shown"],
    ]
    assert degrade(long, knows("table", rows=3)) == [long]
    assert texts(degrade(long, knows(rows=1))) == [("t", "h\n-\n1\n… 2 more rows not shown")]
    assert degrade(CHART, knows("table", rows=1))[0].props["rows"] == [
        ["Jan", 1],
        ["… 1 more row not shown", None],
    ]


# -- layouts ---------------------------------------------------------------------------------------


def test_children_of_a_known_layout_are_degraded_in_their_places() -> None:
    component = check_component(group(FACTS, split(TABLE, FACTS | {"id": "k2"})))
    (shown,) = degrade(component, knows("group", "split", "table"))
    assert shown.props["children"] == [
        {"id": "k", "type": "text", "props": {"content": "a: 1", "format": "plain"}},
        {
            "id": "s",
            "type": "split",
            "props": {
                "left": TABLE,
                "right": {
                    "id": "k2",
                    "type": "text",
                    "props": {"content": "a: 1", "format": "plain"},
                },
            },
        },
    ]
    assert component.props["children"][0] is FACTS


def test_a_split_in_a_known_group_becomes_a_group_and_keeps_its_direction() -> None:
    down = split(FACTS, NOTE | {"id": "m"}, direction="vertical") | {"id": "s2"}
    component = check_component(group(split(NOTE, TABLE), down))
    (shown,) = degrade(component, knows("group", "table"))
    first, second = shown.props["children"]
    assert first == {
        "id": "s",
        "type": "group",
        "props": {"children": [NOTE, TABLE], "direction": "horizontal"},
    }
    assert (second["type"], second["props"]["direction"]) == ("group", "vertical")


def test_tabs_become_a_group_with_their_labels() -> None:
    (shown,) = degrade(check_component(tabs(NOTE, TABLE)), knows("group", "table"))
    assert (shown.id, shown.type) == ("x", "group")
    label = {"type": "text", "props": {"content": "Tab 1", "format": "plain"}}
    assert shown.props == {
        "children": [
            {"id": "x/tab/0", **label},
            NOTE,
            {"id": "x/tab/1", "type": "text", "props": {"content": "Tab 2", "format": "plain"}},
            TABLE,
        ]
    }


def test_an_unknown_layout_becomes_its_children_in_order_each_with_its_id() -> None:
    component = check_component(group(NOTE, FACTS, TABLE))
    shown = degrade(component, knows("table"))
    assert [(one.id, one.type) for one in shown] == [("n", "text"), ("k", "text"), ("t", "table")]
    shown = degrade(check_component(split(FACTS, TABLE)), knows("key-value"))
    assert [(one.id, one.type) for one in shown] == [("k", "key-value"), ("t", "text")]
    shown = degrade(check_component(tabs(NOTE, FACTS)), NOTHING)
    assert texts(shown) == [
        ("x/tab/0", "Tab 1"),
        ("n", "note"),
        ("x/tab/1", "Tab 2"),
        ("k", "a: 1"),
    ]


def test_an_unknown_layout_whose_children_all_become_text_is_one_text() -> None:
    component = check_component(group(FACTS, TABLE))
    assert texts(degrade(component, NOTHING)) == [("g", "a: 1\n\nh\n-\n1")]
    component = check_component(tabs(FACTS, group(TABLE)))
    assert texts(degrade(component, NOTHING)) == [("x", "Tab 1\n\na: 1\n\nTab 2\n\nh\n-\n1")]
    assert texts(degrade(check_component(group()), NOTHING)) == [("g", "")]


def test_one_place_in_known_tabs_takes_one_component() -> None:
    component = check_component(tabs(group(NOTE, TABLE)))
    (shown,) = degrade(component, knows("tabs", "table"))
    assert shown.props["tabs"] == [
        {
            "label": "Tab 1",
            "component": {
                "id": "g",
                "type": "text",
                "props": {"content": "note\n\nh\n-\n1", "format": "plain"},
            },
        }
    ]


# -- how it is shown -------------------------------------------------------------------------------


def test_what_is_native_is_told_as_its_own_type() -> None:
    component = check_component(group(NOTE, tabs(TABLE)))
    assert how_shown(component, ALL) == {"g": "group", "n": "text", "x": "tabs", "t": "table"}


@pytest.mark.parametrize(
    ("component", "profile", "told"),
    [
        (CHART, NOTHING, {"c": "text"}),
        (CHART, knows("table"), {"c": "table"}),
        (group(NOTE, TABLE), NOTHING, {"g": "children", "n": "text", "t": "text"}),
        (group(FACTS, TABLE), NOTHING, {"g": "text", "k": "text", "t": "text"}),
        (
            group(NOTE, TABLE),
            knows("table"),
            {"g": "children", "n": "text", "t": "table"},
        ),
        (tabs(TABLE), knows("group"), {"x": "group", "t": "text"}),
        (
            tabs(group(NOTE, TABLE)),
            knows("tabs", "table"),
            {"x": "tabs", "g": "text", "n": "text", "t": "text"},
        ),
        (
            group(split(NOTE, TABLE)),
            knows("split", "table"),
            {"g": "children", "s": "split", "n": "text", "t": "table"},
        ),
        (
            group(split(NOTE, TABLE)),
            knows("table"),
            {"g": "children", "s": "children", "n": "text", "t": "table"},
        ),
        (
            {**tabs(TABLE), "fallback": {**FACTS, "id": ""}},
            knows("key-value"),
            {"x": "key-value", "t": "key-value"},
        ),
        (
            {"id": "m", "type": "x-acme-map", "props": {}, "fallback": NOTE},
            knows("x-acme-map"),
            {"m": "x-acme-map"},
        ),
    ],
)
def test_how_each_component_is_shown(component: Any, profile: RendererSupport, told: Any) -> None:
    assert how_shown(check_component(component), profile) == told


# -- any component for any renderer ----------------------------------------------------------------

leaves = st.sampled_from(
    [
        {"type": CHART.type, "props": CHART.props},
        {"type": DIFF.type, "props": DIFF.props},
        {"type": CARDS.type, "props": CARDS.props},
        FACTS,
        NOTE,
        TABLE,
        {"type": "form", "props": {"fields": [{"name": "a"}]}},
        {"type": "x-acme-map", "props": {}, "fallback": {**TABLE, "id": ""}},
    ]
)


def layouts(inner: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    return (
        st.lists(inner, max_size=3).map(lambda children: group(*children))
        | st.lists(inner, max_size=3).map(lambda children: tabs(*children))
        | st.builds(split, inner, inner)
    )


trees = leaves | layouts(leaves | layouts(leaves))


def named(tree: JsonObject, name: str = "r") -> Component:
    """The tree with an id of its own for every component, checked."""
    return check_component({**tree, "id": name, "props": _named(tree["props"], name)})


def _named(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_named(item, f"{name}.{number}") for number, item in enumerate(value)]
    if isinstance(value, dict):
        inner = {key: _named(item, f"{name}.{key}") for key, item in value.items()}
        return {**inner, "id": name} if "props" in inner else inner
    return value


profiles = st.builds(
    lambda names, rows: RendererSupport(dict.fromkeys([*names, "text"], 1), rows),
    st.sets(st.sampled_from([*CATALOG, "x-acme-map"])),
    st.none() | st.integers(1, 3),
)


def all_of(component: Component) -> list[Component]:
    found = [component]
    for name in ("children", "left", "right", "tabs"):
        below = component.props.get(name, []) if CATALOG.get(component.type) else []
        for child in below if isinstance(below, list) else [below]:
            plain = child.get("component", child)
            if "props" in plain:
                found += all_of(msgspec.convert(plain, Component))
    return found


@given(trees, profiles)
def test_a_renderer_gets_only_what_it_knows(tree: JsonObject, profile: RendererSupport) -> None:
    component = named(tree)
    before = msgspec.json.encode(component)
    shown = degrade(component, profile)
    assert {one.type for root in shown for one in all_of(root)} <= set(profile.versions)
    assert msgspec.json.encode(component) == before
    assert degrade(component, profile) == shown
    told = how_shown(component, profile)
    assert set(told) == {one.id for one in all_of(component)}
    for one in all_of(component):
        kinds = {*chain(one.type), "children"} if one.type in CATALOG else {one.type}
        assert told[one.id] in kinds | {"table", "text"}


@given(trees)
def test_text_alone_carries_every_number(tree: JsonObject) -> None:
    component = named(tree)
    content = "\n".join(content for _, content in texts(degrade(component, NOTHING)))
    for one in all_of(component):
        for number in {"chart": ("1", "2.5"), "product-cards": ("3",), "table": ("1",)}.get(
            one.type, ()
        ):
            assert number in content.split()


def dial(fallback: Component | None, **props: object) -> Component:
    return Component("q", "x-acme-dial", dict(props), fallback=fallback)


@pytest.mark.parametrize(
    ("fallback", "label"),
    [
        (Component("", "text", {"content": "Where?"}), "Where?"),
        (Component("", "text", {"content": ""}), None),
        (Component("", "table", {"headers": ["a"], "rows": [[1]]}), "a\n-\n1"),
    ],
)
def test_custom_question_can_be_answered_by_a_text_where_its_fallback_asks_nothing(
    fallback: Component, label: str | None
) -> None:
    shown = answerable(dial(fallback)).fallback
    assert shown is not None
    assert shown.type == "text-input"
    assert (shown.props.get("label") or "").split() == (label or "").replace("\n", " ").split()


def test_question_that_can_be_answered_everywhere_stays_as_it_is() -> None:
    confirm = Component("", "confirm", {"title": "Sure?"})
    for component in (confirm, dial(None), dial(confirm), dial(dial(confirm))):
        assert answerable(component) is component
    nested = answerable(dial(dial(Component("", "text", {"content": "Where?"}))))
    assert nested.fallback is not None
    assert nested.fallback.fallback is not None
    assert nested.fallback.fallback.type == "text-input"


@pytest.mark.parametrize(
    ("answer", "shown"), [(True, {"answer": True}), ({"angle": 3}, {}), (None, {})]
)
def test_fallback_of_a_question_is_as_open_as_the_question(
    answer: object, shown: dict[str, object]
) -> None:
    confirm = Component("", "confirm", {"title": "Sure?"})
    question = dial(confirm, state="answered", can_decline=True, most=90, answer=answer)
    (one,) = degrade(question, RendererSupport({"confirm": 1}))
    told = {"state": "answered", "can_decline": True}
    assert one == Component("q", "confirm", {"title": "Sure?", **told, **shown})
    (text,) = degrade(
        dial(Component("", "text", {"content": "x"}), state="open"), RendererSupport({})
    )
    assert text.props == {"content": "x"}
