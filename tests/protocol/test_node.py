"""A component and its children come apart and together again, whatever a peer sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.component import Component
from arp.protocol.errors import InvalidPatch
from arp.protocol.node import MAX_FALLBACKS, Node, apart, as_object, from_object, levels_of
from tests.surface.random_changes import component

A: dict[str, Any] = {"id": "a", "type": "text", "props": {"content": "a"}}
B: dict[str, Any] = {"id": "b", "type": "text", "props": {"content": "b"}}


def group(*children: Any, component_id: str = "g") -> Component:
    return Component(component_id, "group", {"children": list(children), "gap": "small"})


def test_object_holds_what_is_not_the_default() -> None:
    fallback = Component("f", "text", {"content": "f"})
    shown = Component("x", "x-acme-dial", {"v": 1}, 2, fallback)
    plain = {
        "id": "x",
        "type": "x-acme-dial",
        "props": {"v": 1},
        "version": 2,
        "fallback": {"id": "f", "type": "text", "props": {"content": "f"}},
    }
    assert as_object(shown) == plain
    assert from_object(plain) == shown
    assert from_object(A) == Component("a", "text", {"content": "a"})
    assert as_object(from_object(A)) == A


@given(st.randoms(use_true_random=False))
def test_object_and_component_are_the_same_thing(chance: Any) -> None:
    shown = component(chance)
    assert from_object(as_object(shown)) == shown


def test_children_come_apart_and_together() -> None:
    alone, children = apart(group(A, B))
    assert alone == Component("g", "group", {"gap": "small"})
    assert children == [from_object(A), from_object(B)]
    node = Node(alone, "t1", None, 3)
    assert node.whole(children) == Component("g", "group", {"gap": "small", "children": [A, B]})


def test_component_without_children_is_one_with_its_node() -> None:
    text = from_object(A)
    assert apart(text) == (text, [])
    assert Node(text, "", None, 0).whole([]) is text


@pytest.mark.parametrize(
    "children",
    [5, "abc", [1], [None], [{"id": "a"}], [{**A, "id": 5}], [{**A, "props": []}], [[A]]],
)
def test_what_is_no_list_of_components_is_refused(children: Any) -> None:
    """A renderer trusts the wire's structure only."""
    with pytest.raises(InvalidPatch, match=r"^component 'g': its props hold no children"):
        apart(Component("g", "group", {"children": children}))


@pytest.mark.parametrize("props", [{"left": A}, {"left": A, "right": None}])
def test_half_a_split_is_refused(props: dict[str, Any]) -> None:
    with pytest.raises(InvalidPatch, match="children of a split"):
        apart(Component("s", "split", props))


def test_fallbacks_without_end_are_refused() -> None:
    shown = Component("x", "x-acme-dial", {})
    for _ in range(MAX_FALLBACKS):
        shown = Component("x", "x-acme-dial", {}, 1, shown)
    assert apart(shown) == (shown, [])
    with pytest.raises(InvalidPatch, match="more than 16 fallbacks"):
        apart(Component("x", "x-acme-dial", {}, 1, shown))


def test_text_that_was_appended_is_joined_when_it_is_read() -> None:
    node = Node(Component("t", "text", {"content": "a"}), "", None, 0)
    node.tail = ["b", "c"]
    node.join()
    assert (node.own, node.tail) == ({"content": "abc"}, [])
    node.tail = ["d"]
    assert node.whole([]).props == {"content": "abcd"}


def test_text_is_appended_to_nothing_too() -> None:
    node = Node(Component("t", "text", {}), "", None, 0)
    node.tail = ["b"]
    node.join()
    assert node.own == {"content": "b"}


def test_node_knows_its_root_and_its_level() -> None:
    root = Node(group(), "t1", None, 0)
    inner = Node(group(component_id="h"), "t1", root, 0)
    leaf = Node(from_object(A), "t1", inner, 0)
    assert (root.level, inner.level, leaf.level) == (1, 2, 3)
    assert leaf.root is inner.root is root.root is root


def test_levels_count_what_stands_in_place_of_a_component() -> None:
    """A fallback may be a group where the component itself has no children."""
    assert levels_of(from_object(A)) == 1
    assert levels_of(group(A, as_object(group(B, component_id="h")))) == 3
    assert levels_of(Component("x", "x-acme-dial", {}, 1, group(A))) == 2
    assert levels_of(group(as_object(Component("x", "x-acme-dial", {}, 1, group(A))))) == 3
