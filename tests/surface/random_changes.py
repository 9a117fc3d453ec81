"""Random components of every type, and random ops on what stands in a tree, from one source.

Nothing here looks at what the code under test makes of them. Ids come from a small pool, so that
they are used twice, come back, and move now and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from msgspec import UNSET

from arp.protocol.components import Component
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update
from arp.protocol.tree import Tree
from arp.surface.change import Change, PatchChange, RenderChange

IDS = tuple("abcdefghijkl")

Props = dict[str, Any]

WORDS = ("", "x", "Salz & Pfeffer", "два", "| a | b |", "# no heading", "line one\nline two", "€")


def words(chance: Random) -> str:
    return chance.choice(WORDS)


def rows(chance: Random) -> list[list[Any]]:
    cells: list[Any] = ["a", 1, 2.5, None, True, "ß"]
    return [
        [chance.choice(cells) for _ in range(chance.randint(0, 3))]
        for _ in range(chance.randint(0, 4))
    ]


def leaf_props(chance: Random) -> tuple[str, Props]:
    """Type and props of a component without children."""
    leaves: list[tuple[str, Props]] = [
        ("text", {"content": words(chance), "format": chance.choice(["plain", "markdown"])}),
        ("markdown", {"content": words(chance)}),
        ("status-card", {"status": "success", "title": words(chance), "sections": []}),
        ("table", {"headers": ["h", "i"], "rows": rows(chance), "title": words(chance)}),
        ("code-block", {"code": words(chance), "language": "python"}),
        ("diff", {"before": words(chance), "after": words(chance)}),
        ("key-value", {"items": [{"key": "k", "value": words(chance)}]}),
        ("progress", {"steps": [{"name": words(chance), "status": "active"}]}),
        (
            "chart",
            {
                "type": "bar",
                "labels": ["Q1", "Q2"],
                "datasets": [{"label": words(chance), "data": [1, None]}],
            },
        ),
        ("image", {"src": "https://example.org/a.png", "alt": words(chance)}),
        ("product-cards", {"cards": [{"name": words(chance), "price": 9.5}]}),
        ("form", {"fields": [{"name": "n", "label": words(chance)}]}),
        ("confirm", {"title": words(chance)}),
        ("choices", {"options": ["one", {"label": "two", "value": 2}]}),
        ("text-input", {"label": words(chance)}),
    ]
    return chance.choice(leaves)


def component(chance: Random, ids: Sequence[str] = IDS, depth: int = 3) -> Component:
    """A component of any type; its ids are all different, but may be used elsewhere."""
    left = list(ids)
    chance.shuffle(left)
    return _component(chance, left, depth)


def _component(chance: Random, left: list[str], depth: int) -> Component:
    name = left.pop()
    kind = chance.randrange(10)
    if depth > 1 and len(left) > 3 and kind < 3:
        return Component(name, *_layout(chance, left, depth))
    if kind == 3:
        return Component(name, "x-acme-dial", {"value": [1], "note": "n"}, 1, _fallback(chance))
    return Component(name, *leaf_props(chance))


def _layout(chance: Random, left: list[str], depth: int) -> tuple[str, Props]:
    count = chance.randint(0, 3)
    children = [plain(_component(chance, left, depth - 1)) for _ in range(count) if left]
    match chance.choice(["group", "group", "tabs", "split"]):
        case "tabs":
            return "tabs", {
                "tabs": [{"label": f"tab {n}", "component": c} for n, c in enumerate(children)]
            }
        case "split" if len(children) > 1:
            return "split", {"left": children[0], "right": children[1]}
    return "group", {"children": children, "direction": "horizontal"}


def _fallback(chance: Random) -> Component:
    if chance.random() < 0.3:
        children = [
            {"id": "", "type": "text", "props": {"content": "one"}},
            {"id": "", "type": "text", "props": {"content": "two"}},
        ]
        return Component("", "group", {"children": children})
    return Component("", *leaf_props(chance))


def plain(component: Component) -> Props:
    """The object of the wire."""
    out: Props = {"id": component.id, "type": component.type, "props": component.props}
    if component.fallback is not None:
        out["fallback"] = plain(component.fallback)
    return out


# -- ops -------------------------------------------------------------------------------------------

VALUES: dict[str, list[tuple[str, Any]]] = {
    "text": [("props.content", "new"), ("props.format", "plain")],
    "markdown": [("props.content", "*new*")],
    "status-card": [("props.status", "error"), ("props.message", "why")],
    "table": [
        ("props.rows", [["r", 1], ["s", 2], ["t", 3]]),
        ("props.rows.0", ["first"]),
        ("props.title", "T"),
    ],
    "code-block": [("props.code", "pass"), ("props.title", "C")],
    "diff": [("props.after", "later")],
    "key-value": [("props.items.0.value", 7), ("props.items", [])],
    "progress": [("props.steps.0.status", "done")],
    "chart": [("props.datasets.0.data", [3, 4]), ("props.labels.0", "Q9")],
    "image": [("props.alt", "other")],
    "product-cards": [("props.cards.0.name", "Tea")],
    "form": [("props.title", "F"), ("props.fields.0.label", "L")],
    "confirm": [("props.message", "sure?")],
    "choices": [("props.options", ["only"])],
    "text-input": [("props.label", "say")],
    "group": [("props.direction", "vertical"), ("props.gap", "small")],
    "tabs": [("props.active_tab", 0), ("props.tabs.0.label", "renamed")],
    "split": [("props.ratio", "2:1")],
    "x-acme-dial": [("props.value", [2]), ("props.deep", {"a": [1]})],
}

APPENDS: dict[str, list[tuple[str, Any]]] = {
    "text": [("props.content", " more")],
    "markdown": [("props.content", " more")],
    "table": [("props.rows", [["appended", 1]]), ("props.rows.0", ["cell"])],
    "code-block": [("props.code", "\nmore")],
    "key-value": [("props.items", [{"key": "k2", "value": 1}])],
    "progress": [("props.steps", [{"name": "n", "status": "pending"}])],
    "chart": [("props.labels", ["Q3"]), ("props.datasets.0.data", [5])],
    "x-acme-dial": [("props.value", [3, 4]), ("props.note", "!")],
}


def op(chance: Random, tree: Tree) -> PatchOp:
    """An op that fits the tree more often than not."""
    there = list(tree.nodes) or ["a"]
    target = chance.choice(there) if chance.random() < 0.95 else chance.choice(IDS)
    node = tree.nodes.get(target)
    kind = node.type if node is not None else "text"
    match chance.randrange(8):
        case 0 | 1:
            path, value = chance.choice(VALUES[kind])
            if kind == "group" and chance.random() < 0.3:
                path, value = "props.children", [plain(component(chance, depth=1))]
            return Update(target, path, value)
        case 2 if kind in APPENDS:
            return Append(target, *chance.choice(APPENDS[kind]))
        case 3 | 4:
            return _insert(chance, tree, there)
        case 5:
            return Remove(target)
        case 6:
            made = component(chance, depth=2)
            if chance.random() < 0.7:
                made = Component(target, made.type, made.props, made.version, made.fallback)
            return Replace(target, made)
    return Reorder(target, chance.choice([None, *siblings(tree, target)]))


def _insert(chance: Random, tree: Tree, there: list[str]) -> Insert:
    made = component(chance, depth=2)
    groups = [name for name, node in tree.nodes.items() if node.type == "group"]
    match chance.randrange(5):
        case 0 if groups:
            parent = chance.choice(groups)
            children = tree.nodes[parent].children
            return Insert(made, chance.choice([UNSET, None, *children]), parent)
        case 1:
            return Insert(made, None)
        case 2 | 3:
            return Insert(made, chance.choice(there))
    return Insert(made)


def root_changes(chance: Random, tree: Tree, output: str) -> PatchChange:
    """Several ops on the root components of one output; each of them fits those before it.

    A commit that moves, replaces and removes the same few roots is refused too often if its ops
    are chosen one by one.

    Args:
        chance: Source of all choices.
        tree: The surface, which is not changed.
        output: The turn, or an empty string on surfaces without turns.
    """
    # Agents cannot name text parts.
    roots = [root for root in tree.outputs.get(output, ()) if "/" not in root]
    used = set(tree.nodes)
    ops: list[PatchOp] = []
    for _ in range(chance.randint(2, 5)):
        target = chance.choice(roots) if roots else None
        kind = chance.choice(["reorder", "replace", "remove", "insert"]) if target else "insert"
        if kind == "remove" and target:
            ops.append(Remove(target))
            roots.remove(target)
            used.discard(target)
        elif kind == "reorder" and target:
            roots.remove(target)
            at = chance.randint(0, len(roots))
            ops.append(Reorder(target, roots[at - 1] if at else None))
            roots.insert(at, target)
        else:
            free = [name for name in IDS if name not in used]
            at = chance.randint(0, len(roots))
            after = roots[at - 1] if at else None
            if len(free) < 4:
                break
            made = _root(chance, free)
            if kind == "replace" and target:
                ops.append(Replace(target, made))
                roots[roots.index(target)] = made.id
                used.discard(target)
            else:
                ops.append(Insert(made, after))
                roots.insert(at, made.id)
            used |= _ids_in(plain(made))
    return PatchChange(ops)


def _root(chance: Random, ids: Sequence[str]) -> Component:
    """A root component: often a text, which everybody shows, or one that few show."""
    made = component(chance, ids, depth=2)
    match chance.randrange(3):
        case 0:
            return Component(made.id, "text", {"content": words(chance)})
        case 1:
            return Component(made.id, "x-acme-dial", {"value": [1]}, 1, _fallback(chance))
    return made


def _ids_in(value: Any) -> set[str]:
    """Return all component ids in the object of a component."""
    if isinstance(value, list):
        return {name for one in value for name in _ids_in(one)}
    if not isinstance(value, dict):
        return set()
    own = {value["id"]} if isinstance(value.get("id"), str) else set()
    return own | {name for one in value.values() for name in _ids_in(one)}


def siblings(tree: Tree, target: str) -> list[str]:
    """What stands in the same list, itself not counted."""
    node = tree.nodes.get(target)
    if node is None:
        return ["a"]
    places = node.parent.children if node.parent else tree.outputs[node.turn]
    return [name for name in places if name != target]


def change(chance: Random, tree: Tree) -> Change:
    """A render or a patch, of one thing or a few."""
    if chance.random() < 0.4:
        shown = [component(chance) for _ in range(chance.randint(1, 2))]
        unique = {one.id: one for one in shown}
        tool = chance.choice([None, None, "query"])
        return RenderChange(list(unique.values()), tool, chance.random() < 0.02)
    return PatchChange([op(chance, tree) for _ in range(chance.randint(1, 3))])
