"""Components by id, and what renders and patches do to them: all or nothing.

Theory of operation. A `Tree` is changed in place, because the cost of a commit must follow the change and
not the tree. Everything that a change does is written into an undo log first; `rollback` plays it backwards
and `keep` forgets it. Between the two the tree is *open*. Both sides of the wire use this class: the
agent's surface behind its validation, and a renderer's screen, which trusts the wire's structure only.

Root components stand in *outputs*: one list per turn on the surface `main`, the list `""` on others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec import UNSET

from arp.protocol.component import Component
from arp.protocol.errors import InvalidPatch, ResourceLimit
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update
from arp.protocol.slots import put_children, slot_names, take_children
from arp.protocol.validation import parse_path

MAX_DEPTH = 3
"""Levels of nesting, protocol.md 3."""

TOMBSTONES = 256
"""Removed roots remembered for renderers that are behind; older ones cost them a snapshot."""


class Node:
    """One component in a tree; its children are nodes of their own."""

    __slots__ = (
        "born",
        "children",
        "fallback",
        "id",
        "own",
        "parent",
        "seq",
        "tail",
        "turn",
        "type",
        "version",
    )

    def __init__(self, component: Component, turn: str, parent: Node | None, seq: int) -> None:
        self.id = component.id
        self.type = component.type
        self.version = component.version
        self.fallback = component.fallback
        self.own: JsonObject = component.props
        """Props without children."""
        self.children: list[str] = []
        self.parent = parent
        self.turn = turn
        self.born = seq
        """The commit that put it there."""
        self.seq = seq
        """The last commit that touched it or something in it."""
        self.tail: list[str] = []
        """Text appended to a text part that is not yet joined to its content."""


class Removed(NamedTuple):
    """A root component that went away."""

    seq: int
    id: str
    type: str
    born: int


class Tree:
    """The components of one surface."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.outputs: dict[str, list[str]] = {}
        """Ids of root components in order, by turn (`""` where there are no turns)."""
        self.removed: deque[Removed] = deque(maxlen=TOMBSTONES)
        """The newest root components that went away."""
        self.gone: dict[str, Node] = {}
        """What the newest change took away or replaced, by id."""
        self.restructured = 0
        """The last seq at which order changed in a way that adding at the end cannot tell."""
        self._undo: list[Callable[[], Any]] = []
        self._seq = 0

    # -- reading ---------------------------------------------------------------------------------

    def component(self, component_id: str) -> Component:
        """Gives a component whole, children inside its props.

        Raises:
            KeyError: No such id.
        """
        node = self.nodes[component_id]
        if node.tail:
            self._join(node)
        props = node.own
        if slot_names(node.type):
            children = [as_object(self.component(child)) for child in node.children]
            props = put_children(node.type, props, children)
        return Component(node.id, node.type, props, node.version, node.fallback)

    def output(self, turn: str = "") -> list[Component]:
        """Gives the root components of one turn, in order."""
        return [self.component(root) for root in self.outputs.get(turn, ())]

    def root_of(self, component_id: str) -> Node:
        """Gives the root component that holds a component."""
        node = self.nodes[component_id]
        while node.parent is not None:
            node = node.parent
        return node

    # -- one change, all or nothing --------------------------------------------------------------

    def begin(self, seq: int = 0) -> None:
        """Opens the tree for a change that is to be known as `seq`."""
        self._undo.clear()
        self.gone.clear()
        self._seq = seq

    def keep(self) -> None:
        """Closes the tree: the change stands."""
        self._undo.clear()

    def rollback(self) -> None:
        """Closes the tree as it was before `begin`."""
        while self._undo:
            self._undo.pop()()

    def upsert(self, component: Component, turn: str = "") -> None:
        """Replaces the component with this id, or adds it at the end of the turn's output."""
        if component.id in self.nodes:
            self._replace(component.id, component)
        else:
            self._insert(component, self._output(turn), turn, None, None)

    def clear(self, turn: str = "") -> None:
        """Removes every root component of one output."""
        for root in list(self.outputs.get(turn, ())):
            self._remove(root)
        self._restructure()

    def patch(self, op: PatchOp, turn: str = "") -> None:
        """Applies one op.

        Raises:
            InvalidPatch: A target, path or place that is not there. The tree is still open and
                holds half of the change; call `rollback`.
        """
        match op:
            case Update():
                self._update(op)
            case Append():
                self._append(op)
            case Insert():
                self._insert_op(op, turn)
            case Remove():
                self._find(op.target)
                self._remove(op.target)
            case Replace():
                self._find(op.target)
                self._replace(op.target, op.component)
            case Reorder():
                self._reorder(op)

    def append_text(self, component_id: str, path: str, text: str, seq: int = 0) -> None:
        """Extends the text of a component, outside any commit, at the cost of `text` alone."""
        node = self.nodes[component_id]
        node.tail.append(text)
        if path != "content":
            node.own[path] = node.own.get(path, "") + "".join(node.tail)
            node.tail = []
        self._touch(node, seq)

    # -- the ops ---------------------------------------------------------------------------------

    def _update(self, op: Update) -> None:
        node = self._find(op.target)
        segments = parse_path(op.path)
        if segments[0] in slot_names(node.type) and not _is_label(node, segments):
            self._update_slot(node, segments, op.value)
            return
        holder, key = self._reach(node, segments, op.path)
        self._set(holder, key, op.value, op.path)
        self._touch(node, self._seq)

    def _update_slot(self, node: Node, segments: tuple[str | int, ...], value: Json) -> None:
        if len(segments) > 1:
            raise InvalidPatch(
                f"{node.id!r}: the children of a {node.type} are patched by their own ids",
                detail=node.id,
            )
        whole = self.component(node.id)
        self._replace(
            node.id,
            Component(
                node.id, node.type, {**whole.props, str(segments[0]): value}, node.version, node.fallback
            ),
        )

    def _append(self, op: Append) -> None:
        node = self._find(op.target)
        segments = parse_path(op.path)
        if segments[0] in slot_names(node.type):
            raise InvalidPatch(f"{op.path}: add children with insert", detail=op.target)
        if node.tail:
            self._join(node)
        holder, key = self._reach(node, segments, op.path)
        old = holder.get(key) if isinstance(holder, dict) else _at(holder, key, op.path)
        if isinstance(old, str) and isinstance(op.value, str):
            self._check_offset(op, len(old))
            self._set(holder, key, old + op.value, op.path)
        elif isinstance(old, list) and isinstance(op.value, list):
            self._check_offset(op, len(old))
            length = len(old)
            old.extend(op.value)
            self._undo.append(lambda: old.__delitem__(slice(length, None)))
        elif old is None and isinstance(op.value, str | list):
            self._check_offset(op, 0)
            self._set(holder, key, op.value, op.path)
        else:
            raise InvalidPatch(
                f"{op.path}: cannot append {_kind(op.value)} to {_kind(old)}", detail=op.target
            )
        self._touch(node, self._seq)

    @staticmethod
    def _check_offset(op: Append, length: int) -> None:
        if op.offset is not None and op.offset != length:
            raise InvalidPatch(
                f"{op.path}: append at {op.offset}, but its length is {length}", detail=op.target
            )

    def _insert_op(self, op: Insert, turn: str) -> None:
        if op.component.id in self.nodes:
            raise InvalidPatch(
                f"component {op.component.id!r} is there already; use replace", detail=op.component.id
            )
        parent: Node | None = None
        if op.parent is not None:
            parent = self._find(op.parent)
            if slot_names(parent.type) != ("children",):
                raise InvalidPatch(
                    f"{op.parent!r} is a {parent.type}: only a group takes inserted children",
                    detail=op.parent,
                )
            places, turn = parent.children, parent.turn
        elif op.after is not UNSET and op.after is not None:
            sibling = self._find(op.after)
            parent, turn = sibling.parent, sibling.turn
            if parent is not None and slot_names(parent.type) != ("children",):
                raise InvalidPatch(f"{op.after!r} stands in a {parent.type}", detail=op.after)
            places = parent.children if parent else self._output(turn)
        else:
            places = self._output(turn)
        index = None if op.after is UNSET else self._place_behind(places, op.after)
        self._insert(op.component, places, turn, parent, index)

    def _reorder(self, op: Reorder) -> None:
        node = self._find(op.target)
        if node.parent is not None and slot_names(node.parent.type) != ("children",):
            raise InvalidPatch(f"{op.target!r} has a fixed place in a {node.parent.type}", detail=op.target)
        places = node.parent.children if node.parent else self._output(node.turn)
        if op.after == op.target:
            raise InvalidPatch(f"{op.target!r} cannot stand behind itself", detail=op.target)
        before = places.index(op.target)
        del places[before]
        self._undo.append(lambda: places.insert(before, op.target))
        index = self._place_behind(places, op.after)
        places.insert(index, op.target)
        self._undo.append(lambda: places.__delitem__(index))
        self._touch(node, self._seq)
        if node.parent is None:
            self._restructure()

    # -- the steps that they are made of, each with its undo ---------------------------------------

    def _find(self, component_id: str) -> Node:
        node = self.nodes.get(component_id)
        if node is None:
            raise InvalidPatch(f"no component {component_id!r} on this surface", detail=component_id)
        return node

    def _output(self, turn: str) -> list[str]:
        return self.outputs.setdefault(turn, [])

    @staticmethod
    def _place_behind(places: list[str], after: str | None) -> int:
        if after is None:
            return 0
        try:
            return places.index(after) + 1
        except ValueError:
            raise InvalidPatch(f"{after!r} does not stand in that list", detail=after) from None

    def _insert(
        self, component: Component, places: list[str], turn: str, parent: Node | None, index: int | None
    ) -> None:
        self._add(component, turn, parent)
        at = len(places) if index is None else index
        if parent is None and at < len(places):
            self._restructure()
        places.insert(at, component.id)
        self._undo.append(lambda: places.__delitem__(at))

    def _add(self, component: Component, turn: str, parent: Node | None, level: int = 1) -> Node:
        """Adds a node and its children, not yet placed in any list."""
        if parent is not None and level == 1:
            level = self._level(parent) + 1
        if level > MAX_DEPTH:
            raise ResourceLimit(
                f"component {component.id!r} is nested {level} levels deep; at most {MAX_DEPTH}",
                detail=component.id,
            )
        if component.id in self.nodes:
            raise InvalidPatch(f"component id {component.id!r} is used twice", detail=component.id)
        node = Node(component, turn, parent, self._seq)
        self.nodes[component.id] = node
        self._undo.append(lambda: self.nodes.pop(component.id))
        if slot_names(component.type):
            node.own, children = take_children(component.type, component.props)
            for child in children:
                self._add(from_object(child), turn, node, level + 1)
                node.children.append(child["id"])
        self._touch(node, self._seq)
        return node

    def _level(self, node: Node) -> int:
        level = 1
        while node.parent is not None:
            node, level = node.parent, level + 1
        return level

    def _replace(self, target: str, component: Component) -> None:
        old = self.nodes[target]
        places = old.parent.children if old.parent else self._output(old.turn)
        index = places.index(target)
        if old.parent is None and component.id != target:
            self.removed.append(Removed(self._seq, target, old.type, old.born))
            self._restructure()
        self._forget(old)
        added = self._add(component, old.turn, old.parent)
        if component.id == target:
            added.born = old.born
        places[index] = component.id
        self._undo.append(lambda: places.__setitem__(index, target))

    def _remove(self, target: str) -> None:
        node = self.nodes[target]
        if node.parent is not None and slot_names(node.parent.type) != ("children",):
            raise InvalidPatch(f"{target!r} has a fixed place in a {node.parent.type}", detail=target)
        places = node.parent.children if node.parent else self._output(node.turn)
        index = places.index(target)
        if node.parent is None:
            if len(self.removed) == TOMBSTONES:
                self._restructure()
            self.removed.append(Removed(self._seq, target, node.type, node.born))
        else:
            self._touch(node.parent, self._seq)
        self._forget(node)
        del places[index]
        self._undo.append(lambda: places.insert(index, target))

    def _forget(self, node: Node) -> None:
        for child in node.children:
            self._forget(self.nodes[child])
        del self.nodes[node.id]
        self.gone[node.id] = node
        self._undo.append(lambda: self.nodes.__setitem__(node.id, node))

    def _reach(self, node: Node, segments: tuple[str | int, ...], path: str) -> tuple[Json, str | int]:
        """Gives the container that holds the last segment, and that segment."""
        if node.tail:
            self._join(node)
        holder: Json = node.own
        for segment in segments[:-1]:
            if isinstance(holder, dict) and str(segment) in holder:
                holder = holder[str(segment)]
            elif isinstance(holder, list):
                holder = _at(holder, segment, path)
            else:
                raise InvalidPatch(f"{path}: there is no {segment!r} in {node.id!r}", detail=node.id)
        last = segments[-1]
        if isinstance(holder, dict):
            return holder, str(last)
        if isinstance(holder, list):
            _at(holder, last, path)
            return holder, last
        raise InvalidPatch(f"{path}: {_kind(holder)} has no {last!r}", detail=node.id)

    def _set(self, holder: Json, key: str | int, value: Json, path: str) -> None:
        if isinstance(holder, dict) and key not in holder:
            self._undo.append(lambda: holder.pop(key))
        else:
            old = holder[key]
            self._undo.append(lambda: holder.__setitem__(key, old))
        holder[key] = value

    def _touch(self, node: Node, seq: int) -> None:
        at: Node | None = node
        while at is not None:
            at.seq = max(seq, at.seq)
            at = at.parent

    def _restructure(self) -> None:
        self.restructured = max(self.restructured, self._seq)

    @staticmethod
    def _join(node: Node) -> None:
        node.own["content"] = node.own.get("content", "") + "".join(node.tail)
        node.tail = []


