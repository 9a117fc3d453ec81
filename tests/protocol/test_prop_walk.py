"""The walk over types finds what can stand at a path, and the components in a value."""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.components import (
    ChartProps,
    FormProps,
    GroupProps,
    ImageProps,
    SplitProps,
    TableProps,
    TabsProps,
)
from arp.protocol.validate import (
    NoSuchProp,
    bounds,
    item_type,
    map_children,
    names_in,
    nearest,
    normalised,
    options,
    type_at,
)


def test_a_path_through_arrays_and_objects_ends_at_the_type_there() -> None:
    assert options(type_at(TableProps, ("rows", 0, 0))) == (str, int, float, bool, type(None))
    assert options(type_at(ChartProps, ("datasets", 0, "label"))) == (str,)
    assert options(type_at(FormProps, ("fields", 0, "validation", "min_length")))[0] is int


def test_anything_can_stand_below_a_prop_of_any_json() -> None:
    assert type_at(FormProps, ("answer", "a", 0, "b")) is Any


@pytest.mark.parametrize(
    ("path", "at", "known"),
    [
        (("headings",), 0, TableProps.__struct_fields__),
        (("rows", "a"), 1, ()),
        (("title", 0), 1, ()),
        (("tabs", 0, "nam"), 2, ("name", "headers", "rows", "highlight")),
        ((0,), 0, TableProps.__struct_fields__),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends_and_what_would_fit(
    path: tuple[str | int, ...], at: int, known: tuple[str, ...]
) -> None:
    with pytest.raises(NoSuchProp) as nowhere:
        type_at(TableProps, path)
    assert (nowhere.value.at, nowhere.value.known) == (at, known)
    assert not nowhere.value.in_child


@pytest.mark.parametrize(
    ("root", "path"),
    [
        (GroupProps, ("children", 0, "props")),
        (TabsProps, ("tabs", 0, "component", "id")),
        (SplitProps, ("left", "props", "content")),
    ],
)
def test_a_path_ends_at_a_component_with_an_id_of_its_own(
    root: Any, path: tuple[str | int, ...]
) -> None:
    with pytest.raises(NoSuchProp) as nowhere:
        type_at(root, path)
    assert nowhere.value.in_child


def test_all_indexes_are_one_path() -> None:
    assert normalised(["rows", 7, 3]) == ("rows", 0, 0)


def test_bounds_are_found_through_unions() -> None:
    (mark,) = bounds(type_at(ImageProps, ("width",)))
    assert mark.description == "a size in 1…10000"
    assert bounds(type_at(ImageProps, ("alt",))) == ()


def test_only_arrays_have_items() -> None:
    assert item_type(type_at(TableProps, ("headers",))) is str
    assert item_type(type_at(TableProps, ("title",))) is None


def test_names_are_those_of_objects() -> None:
    assert names_in(type_at(ChartProps, ("datasets", 0))) == ("data", "label", "color")
    assert names_in(str) == ()


def test_the_nearest_name_is_meant_else_all_are_told() -> None:
    assert nearest("hedaers", ["headers", "rows"]) == '; did you mean "headers"?'
    assert nearest("zzz", ["headers", "rows"]) == "; known are headers, rows"
    assert nearest("zzz", []) == ""


def visited(root: Any, value: Any) -> list[tuple[str, str]]:
    seen: list[tuple[str, str]] = []

    def visit(child: Any, where: str) -> Any:
        seen.append((child["id"], where))
        return child

    assert map_children(root, value, "props", visit) is value
    return seen


def test_children_are_visited_in_order_with_their_paths() -> None:
    a, b = {"id": "a"}, {"id": "b"}
    assert visited(GroupProps, {"children": [a, b]}) == [
        ("a", "props.children[0]"),
        ("b", "props.children[1]"),
    ]
    tabs = {"tabs": [{"label": "1", "component": a}, {"label": "2", "component": b}]}
    assert visited(TabsProps, tabs) == [
        ("a", "props.tabs[0].component"),
        ("b", "props.tabs[1].component"),
    ]
    assert visited(SplitProps, {"left": a, "right": b}) == [
        ("a", "props.left"),
        ("b", "props.right"),
    ]
    assert visited(TableProps, {"headers": ["a"], "rows": [[1]]}) == []
    assert visited(Any, {"id": "a"}) == []


def test_a_visit_that_gives_another_child_copies_its_holders_alone() -> None:
    a, b = {"id": "a"}, {"id": "b"}
    first = {"label": "1", "component": a}
    second = {"label": "2", "component": b}
    value = {"tabs": [first, second], "active_tab": 1}
    changed = map_children(
        TabsProps, value, "", lambda child, _: {"id": "c"} if child is a else child
    )
    assert changed == {
        "tabs": [{"label": "1", "component": {"id": "c"}}, {"label": "2", "component": b}],
        "active_tab": 1,
    }
    assert changed["tabs"][1] is second
    assert value == {"tabs": [first, second], "active_tab": 1}
    assert first == {"label": "1", "component": a}
