"""A commit is checked whole, then it stands, or nothing has changed (protocol.md 4)."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.components import Component
from arp.protocol.errors import (
    ArpError,
    ComponentUnsupported,
    InvalidComponent,
    InvalidPatch,
    ResourceLimit,
)
from arp.protocol.limits import Limits
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update
from arp.protocol.tree import Tree
from arp.protocol.validate import check_component
from arp.surface.change import Change, PatchChange, RenderChange
from arp.surface.surface import Surface
from tests.surface.random_changes import change


def text(component_id: str, content: str = "x") -> Component:
    return Component(component_id, "text", {"content": content})


def plain(component_id: str) -> dict[str, Any]:
    return {"id": component_id, "type": "text", "props": {"content": "x"}}


def group(component_id: str, *children: Any) -> Component:
    return Component(component_id, "group", {"children": list(children)})


def surface(*components: Component, **limits: int) -> Surface:
    out = Surface(Tree(), Limits(**limits))
    commit(out, RenderChange(list(components)))
    return out


def commit(on: Surface, *changes: Change, seq: int = 1) -> list[Change]:
    return on.commit(changes, "t1", seq)


def patch(on: Surface, *ops: PatchOp) -> list[Change]:
    return commit(on, PatchChange(list(ops)), seq=2)


def refused(on: Surface, *changes: Change) -> ArpError:
    """Why a commit is refused; the surface is as it was."""
    before = inside(on.tree)
    with pytest.raises(ArpError) as error:
        commit(on, *changes, seq=2)
    assert inside(on.tree) == before
    return error.value


def inside(tree: Tree) -> Any:
    """All that a tree holds, as values."""
    nodes = {
        node.id: (node.component, node.children, node.turn, node.born, node.seq)
        for node in tree.nodes.values()
    }
    return copy.deepcopy((nodes, tree.outputs, tree.removed, tree.restructured, tree.reshaped))


# -- what is applied -------------------------------------------------------------------------------


def test_commit_gives_the_changes_as_they_were_applied() -> None:
    """The alias `text` is `content` from here on."""
    on = Surface(Tree(), Limits())
    applied = commit(
        on,
        RenderChange([Component("a", "text", {"text": "A"})], "query"),
        PatchChange([Update("a", "props.format", "markdown")]),
    )
    assert applied == [
        RenderChange([text("a", "A")], "query"),
        PatchChange([Update("a", "props.format", "markdown")]),
    ]
    assert on.tree.output("t1") == [Component("a", "text", {"content": "A", "format": "markdown"})]


def test_what_is_applied_is_not_what_the_tree_goes_on_changing() -> None:
    """Else a renderer would be told a later op twice."""
    on = Surface(Tree(), Limits())
    table = Component("t", "table", {"headers": ["h"], "rows": [["1"]]})
    more = [["2"]]
    applied = commit(
        on,
        RenderChange([table]),
        PatchChange([Append("t", "props.rows", more), Update("t", "props.rows.1.0", "two")]),
        PatchChange([Insert(group("g", plain("a"))), Append("a", "props.content", "y")]),
    )
    assert table.props["rows"] == [["1"]]
    assert more == [["2"]]
    assert isinstance(applied[0], RenderChange)
    assert applied[0].components[0].props["rows"] == [["1"]]
    assert on.tree.component("t").props["rows"] == [["1"], ["two"]]
    assert on.tree.component("a").props["content"] == "xy"
    assert isinstance(applied[2], PatchChange)
    assert applied[2].ops[0] == Insert(group("g", plain("a")))


def test_alias_in_a_patched_value_is_told_as_content() -> None:
    on = surface(group("g"))
    child = {"id": "a", "type": "text", "props": {"text": "A"}}
    applied = patch(on, Update("g", "props.children", [child]))
    told = {"id": "a", "type": "text", "props": {"content": "A"}}
    assert applied == [PatchChange([Update("g", "props.children", [told])])]
    assert on.tree.component("a") == text("a", "A")


def test_replace_sets_the_whole_surface() -> None:
    on = surface(text("a"), text("b"))
    commit(on, RenderChange([text("c")], None, replace=True), seq=2)
    assert on.tree.output("t1") == [text("c")]


def test_new_components_join_the_turn() -> None:
    on = surface(text("a"))
    on.commit([RenderChange([text("b")])], "t2", 5)
    assert on.tree.outputs == {"t1": ["a"], "t2": ["b"]}
    assert on.tree.nodes["b"].born == 5


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        (
            RenderChange([text("ok"), Component("b", "table", {"headers": []})]),
            InvalidComponent,
            "components[1].props.rows: missing",
        ),
        (
            RenderChange([Component("b", "hologram", {})]),
            ComponentUnsupported,
            'components[0].type: no component "hologram"',
        ),
        (
            RenderChange([group("h", plain("a"))]),
            InvalidPatch,
            "component id 'a' is used twice",
        ),
        (
            PatchChange([Update("a", "props.content", "y"), Update("a", "props.content", 5)]),
            InvalidPatch,
            "ops[1] update: props.content: expected string, got number",
        ),
        (
            PatchChange([Update("a", "props.__class__", 1)]),
            InvalidPatch,
            "ops[0] update: path 'props.__class__': the segment \"__class__\" is not allowed",
        ),
        (
            PatchChange([Update("nobody", "props.content", "y")]),
            InvalidPatch,
            "ops[0] update: no component 'nobody' on this surface",
        ),
        (
            PatchChange([Append("a", "props.format", "y")]),
            InvalidPatch,
            "ops[0] append: props.format: cannot be appended to; use update",
        ),
        (
            PatchChange([Insert(Component("n", "table", {}))]),
            InvalidComponent,
            "ops[0] insert.component.props.headers: missing",
        ),
        (
            PatchChange([Remove("a"), Replace("a", text("b"))]),
            InvalidPatch,
            "ops[1] replace: no component 'a' on this surface",
        ),
        (
            PatchChange([Reorder("a", "nobody")]),
            InvalidPatch,
            "ops[0] reorder: 'nobody' is not in that list",
        ),
    ],
)
def test_refusal_names_the_component_or_the_op(
    bad: Change, kind: type[ArpError], message: str
) -> None:
    error = refused(surface(text("a")), RenderChange([text("before")]), bad)
    assert type(error) is kind
    assert error.message.startswith(message)


@pytest.mark.parametrize(
    "op",
    [
        Update("t1/1", "props.content", "y"),
        Append("t1/1", "props.content", "y"),
        Remove("t1/1"),
        Replace("t1/1", text("n")),
        Reorder("t1/1", None),
        Reorder("a", "t1/1"),
        Insert(text("n"), "t1/1"),
        Insert(text("n"), None, "t1/1"),
    ],
    ids=repr,
)
def test_what_the_agent_said_is_no_component_to_patch(op: PatchOp) -> None:
    """Renderers count the parts of what was said; none may go away."""
    on = surface(text("a"))
    on.tree.begin(1)
    on.tree.upsert(text("t1/1", "said"), "t1")
    on.tree.keep()
    assert "no component 't1/1' on this surface" in refused(on, PatchChange([op])).message


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        (RenderChange([text("a", "\ud800")]), "components[0]"),
        (RenderChange([text("b")], "\ud800"), "tool_name"),
        (PatchChange([Update("a", "props.content", "\udfff")]), "ops[0] update"),
        (PatchChange([Update("x", "props.\ud800", 1)]), "ops[0] update"),
    ],
)
def test_half_a_surrogate_pair_is_refused(bad: Change, where: str) -> None:
    """What cannot be encoded must not get as far as the log."""
    dial = Component("x", "x-acme-dial", {}, 1, text("f"))
    error = refused(surface(text("a"), dial), bad)
    assert error.message == f"{where}: holds half a surrogate pair, which is no text"


def test_limit_of_ops_in_one_commit() -> None:
    """protocol.md 4: max_patch_ops. Spec: P3."""
    on = surface(text("a"), max_patch_ops=2)
    one = Update("a", "props.content", "y")
    assert len(patch(on, one, one)) == 1
    error = refused(on, PatchChange([one]), PatchChange([one, one]))
    assert (type(error), error.detail) == (ResourceLimit, "max_patch_ops")
    assert error.message == "3 patch ops in one commit; at most 2: await something between them"


@pytest.mark.parametrize(
    "changes",
    [
        [RenderChange([text("b"), text("c"), text("d")])],
        [RenderChange([group("b", plain("c"), plain("d"))])],
        [RenderChange([text("b")]), PatchChange([Insert(text("c")), Replace("a", text("d"))])],
        [PatchChange([Update("g", "props.children", [plain("b"), plain("c")])])],
    ],
)
def test_limit_of_components_in_one_commit(changes: list[Change]) -> None:
    """protocol.md 4: max_components_per_commit, over all levels of nesting."""
    on = surface(text("a"), group("g"), max_components_per_commit=2)
    error = refused(on, *changes)
    assert (type(error), error.detail) == (ResourceLimit, "max_components_per_commit")
    commit(on, RenderChange([text("b"), text("c")]))


def test_limit_of_nesting_counts_fallbacks() -> None:
    """A group that stands in the place of a custom component needs room for its children."""
    fallback = group("", {**plain(""), "id": ""})
    dial = Component("x", "x-acme-dial", {}, 1, fallback)
    on = surface(group("g", {"id": "h", "type": "group", "props": {"children": []}}))
    error = refused(on, PatchChange([Insert(dial, None, "h")]))
    assert error.message == (
        "ops[0] insert: component 'x' is nested 4 levels deep, its fallback counted; at most 3"
    )
    as_child = {
        "id": "x",
        "type": "x-acme-dial",
        "props": {},
        "fallback": msgspec.to_builtins(fallback),
    }
    error = refused(on, PatchChange([Update("h", "props.children", [as_child])]))
    assert "nested 4 levels deep" in error.message
    patch(on, Insert(dial, None, "g"))
    patch(on, Update("h", "props.children", [plain("z")]))


def test_refused_commit_leaves_the_weights_too() -> None:
    """A heavy component stays heavy when the commit that replaces it is refused."""
    on = surface(text("a", "x" * 900), max_message_bytes=1000)
    refused(on, RenderChange([text("a")]), PatchChange([Remove("nobody")]))
    error = refused(on, PatchChange([Append("a", "props.content", "y" * 200)]))
    assert error.detail == "max_message_bytes"


# -- how heavy a component may be ------------------------------------------------------------------


def test_component_has_a_largest_size() -> None:
    """protocol.md 4: max_message_bytes; every root can be told in one message."""
    on = surface(max_message_bytes=1000)
    error = refused(on, RenderChange([text("a", "x" * 1000)]))
    assert error.message == "components[0]: component 'a' would have 1047 bytes; at most 1000"
    assert (type(error), error.detail) == (ResourceLimit, "max_message_bytes")
    error = refused(on, PatchChange([Insert(text("a", "x" * 1000))]))
    assert error.message.startswith("ops[0] insert.component: component 'a' would have")


def test_component_cannot_grow_beyond_it_by_patches() -> None:
    on = surface(text("a"), max_message_bytes=1000)
    for _ in range(9):
        patch(on, Append("a", "props.content", "y" * 100))
    error = refused(on, PatchChange([Append("a", "props.content", "y" * 100)]))
    assert error.message == "ops[0] append: component 'a' would have 1048 bytes; at most 1000"


def test_group_cannot_grow_beyond_it_by_children() -> None:
    on = surface(group("g"), max_message_bytes=1000)
    for name in "abcde":
        patch(on, Insert(text(name, "x" * 100), None, "g"))
    error = refused(on, *(PatchChange([Insert(text(n, "x" * 100), None, "g")]) for n in "mnopq"))
    assert error.message.startswith("ops[0] insert: component 'g' would have 1")


def test_what_is_overwritten_does_not_count() -> None:
    """A component that is measured is as heavy as it is, however often it was patched."""
    on = surface(text("a"), text("b"), max_message_bytes=1000)
    for number in range(100):
        patch(on, Update("a", "props.content", f"{number}" * 50))
    assert on.tree.component("a").props["content"] == "99" * 50


def test_component_of_a_restored_tree_is_measured_first() -> None:
    tree = Tree()
    tree.begin(1)
    tree.upsert(text("a", "x" * 900), "t1")
    tree.keep()
    on = Surface(tree, Limits(max_message_bytes=1000))
    patch(on, Update("a", "props.format", "plain"))
    error = refused(on, PatchChange([Append("a", "props.content", "x" * 200)]))
    assert error.detail == "max_message_bytes"


def test_nothing_is_remembered_of_what_is_forgotten() -> None:
    """Or the memory of a long session would grow with what left its tree."""
    on = surface(text("a"), text("b"))
    on.forget(["a", "never there"])
    assert list(on._weights) == ["b"]


def test_component_that_comes_back_is_weighed_anew() -> None:
    on = surface(text("a", "x" * 900), max_message_bytes=1000)
    patch(on, Remove("a"))
    patch(on, Insert(text("a")))
    patch(on, Append("a", "props.content", "y" * 800))
    assert len(on.tree.component("a").props["content"]) == 801


# -- all or nothing --------------------------------------------------------------------------------


BAD: list[Change] = [
    PatchChange([Remove("nobody")]),
    PatchChange([Update("nobody", "props.content", "x")]),
    PatchChange([Reorder("nobody", None)]),
    PatchChange([Insert(text("n"), "nobody")]),
    RenderChange([Component("n", "table", {})]),
    RenderChange([Component("n", "text", {"content": "x" * 2_000_000})]),
]


@given(seed=st.integers(0, 2**32), bad=st.sampled_from(BAD), at=st.integers(0, 5))
def test_refused_commit_leaves_current_untouched(seed: int, bad: Change, at: int) -> None:
    """One bad op anywhere, one invalid component, one limit exceeded: the state stays as it was.

    Spec: P1.
    """
    chance = Random(seed)
    on = Surface(Tree(), Limits())
    for seq in range(1, 10):
        changes = [change(chance, on.tree) for _ in range(chance.randint(1, 3))]
        before = inside(on.tree)
        try:
            commit(on, *changes, seq=seq)
        except ArpError:
            assert inside(on.tree) == before
        changes = [change(chance, on.tree) for _ in range(chance.randint(0, 3))]
        changes.insert(at % (len(changes) + 1), bad)
        refused(on, *changes)


@given(st.integers(0, 2**32))
def test_what_stands_can_be_told_and_fits_the_catalog(seed: int) -> None:
    """What is in the tree has passed validation, whatever ops made it."""
    chance = Random(seed)
    on = Surface(Tree(), Limits())
    for seq in range(1, 10):
        try:
            commit(on, change(chance, on.tree), change(chance, on.tree), seq=seq)
        except ArpError:
            continue
        shown = on.tree.output("t1")
        assert [check_component(component) for component in shown] == shown
        assert msgspec.json.encode(shown)
