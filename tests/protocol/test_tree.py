"""Renders and patches change a tree whole or not at all (protocol.md 4)."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from arp.protocol.components import Component, as_object, from_object
from arp.protocol.errors import ArpError, InvalidPatch, ResourceLimit
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update
from arp.protocol.tree import MOST_FALLBACKS, REMEMBERED, Node, Tree, apart, levels_of
from tests.surface.random_changes import component, op


def text(component_id: str, content: str = "") -> Component:
    return Component(component_id, "text", {"content": content or component_id})


def plain(component_id: str) -> dict[str, Any]:
    return {"id": component_id, "type": "text", "props": {"content": component_id}}


def group(component_id: str, *children: Any) -> Component:
    return Component(component_id, "group", {"children": list(children)})


def nested(component_id: str, *children: Any) -> dict[str, Any]:
    return {"id": component_id, "type": "group", "props": {"children": list(children)}}


def tree(*components: Component, turn: str = "") -> Tree:
    out = Tree()
    out.begin(1)
    for shown in components:
        out.upsert(shown, turn)
    out.keep()
    return out


def patched(into: Tree, *ops: PatchOp, seq: int = 2, turn: str = "") -> Tree:
    into.begin(seq)
    for one in ops:
        into.patch(one, turn)
    into.keep()
    return into


def refused(into: Tree, one: PatchOp) -> str:
    """Why an op is refused; the tree is as it was."""
    before = inside(into)
    into.begin(2)
    with pytest.raises((InvalidPatch, ResourceLimit)) as error:
        into.patch(one)
    into.rollback()
    assert inside(into) == before
    return error.value.message


def inside(of: Tree) -> Any:
    """All that a tree holds, as values."""
    nodes = {
        node.id: (
            node.component,
            node.children,
            node.turn,
            node.born,
            node.seq,
            node.parent.id if node.parent else None,
        )
        for node in of.nodes.values()
    }
    outputs = {turn: [of.component(root) for root in roots] for turn, roots in of.outputs.items()}
    return copy.deepcopy((nodes, outputs, of.removed, of.restructured, of.reshaped))


def order(of: Tree, turn: str = "") -> list[str]:
    return list(of.outputs[turn])


def children(of: Tree, parent: str) -> list[str]:
    return list(of.nodes[parent].children)


# -- render ----------------------------------------------------------------------------------------


def test_render_adds_at_the_end_of_the_turn_or_replaces_in_place() -> None:
    """protocol.md 2.1: each component replaces the one with its id, else joins the end."""
    shown = tree(text("a"), text("b"), turn="t1")
    shown.begin(2)
    shown.upsert(text("a", "new"), "t2")
    shown.upsert(text("c"), "t2")
    shown.keep()
    assert order(shown, "t1") == ["a", "b"]
    assert order(shown, "t2") == ["c"]
    assert shown.output("t1") == [text("a", "new"), text("b")]
    assert shown.output("t3") == []


def test_render_of_a_nested_id_replaces_it_where_it_stands() -> None:
    shown = tree(group("g", plain("a"), plain("b")))
    shown.begin(2)
    shown.upsert(text("a", "new"))
    shown.keep()
    assert shown.output() == [
        group("g", {"id": "a", "type": "text", "props": {"content": "new"}}, plain("b"))
    ]


def test_clear_empties_every_output() -> None:
    shown = tree(group("g", plain("a")), turn="t1")
    shown.begin(2)
    shown.upsert(text("b"), "t2")
    shown.clear()
    shown.upsert(text("c"), "t2")
    shown.keep()
    assert (order(shown, "t1"), order(shown, "t2")) == ([], ["c"])
    assert set(shown.nodes) == {"c"}
    assert shown.restructured == 2


# -- update ----------------------------------------------------------------------------------------


def dial(**props: Any) -> Component:
    return Component("x", "x-acme-dial", props)


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ({"a": 1}, "props.a", 2, {"a": 2}),
        ({"a": 1}, "props.b", None, {"a": 1, "b": None}),
        ({"a": {"b": [1, 2]}}, "props.a.b.1", 3, {"a": {"b": [1, 3]}}),
        ({"a": [{"b": 1}]}, "props.a.0.c", [9], {"a": [{"b": 1, "c": [9]}]}),
        ({"0": {"1": "x"}}, "props.0.1", "y", {"0": {"1": "y"}}),
    ],
)
def test_update_sets_a_property(before: Any, path: str, value: Any, after: Any) -> None:
    shown = patched(tree(dial(**before)), Update("x", path, value))
    assert shown.component("x").props == after


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("props.list.3", "props.list.3: the array has 2 items, no 3"),
        ("props.list.x", "props.list.x: the array has 2 items, no 'x'"),
        ("props.list.5.a", "props.list.5.a: the array has 2 items, no 5"),
        ("props.none.a", "props.none.a: there is no 'none' in 'x'"),
        ("props.word.a.b", "props.word.a.b: there is no 'a' in 'x'"),
        ("props.word.a", "props.word.a: string has no 'a'"),
        ("title", "path 'title': begins with \"props\", then a dot"),
    ],
)
def test_update_of_what_is_not_there_is_refused(path: str, message: str) -> None:
    assert refused(tree(dial(list=[1, 2], word="w")), Update("x", path, 0)) == message


def test_update_of_a_component_that_is_not_there_is_refused() -> None:
    assert refused(tree(), Update("a", "props.content", "")) == "no component 'a' on this surface"


def test_children_can_be_set_whole_but_not_by_path() -> None:
    shown = tree(group("g", plain("a")), text("z"))
    assert "patched by their own ids" in refused(shown, Update("g", "props.children.0", plain("b")))
    patched(shown, Update("g", "props.children", [plain("b"), plain("a")]))
    assert children(shown, "g") == ["b", "a"]
    assert shown.nodes["g"].born == 1
    assert order(shown) == ["g", "z"]


def test_label_of_a_tab_is_the_tabs_own() -> None:
    tabs = [{"label": "one", "component": plain("a")}, {"label": "two", "component": plain("b")}]
    shown = tree(Component("t", "tabs", {"tabs": tabs, "active_tab": 0}))
    patched(shown, Update("t", "props.tabs.1.label", "2"), Update("t", "props.tabs.0.icon", "x"))
    assert shown.component("t").props == {
        "active_tab": 0,
        "tabs": [
            {"label": "one", "icon": "x", "component": plain("a")},
            {"label": "2", "component": plain("b")},
        ],
    }
    assert "their own ids" in refused(shown, Update("t", "props.tabs.0.component", plain("c")))


# -- append ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ({"s": "ab"}, "props.s", "c", {"s": "abc"}),
        ({"l": [1]}, "props.l", [2, 3], {"l": [1, 2, 3]}),
        ({"l": []}, "props.l", [2], {"l": [2]}),
        ({}, "props.s", "c", {"s": "c"}),
        ({"s": None}, "props.s", "c", {"s": "c"}),
        ({}, "props.l", [1], {"l": [1]}),
        ({"l": [["a"], ["b"]]}, "props.l.1", ["c"], {"l": [["a"], ["b", "c"]]}),
    ],
)
def test_append_extends_a_string_or_an_array(
    before: Any, path: str, value: Any, after: Any
) -> None:
    shown = patched(tree(dial(**before)), Append("x", path, value))
    assert shown.component("x").props == after


@pytest.mark.parametrize(
    ("path", "value", "offset", "message"),
    [
        ("props.s", "c", 1, "props.s: append at 1, but its length is 2"),
        ("props.l", [2], 0, "props.l: append at 0, but its length is 1"),
        ("props.none", "c", 1, "props.none: append at 1, but its length is 0"),
        ("props.more", [1], 3, "props.more: append at 3, but its length is 0"),
        ("props.s", [2], None, "props.s: cannot append array to string"),
        ("props.l", "c", None, "props.l: cannot append string to array"),
        ("props.n", "c", None, "props.n: cannot append string to number"),
        ("props.n", 1, None, "props.n: cannot append number to number"),
        ("props.none", {}, None, "props.none: cannot append object to null"),
    ],
)
def test_append_that_does_not_fit_is_refused(
    path: str, value: Any, offset: int | None, message: str
) -> None:
    """`offset` is the length before, so a mismatch is noticed."""
    shown = tree(dial(s="ab", l=[1], n=5))
    assert refused(shown, Append("x", path, value, offset)) == message


def test_append_at_the_right_offset_is_taken() -> None:
    shown = patched(tree(dial(s="ab", l=[1])), Append("x", "props.s", "c", 2))
    patched(shown, Append("x", "props.l", [2], 1), Append("x", "props.new", "n", 0))
    assert shown.component("x").props == {"s": "abc", "l": [1, 2], "new": "n"}


def test_children_are_not_appended() -> None:
    shown = tree(group("g"))
    message = refused(shown, Append("g", "props.children", [plain("a")]))
    assert message == "props.children: add children with insert"


# -- insert ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (UNSET, ["a", "b", "new"]),
        (None, ["new", "a", "b"]),
        ("a", ["a", "new", "b"]),
        ("b", ["a", "b", "new"]),
    ],
)
def test_insert_puts_a_component_behind_another(after: Any, expected: list[str]) -> None:
    """`after: null` = first, absent = last, else behind that id."""
    roots = patched(tree(text("a"), text("b")), Insert(text("new"), after))
    assert order(roots) == expected
    inner = patched(tree(group("g", plain("a"), plain("b"))), Insert(text("new"), after, "g"))
    assert children(inner, "g") == expected


def test_insert_behind_a_nested_component_joins_its_group() -> None:
    shown = patched(tree(group("g", plain("a")), turn="t1"), Insert(text("b"), "a"), turn="t2")
    assert children(shown, "g") == ["a", "b"]
    assert shown.nodes["b"].turn == "t1"


def test_insert_behind_a_component_of_an_earlier_turn_joins_that_turn() -> None:
    shown = patched(tree(text("a"), turn="t1"), Insert(text("b"), "a"), turn="t2")
    assert order(shown, "t1") == ["a", "b"]
    assert shown.nodes["b"].turn == "t1"


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (Insert(text("a")), "component 'a' is there already; use replace"),
        (Insert(text("n"), "nobody"), "no component 'nobody' on this surface"),
        (Insert(text("n"), None, "nobody"), "no component 'nobody' on this surface"),
        (Insert(text("n"), "a", "g"), "'a' is not in that list"),
        (Insert(text("n"), None, "a"), "'a' is a text: only a group takes inserted children"),
        (Insert(text("n"), "l"), "'s' is a split: only a group takes inserted children"),
        (Insert(group("n", plain("a"))), "component id 'a' is used twice"),
        (Insert(group("n", plain("m"), plain("m"))), "component id 'm' is used twice"),
    ],
)
def test_insert_that_does_not_fit_is_refused(one: Insert, message: str) -> None:
    split = Component("s", "split", {"left": plain("l"), "right": plain("r")})
    assert refused(tree(text("a"), group("g"), split), one) == message


def test_nesting_ends_at_three_levels() -> None:
    """protocol.md 3: nesting is at most 3 levels deep."""
    shown = tree(group("g", nested("h", plain("a"))))
    message = refused(shown, Insert(group("i", plain("b")), None, "h"))
    assert message == "component 'b' is nested 4 levels deep; at most 3"


# -- remove, replace, reorder ----------------------------------------------------------------------


def test_remove_takes_a_component_with_its_children() -> None:
    shown = patched(tree(group("g", nested("h", plain("a"))), text("z")), Remove("g"))
    assert set(shown.nodes) == {"z"}
    assert order(shown) == ["z"]
    inner = patched(tree(group("g", plain("a"), plain("b"))), Remove("a"))
    assert children(inner, "g") == ["b"]


@pytest.mark.parametrize("one", [Remove("l"), Reorder("l", None)])
def test_what_has_a_fixed_place_stays_there(one: PatchOp) -> None:
    shown = tree(Component("s", "split", {"left": plain("l"), "right": plain("r")}))
    assert refused(shown, one) == "'l' has a fixed place in a split"


def test_replace_puts_another_component_in_the_place_of_one() -> None:
    shown = patched(tree(text("a"), text("b"), text("c")), Replace("b", group("n", plain("m"))))
    assert order(shown) == ["a", "n", "c"]
    split = tree(Component("s", "split", {"left": plain("l"), "right": plain("r")}))
    patched(split, Replace("l", text("n")))
    assert split.component("s").props == {"left": plain("n"), "right": plain("r")}


def test_replace_can_keep_what_was_in_it() -> None:
    shown = tree(group("g", plain("a"), plain("b")))
    patched(shown, Replace("g", group("g", plain("b"), plain("c"))))
    assert children(shown, "g") == ["b", "c"]


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (Replace("nobody", text("n")), "no component 'nobody' on this surface"),
        (Replace("a", text("b")), "component id 'b' is used twice"),
        (Remove("nobody"), "no component 'nobody' on this surface"),
        (Reorder("nobody", None), "no component 'nobody' on this surface"),
        (Reorder("a", "a"), "'a' cannot be moved after itself"),
        (Reorder("a", "m"), "'m' is not in that list"),
    ],
)
def test_what_names_a_wrong_component_is_refused(one: PatchOp, message: str) -> None:
    assert refused(tree(text("a"), text("b"), group("g", plain("m"))), one) == message


@pytest.mark.parametrize(
    ("target", "after", "expected"),
    [
        ("c", None, ["c", "a", "b"]),
        ("a", "b", ["b", "a", "c"]),
        ("a", "c", ["b", "c", "a"]),
        ("b", "a", ["a", "b", "c"]),
    ],
)
def test_reorder_moves_a_component_within_its_list(
    target: str, after: str | None, expected: list[str]
) -> None:
    roots = patched(tree(text("a"), text("b"), text("c")), Reorder(target, after))
    assert order(roots) == expected
    inner = patched(tree(group("g", plain("a"), plain("b"), plain("c"))), Reorder(target, after))
    assert children(inner, "g") == expected


# -- all or nothing --------------------------------------------------------------------------------


@given(st.integers(0, 2**32))
def test_refused_change_leaves_the_tree_as_it_was(seed: int) -> None:
    """protocol.md 4: one bad op, and the committed state stays as it was."""
    chance = Random(seed)
    shown = tree()
    for seq in range(1, 8):
        before = inside(shown)
        shown.begin(seq)
        try:
            for _ in range(chance.randint(1, 4)):
                if chance.random() < 0.3:
                    shown.upsert(component(chance), chance.choice(["t1", "t2"]))
                else:
                    shown.patch(op(chance, shown), "t2")
            if chance.random() < 0.3:
                raise InvalidPatch("the op that spoils it")
        except ArpError:
            shown.rollback()
            assert inside(shown) == before
        else:
            shown.keep()
        assert consistent(shown)


def consistent(of: Tree) -> bool:
    """Every node stands in exactly one list, and every list holds nodes alone."""
    listed: list[str] = [root for roots in of.outputs.values() for root in roots]
    for node in of.nodes.values():
        listed += node.children
        assert all(of.nodes[child].parent is node for child in node.children)
    assert not set(of.removed) & set(of.nodes)
    return sorted(listed) == sorted(of.nodes)


def test_rollback_leaves_what_was_removed_in_its_order() -> None:
    """The oldest is forgotten first: a refused change must not make another one the oldest."""
    shown = Tree()
    shown.begin(1)
    for name in ("a", "b", "c"):
        shown.upsert(Component(name, "text", {"content": name}), "t1")
    shown.keep()
    shown.begin(2)
    for name in ("a", "b", "c"):
        shown.patch(Remove(name), "t1")
    shown.keep()
    shown.begin(3)
    shown.upsert(Component("a", "text", {"content": "again"}), "t1")
    shown.rollback()
    assert list(shown.removed) == ["a", "b", "c"]


def test_rollback_undoes_several_changes_of_one_place() -> None:
    shown = tree(dial(l=[1], s="a"), group("g", plain("a"), plain("b")))
    before = inside(shown)
    shown.begin(2)
    for one in several():
        shown.patch(one)
    shown.rollback()
    assert inside(shown) == before
    assert (shown.added, shown.gone) == (0, {})


def several() -> Iterable[PatchOp]:
    yield Append("x", "props.l", [2])
    yield Update("x", "props.l", [7])
    yield Append("x", "props.l", [8])
    yield Append("x", "props.s", "b")
    yield Update("x", "props.new", 1)
    yield Reorder("a", "b")
    yield Insert(text("c"), "b")
    yield Remove("b")
    yield Reorder("g", None)
    yield Replace("g", text("g"))


# -- text ------------------------------------------------------------------------------------------


def test_text_is_appended_outside_any_change() -> None:
    shown = tree(group("g", plain("a"), {"id": "c", "type": "code-block", "props": {}}))
    shown.append_text("a", "content", "b", 5)
    shown.append_text("a", "content", "c", 6)
    shown.append_text("c", "code", "x = ", 7)
    shown.append_text("c", "code", "1", 8)
    assert shown.component("a").props == {"content": "abc"}
    assert shown.component("c").props == {"code": "x = 1"}
    assert (shown.nodes["a"].seq, shown.nodes["c"].seq, shown.nodes["g"].seq) == (6, 8, 8)
    shown.append_text("a", "content", "d")
    assert shown.nodes["a"].seq == 6


def test_patch_sees_the_text_that_was_appended() -> None:
    shown = tree(text("a"))
    shown.append_text("a", "content", "bc", 2)
    patched(shown, Append("a", "props.content", "d", 3), seq=3)
    assert shown.component("a").props == {"content": "abcd"}


# -- what renderers that are behind must know ------------------------------------------------------


def test_places_are_kept_of_what_came_and_what_changed() -> None:
    shown = tree(group("g", plain("a")), text("b"))
    patched(shown, Update("a", "props.content", "x"), Insert(text("c")), seq=4)
    assert (shown.nodes["g"].born, shown.nodes["g"].seq) == (1, 4)
    assert (shown.nodes["b"].born, shown.nodes["b"].seq) == (1, 1)
    assert (shown.nodes["c"].born, shown.nodes["c"].seq) == (4, 4)
    assert shown.restructured == 0


def test_what_went_away_is_remembered_with_where_it_stood() -> None:
    shown = patched(tree(group("g", plain("a")), text("b")), Remove("g"), seq=5)
    assert shown.removed["g"] == (5, 1, "group", "g")
    assert shown.removed["a"] == (5, 1, "text", "g")
    assert set(shown.gone) == {"g", "a"}


def test_replacing_in_place_is_no_removal() -> None:
    shown = patched(tree(text("a")), Replace("a", group("a", plain("b"))), seq=5)
    assert shown.removed == {}
    assert (shown.nodes["a"].born, shown.nodes["a"].seq) == (1, 5)
    assert shown.gone["a"].type == "text"
    assert shown.added == 2


@pytest.mark.parametrize(
    "ops",
    [
        [Reorder("a", "b")],
        [Insert(text("n"), None)],
        [Insert(text("n"), "a")],
        [Replace("a", text("n"))],
        [Remove("b"), Insert(text("b"))],
        [Remove("b"), Insert(text("b"), None, "g")],
        [Remove("m"), Insert(text("m"))],
        [Remove("m"), Insert(text("m"), None, "h")],
    ],
    ids=lambda ops: ", ".join(type(one).__name__ for one in ops),
)
def test_what_adding_at_the_end_cannot_tell_is_marked(ops: list[PatchOp]) -> None:
    shown = tree(text("a"), text("b"), group("g", plain("m")), group("h"))
    patched(shown, *ops, seq=7)
    assert shown.restructured == 7


@pytest.mark.parametrize(
    "ops",
    [
        [Insert(text("n"))],
        [Insert(text("n"), "g")],
        [Insert(text("n"), None, "g")],
        [Remove("m"), Insert(text("m"), None, "g")],
        [Reorder("m", None)],
        [Replace("m", text("n"))],
        [Remove("a")],
        [Replace("a", text("a"))],
    ],
    ids=lambda ops: ", ".join(type(one).__name__ for one in ops),
)
def test_what_adding_at_the_end_can_tell_is_not_marked(ops: list[PatchOp]) -> None:
    shown = patched(tree(text("a"), group("g", plain("m"))), *ops, seq=7)
    assert shown.restructured == 0


def test_layout_that_becomes_something_else_is_marked() -> None:
    """A renderer that shows the children in its place must learn that they are gone."""
    shown = patched(tree(group("g", plain("a")), text("t")), Replace("t", text("t")), seq=2)
    assert shown.reshaped == 0
    patched(shown, Replace("g", text("g")), seq=3)
    assert shown.reshaped == 3


def test_more_removals_than_are_remembered_cost_a_snapshot() -> None:
    names = [f"c{number}" for number in range(REMEMBERED + 2)]
    shown = tree(*map(text, names))
    for seq, name in enumerate(names[:-1], 10):
        patched(shown, Remove(name), seq=seq)
    assert len(shown.removed) == REMEMBERED
    assert shown.restructured == 10
    assert "c0" not in shown.removed


def test_root_of_a_component_is_found() -> None:
    shown = tree(group("g", nested("h", plain("a"))))
    assert shown.root_of("a").id == "g"
    with pytest.raises(KeyError):
        shown.root_of("nobody")


A: dict[str, Any] = {"id": "a", "type": "text", "props": {"content": "a"}}
B: dict[str, Any] = {"id": "b", "type": "text", "props": {"content": "b"}}


def group_of(*children: Any, component_id: str = "g") -> Component:
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
    alone, children = apart(group_of(A, B))
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
    [
        5,
        "abc",
        [1],
        [None],
        [{"id": "a"}],
        [{**A, "id": 5}],
        [{**A, "props": []}],
        [[A]],
    ],
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
    for _ in range(MOST_FALLBACKS):
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
    root = Node(group_of(), "t1", None, 0)
    inner = Node(group_of(component_id="h"), "t1", root, 0)
    leaf = Node(from_object(A), "t1", inner, 0)
    assert (root.level, inner.level, leaf.level) == (1, 2, 3)
    assert leaf.root is inner.root is root.root is root


def test_levels_count_what_stands_in_place_of_a_component() -> None:
    """A fallback may be a group_of where the component itself has no children."""
    assert levels_of(from_object(A)) == 1
    assert levels_of(group_of(A, as_object(group_of(B, component_id="h")))) == 3
    assert levels_of(Component("x", "x-acme-dial", {}, 1, group_of(A))) == 2
    assert levels_of(group_of(as_object(Component("x", "x-acme-dial", {}, 1, group_of(A))))) == 3


def test_what_a_tree_is_given_stays_as_it_is() -> None:
    table = Component("t", "table", {"headers": ["a"], "rows": [[1], [2]]})
    said = Component("t1/1", "text", {"content": "a"})
    code = Component("c", "code-block", {"code": "x"})
    ops: list[PatchOp] = [
        Update("t", "props.rows.0.0", 5),
        Update("t", "props.tabs", [{"name": "n", "headers": [], "rows": [[3]]}]),
        Update("t", "props.tabs.0.rows.0.0", 4),
        Append("t", "props.rows", [[6]]),
        Update("t", "props.rows.2.0", 7),
        Append("t", "props.title", "T"),
    ]
    given = copy.deepcopy((table, said, code, ops))
    of = tree(table, said, code)
    of.append_text("t1/1", "content", "b")
    of.append_text("c", "code", "y")
    patched(of, *ops)
    of.append_text("t", "title", "!")
    assert of.component("t1/1").props == {"content": "ab"}
    assert of.component("c").props == {"code": "xy"}
    assert of.component("t").props == {
        "headers": ["a"],
        "rows": [[5], [2], [7]],
        "tabs": [{"name": "n", "headers": [], "rows": [[4]]}],
        "title": "T!",
    }
    assert (table, said, code, ops) == given
