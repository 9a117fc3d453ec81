"""The catalog says what protocol.md 3 says, and where children stand in props."""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.catalog import (
    CATALOG,
    VERSIONS,
    asks,
    chain,
    has_free_slots,
    is_custom,
    may_have_parts,
    put_children,
    slot_names,
    split_children,
)

CHAINS = {
    "text": ("text",),
    "markdown": ("markdown", "text"),
    "status-card": ("status-card", "text"),
    "table": ("table", "text"),
    "code-block": ("code-block", "text"),
    "diff": ("diff", "code-block", "text"),
    "key-value": ("key-value", "text"),
    "progress": ("progress", "text"),
    "chart": ("chart", "table", "text"),
    "image": ("image", "text"),
    "product-cards": ("product-cards", "table", "text"),
    "form": ("form", "text"),
    "confirm": ("confirm", "text"),
    "choices": ("choices", "text"),
    "text-input": ("text-input", "text"),
    "group": ("group", "text"),
    "tabs": ("tabs", "group", "text"),
    "split": ("split", "group", "text"),
}


def test_the_core_components_have_version_1() -> None:
    assert set(CATALOG) == set(CHAINS)
    assert dict(VERSIONS) == dict.fromkeys(CHAINS, 1)


@pytest.mark.parametrize("name", CHAINS)
def test_every_chain_ends_in_text_in_declared_order(name: str) -> None:
    assert chain(name) == CHAINS[name]


def test_an_unknown_type_has_no_chain() -> None:
    with pytest.raises(KeyError):
        chain("tabel")


def test_categories_answers_and_slots_are_those_of_the_protocol() -> None:
    assert {n: s.answered_by for n, s in CATALOG.items() if s.answered_by} == {
        "table": "selection",
        "form": "form_submit",
        "confirm": "action",
        "choices": "selection",
        "text-input": "text",
        "tabs": "action",
    }
    assert {n: s.slots for n, s in CATALOG.items() if s.slots} == {
        "group": "children",
        "tabs": "tabs",
        "split": "split",
    }
    assert {n: s.text_path for n, s in CATALOG.items() if s.text_path} == {
        "text": "content",
        "markdown": "content",
        "code-block": "code",
    }
    inputs = [name for name, spec in CATALOG.items() if spec.category == "input"]
    assert inputs == ["form", "confirm", "choices", "text-input"]
    layouts = [name for name, spec in CATALOG.items() if spec.category == "layout"]
    assert layouts == ["group", "tabs", "split"]


@pytest.mark.parametrize("name", ["x-acme-map", "x-a-b-c", "s-map", "s-map-2", "x-1-2"])
def test_a_custom_type_names_its_vendor_or_is_staged(name: str) -> None:
    assert is_custom(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x-acme",
        "x--map",
        "s-",
        "s-a-",
        "x-Acme-map",
        "x-a_b-c",
        "map",
        "s-map\n",
        "x-ä-map",
        "s-" + "a" * 63,
    ],
)
def test_other_names_are_not_custom(name: str) -> None:
    assert not is_custom(name)


A = {"id": "a", "type": "text", "props": {"content": "a"}}
B = {"id": "b", "type": "text", "props": {"content": "b"}}

GROUP = {"direction": "horizontal", "children": [A, B]}
TABS = {
    "active_tab": 1,
    "tabs": [{"label": "one", "component": A}, {"label": "two", "icon": "x", "component": B}],
}
SPLIT = {"left": A, "right": B, "ratio": "1:2"}


@pytest.mark.parametrize(
    ("type_name", "props", "own"),
    [
        ("group", GROUP, {"direction": "horizontal"}),
        (
            "tabs",
            TABS,
            {"active_tab": 1, "tabs": [{"label": "one"}, {"label": "two", "icon": "x"}]},
        ),
        ("split", SPLIT, {"ratio": "1:2"}),
    ],
)
def test_children_are_taken_out_and_put_back(
    type_name: str, props: dict[str, Any], own: dict[str, Any]
) -> None:
    assert split_children(type_name, props) == (own, [A, B])
    assert put_children(type_name, own, [A, B]) == props


def test_nothing_is_taken_out_of_what_has_no_children() -> None:
    props = {"children": [A], "left": B, "tabs": []}
    own, children = split_children("table", props)
    assert own is props
    assert children == []
    assert put_children("table", own, []) == props


def test_props_that_are_taken_apart_are_not_changed() -> None:
    props: dict[str, Any] = {"tabs": [{"label": "one", "component": A}]}
    own, _ = split_children("tabs", props)
    own["tabs"][0]["label"] = "other"
    assert props == {"tabs": [{"label": "one", "component": A}]}


def test_a_group_or_tabs_may_be_empty() -> None:
    assert split_children("group", {}) == ({}, [])
    assert split_children("tabs", {"active_tab": 0}) == ({"active_tab": 0, "tabs": []}, [])


@pytest.mark.parametrize(
    ("type_name", "props"),
    [
        ("group", {"children": 5}),
        ("tabs", {"tabs": [1]}),
        ("tabs", {"tabs": [{"label": "no component"}]}),
        ("split", {"left": A}),
    ],
)
def test_props_that_do_not_fit_raise(type_name: str, props: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, AttributeError)):
        split_children(type_name, props)


def test_only_a_group_has_children_that_come_and_go() -> None:
    """protocol.md 4: `parent` of an insert; tabs and splits have fixed places."""
    assert has_free_slots("group")
    assert not any(has_free_slots(name) for name in ("tabs", "split", "table", "x-acme-box"))


def test_slots_are_those_of_the_catalog() -> None:
    """protocol.md 3: group, tabs and split."""
    assert slot_names("group") == ("children",)
    assert slot_names("tabs") == ("tabs",)
    assert slot_names("split") == ("left", "right")
    assert slot_names("form") == slot_names("x-acme-box") == ()


def test_layouts_and_custom_components_may_be_shown_as_several() -> None:
    assert all(may_have_parts(name) for name in ("group", "tabs", "split", "x-acme-box"))
    assert not may_have_parts("table")


@pytest.mark.parametrize(
    ("kind", "props", "is_question"),
    [
        ("form", {}, True),
        ("text", {}, False),
        ("group", {}, False),
        ("table", {"selectable": "many"}, True),
        ("table", {"selectable": "none"}, False),
        ("table", {}, False),
        ("x-acme-dial", {}, True),
    ],
)
def test_what_can_be_a_question(kind: str, props: dict[str, str], is_question: bool) -> None:
    assert asks(kind, props) == is_question
