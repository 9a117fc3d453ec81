"""What a kind of renderer shows as it is, and what as something else."""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.catalog import VERSIONS
from arp.protocol.components import Component
from arp.protocol.limits import RendererLimits
from arp.protocol.messages import RendererCapabilities
from arp.protocol.tree import Node
from arp.view.profile import (
    DRAFT,
    Profile,
    is_native,
    may_take_other_ids,
    profile_of,
    shown_as,
    shows,
    stands_native,
    supported,
)

TEXT: dict[str, Any] = {"id": "a", "type": "text", "props": {"content": "a"}}
TABLE: dict[str, Any] = {
    "id": "b",
    "type": "table",
    "props": {"headers": ["h"], "rows": [["1"], ["2"], ["3"]]},
}


def profile(*components: str, rows: int | None = None, **versions: int) -> Profile:
    known = {**dict.fromkeys(components, 1), **versions}
    return profile_of(
        RendererCapabilities(known, ["thinking"], RendererLimits(max_table_rows=rows))
    )


def group(*children: Any) -> Component:
    return Component("g", "group", {"children": list(children)})


def test_equal_renderers_share_a_profile() -> None:
    """So they share every frame."""
    one = profile_of(RendererCapabilities(["table", "text"], ["a", "b"]))
    other = profile_of(RendererCapabilities({"text": 1, "table": 1}, ["b", "a", "a"]))
    assert one is other
    assert hash(one) == hash(other)
    assert one != profile_of(RendererCapabilities(["table", "text"], ["a"]))


def test_text_is_always_shown() -> None:
    assert dict(profile_of(RendererCapabilities({"table": 1})).versions) == {"table": 1, "text": 1}


def test_profile_knows_the_features_that_were_named() -> None:
    assert profile("text").takes("thinking")
    assert not profile("text").takes("batch")


def test_renderer_that_never_says_hello_supports_everything_offered() -> None:
    """protocol.md 2.2."""
    assert dict(DRAFT.versions) == dict(VERSIONS)
    assert not DRAFT.said_hello
    assert not DRAFT.takes("patch-append")


def test_what_degrading_needs_is_made_once() -> None:
    wanted = profile("text", "table", rows=2)
    assert supported(wanted).max_table_rows == 2
    assert supported(wanted) is supported(wanted)


@pytest.mark.parametrize(
    ("wanted", "type_name", "version", "does"),
    [
        (profile("table"), "table", 1, True),
        (profile("table"), "table", 2, False),
        (profile(table=2), "table", 1, True),
        (profile("table", rows=5), "table", 1, False),
        (profile("table", rows=5), "text", 1, True),
        (profile("table"), "chart", 1, False),
        (profile("x-acme-dial"), "x-acme-dial", 1, True),
    ],
)
def test_type_is_shown_if_it_is_known_in_that_version(
    wanted: Profile, type_name: str, version: int, does: bool
) -> None:
    assert shows(wanted, type_name, version) == does


@pytest.mark.parametrize(
    ("component", "wanted", "native"),
    [
        (group(TEXT), profile("group"), True),
        (group(TEXT, TABLE), profile("group"), False),
        (group(TEXT, TABLE), profile("group", "table"), True),
        (group(TEXT, TABLE), profile("group", "table", rows=9), False),
        (group(TEXT), profile("text"), False),
        (group(group(TABLE).props["children"][0]), profile("group"), False),
        (group(), profile("group"), True),
        (Component("x", "x-acme-dial", {}, 2), profile(**{"x-acme-dial": 1}), False),
    ],
)
def test_component_is_native_with_all_in_it(
    component: Component, wanted: Profile, native: bool
) -> None:
    assert is_native(component, wanted) == native


def test_node_stands_native_with_all_around_it() -> None:
    """What is in it may not be: its own list of children is what this is about."""
    root = Node(Component("t", "tabs", {"tabs": []}), "", None, 0)
    inner = Node(group(), "", root, 0)
    leaf = Node(Component("a", "text", {}), "", inner, 0)
    assert stands_native(leaf, profile("tabs", "group"))
    assert not stands_native(leaf, profile("group"))
    assert not stands_native(leaf, profile("tabs"))
    assert stands_native(inner, profile("tabs", "group"))


@pytest.mark.parametrize(
    ("type_name", "wanted", "may"),
    [
        ("group", profile("text"), True),
        ("tabs", profile("tabs"), True),
        ("x-acme-dial", profile("text"), True),
        ("chart", profile("text"), False),
        ("group", profile("group"), False),
        ("x-acme-dial", profile("group"), False),
    ],
)
def test_only_without_group_do_other_ids_stand_in_a_place(
    type_name: str, wanted: Profile, may: bool
) -> None:
    assert may_take_other_ids(type_name, wanted) == may


def test_native_component_is_shown_as_it_is() -> None:
    shown = group(TEXT)
    assert shown_as(shown, profile("group"))[0] is shown


def test_other_component_is_shown_as_something_simpler() -> None:
    (text,) = shown_as(Component("b", "table", TABLE["props"]), profile("text"))
    assert (text.id, text.type) == ("b", "text")
    assert all(number in text.props["content"] for number in "123")
    (cut,) = shown_as(Component("b", "table", TABLE["props"]), profile("table", rows=2))
    assert cut.type == "table"
    assert cut.props["rows"][:2] == [["1"], ["2"]]
    assert ["3"] not in cut.props["rows"]


def test_layout_that_is_not_known_stands_as_its_children() -> None:
    ids = [piece.id for piece in shown_as(group(TEXT, TABLE), profile("text", "table"))]
    assert ids == ["a", "b"]