def as_object(component: Component) -> JsonObject:
    """Gives a component as the plain object that stands in its parent's props."""
    plain: JsonObject = {"id": component.id, "type": component.type, "props": component.props}
    if component.version != 1:
        plain["version"] = component.version
    if component.fallback is not None:
        plain["fallback"] = as_object(component.fallback)
    return plain


def from_object(plain: JsonObject) -> Component:
    """Is the inverse of `as_object`, for objects that have been validated."""
    fallback = plain.get("fallback")
    return Component(
        plain["id"],
        plain["type"],
        plain["props"],
        plain.get("version", 1),
        from_object(fallback) if fallback is not None else None,
    )


def count_components(components: Iterable[Component | JsonObject]) -> int:
    """Counts components over all levels of nesting."""
    total = 0
    for component in components:
        plain = component if isinstance(component, dict) else as_object(component)
        total += 1 + count_components(take_children(plain["type"], plain["props"])[1])
    return total


def _is_label(node: Node, segments: tuple[str | int, ...]) -> bool:
    """Tells whether a path into `tabs` means a tab's label or icon, which are the tabs' own."""
    return node.type == "tabs" and len(segments) == 3 and segments[2] in ("label", "icon")  # noqa: PLR2004


def _at(items: Json, segment: str | int, path: str) -> Json:
    if not isinstance(segment, int) or segment >= len(items):
        raise InvalidPatch(f"{path}: the array has {len(items)} items, no {segment!r}")
    return items[segment]


def _kind(value: Json) -> str:
    return {
        type(None): "nothing",
        bool: "boolean",
        int: "number",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }.get(type(value), "value")
