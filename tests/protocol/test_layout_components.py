"""The three layout components and what stands in them (protocol.md 3)."""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.component import Component
from arp.protocol.errors import InvalidComponent
from arp.protocol.validation import check_component

LEFT = {"id": "l", "type": "text", "props": {"content": "left"}}
RIGHT = {"id": "r", "type": "text", "props": {"content": "right"}, "version": 1}

FITS: list[tuple[str, dict[str, Any]]] = [
    ("group", {"children": []}),
    ("group", {"children": [LEFT, RIGHT], "direction": "horizontal", "gap": "none"}),
    ("tabs", {"tabs": []}),
    ("tabs", {"tabs": [{"label": "L", "icon": "★", "component": LEFT}], "active_tab": 0}),
    ("split", {"left": LEFT, "right": RIGHT}),
    ("split", {"left": LEFT, "right": RIGHT, "ratio": "1:2", "direction": "vertical"}),
]

FAILS: list[tuple[str, dict[str, Any], str]] = [
    ("group", {}, "component.props.children: missing"),
    (
        "group",
        {"children": ["a"]},
        "component.props.children[0]: expected object, got string",
    ),
    (
        "group",
        {"children": [LEFT, {"id": "t", "type": "table", "props": {"headers": [], "rows": 5}}]},
        "component.props.children[1].props.rows: expected array, got number",
    ),
    ("tabs", {"tabs": [{"label": "L"}]}, "component.props.tabs[0].component: missing"),
    (
        "tabs",
        {"tabs": [{"label": "L", "component": {"id": "t", "type": "text", "props": {}}}]},
        "component.props.tabs[0].component.props.content: missing",
    ),
    (
        "tabs",
        {"tabs": [], "active_tab": "L"},
        "component.props.active_tab: expected number, got string",
    ),
    ("split", {"left": LEFT}, "component.props.right: missing"),
    (
        "split",
        {"left": LEFT, "right": RIGHT, "ratio": "0:1"},
        'component.props.ratio: expected a ratio such as "1:2"',
    ),
    (
        "split",
        {"left": LEFT, "right": LEFT},
        'component.props.right.id: "l" is used twice',
    ),
]


@pytest.mark.parametrize(("kind", "props"), FITS)
def test_props_of_the_catalog_fit(kind: str, props: dict[str, Any]) -> None:
    component = Component("c", kind, props)
    assert check_component(component) is component


@pytest.mark.parametrize(("kind", "props", "message"), FAILS)
def test_what_does_not_fit_is_refused_by_its_path(
    kind: str, props: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidComponent) as refused:
        check_component(Component("c", kind, props))
    assert refused.value.message == message
