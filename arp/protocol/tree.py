"""Components by id, and what renders and patches do to them: all or nothing.

Theory of operation. A `Tree` is changed in place, because the cost of a commit must follow the
change and not the tree. Everything that a change does is written into an undo log first; `rollback`
plays it backwards and `keep` forgets it. Between the two the tree is *open*. Both sides of the wire
use this class: the agent's surface behind its validation, and a renderer's screen, which trusts the
wire's structure only. What it is given stays as it is: a component is copied before its first
patch, the value of a patch when it is put in its place.

Root components stand in *outputs*: one list per turn on the surface `main`, the list `""` on
others.

For renderers that are behind, a tree knows what went away (`removed`) and since when adding at the
end no longer tells what happened: `restructured` is an order that changed, an id that came back
elsewhere, or more removals than are remembered; `reshaped` matters to those who show parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET

from arp.protocol.catalog import (
    has_free_slots,
    may_have_parts,
    put_children,
    slot_names,
    take_children,
)
from arp.protocol.components import Component, as_object
from arp.protocol.errors import InvalidPatch, ResourceLimit
from arp.protocol.json_value import Json, JsonObject, kind_of
from arp.protocol.limits import MAX_LEVELS
from arp.protocol.mark import END, Behind, Mark
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update, parse_path

REMEMBERED = 256
"""Removed components remembered for renderers that are behind; older ones cost them a snapshot."""


MOST_FALLBACKS = 16
"""Fallbacks in a row: four times what the agent side lets pass, so that reading one always ends."""


class Node:
    """One component in a tree."""

    __slots__ = (
        "born",
        "children",
        "component",
        "id",
        "is_own",
        "parent",
        "seq",
        "successor",
        "tail",
        "turn",
        "type",
    )

    def __init__(self, component: Component, turn: str, parent: Node | None, seq: int) -> None:
        self.id = component.id
        self.type = component.type
        self.component = component
        """Without its children."""
        self.is_own = False
        """Whether nobody else holds its props, so that they may change in place."""
        self.children: list[str] = []
        """Their ids, in order."""
        self.parent = parent
        self.turn = turn
        self.born = seq
        """The commit that put it there."""
        self.seq = seq
        """The last commit that touched it or something in it."""
        self.tail: list[str] = []
        """Text appended to `content` that is not yet joined to it."""
        self.successor: str | None = None
        """Of a root component that is gone: the one that took its place under another id."""

    @property
    def own(self) -> JsonObject:
        """Its props without children."""
        return self.component.props

    @property
    def root(self) -> Node:
        """The root component that holds it, or itself."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    @property
    def level(self) -> int:
        """How deep it stands: 1 for a root component."""
        return 1 if self.parent is None else self.parent.level + 1

    def join(self) -> None:
        """Put text that was appended into `content`."""
        if self.tail:
            tail, self.tail = self.tail, []
            self.set("content", "".join([self.own.get("content", ""), *tail]))

    def set(self, name: str, value: Json) -> None:
        """Set one of its props, for good: not as a part of a change that may be undone."""
        if self.is_own:
            self.own[name] = value
        else:
            props = {**self.own, name: value}
            self.component = msgspec.structs.replace(self.component, props=props)

    def writable(self) -> JsonObject:
        """Return its props for changes in place; what somebody else may hold is copied first."""
        self.join()
        if not self.is_own:
            props = msgspec.to_builtins(self.own)
            self.component = msgspec.structs.replace(self.component, props=props)
            self.is_own = True
        return self.own

    def whole(self, children: Sequence[Component]) -> Component:
        """Return the component with children in its props, where its type has any."""
        self.join()
        if not slot_names(self.type):
            return self.component
        props = put_children(self.type, self.own, [as_object(child) for child in children])
        return msgspec.structs.replace(self.component, props=props)


class Removed(NamedTuple):
    """A component that went away."""

    seq: int
    """The commit that took it."""
    born: int
    """The commit that had put it there."""
    type: str
    root: str
    """The id of the root component that held it; its own if it was one."""


def levels_of(component: Component) -> int:
    """Count the levels that a component takes, whether it is shown itself or by a fallback.

    Raises:
        InvalidPatch: As `apart`.
    """
    below = (levels_of(child) for child in apart(component)[1])
    instead = levels_of(component.fallback) if component.fallback is not None else 1
    return max(instead, 1 + max(below, default=0))


def apart(component: Component) -> tuple[Component, list[Component]]:
    """Return a component without its children, and them.

    Raises:
        InvalidPatch: What stands where children belong is none, or its fallbacks do not end: the
            wire's structure only is looked at, so that nothing that a peer sends can break a tree.
    """
    fallback, fallbacks = component.fallback, 0
    while fallback is not None:
        fallback, fallbacks = fallback.fallback, fallbacks + 1
    if fallbacks > MOST_FALLBACKS:
        raise InvalidPatch(f"component {component.id!r}: more than {MOST_FALLBACKS} fallbacks")
    if not slot_names(component.type):
        return component, []
    try:
        own, children = take_children(component.type, component.props)
        found = msgspec.convert(children, list[Component])
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError):
        raise InvalidPatch(
            f"component {component.id!r}: its props hold no children of a {component.type}",
            detail=component.id,
        ) from None
    return msgspec.structs.replace(component, props=own), found


class Marks:
    """The marks of one tree, by the root component that they stand behind."""

    __slots__ = ("_by_root", "_left", "handed")

    def __init__(self) -> None:
        self.handed: set[str | None] = set()
        """The roots to which the last change handed marks of those that it removed."""
        self._by_root: dict[str, list[Mark]] = {}
        self._left: list[tuple[Node, str | None]] = []

    def add(self, mark: Mark) -> None:
        """Keep a mark at its place; those before all output stay there, and need no keeping."""
        if mark.behind.component is not None:
            self._by_root.setdefault(mark.behind.component, []).append(mark)

    def note_removed(self, root: Node, heir: str | None) -> None:
        """Note that a root component goes away: with the change, `heir` gets its marks.

        Args:
            root: The component.
            heir: What stands in its place, or before it; `None` = nothing.
        """
        if root.id in self._by_root or self._left:
            self._left.append((root, heir))

    def drop(self, marks: Iterable[Mark]) -> None:
        """Forget marks whose turn is no longer kept."""
        for mark in marks:
            name = mark.behind.component
            here = self._by_root.get(name) if name is not None else None
            if here is not None and name is not None:
                here[:] = [one for one in here if one is not mark]
                if not here:
                    del self._by_root[name]

    def discard(self) -> None:
        """Forget what `note_removed` noted: the change is not made."""
        self._left.clear()

    def apply_removals(self, nodes: Mapping[str, Node]) -> None:
        """Give the marks of root components that are gone to their successors.

        One that is there again has only moved, and keeps its marks.

        Args:
            nodes: What is there after the change.
        """
        self.handed = set()
        for root, heir in self._left:
            there = nodes.get(root.id)
            if there is not None and there.parent is None and there.turn == root.turn:
                continue
            before = nodes.get(heir) if heir is not None else None
            behind = end_of(before) if before is not None else Behind(heir)
            for mark in self._by_root.pop(root.id, ()):
                mark.behind = behind
                self.add(mark)
                self.handed.add(heir)
        self._left.clear()


def end_of(root: Node) -> Behind:
    """Return the place behind a root component as it is now; text may still join a text part."""
    if "/" not in root.id:
        return Behind(root.id)
    root.join()
    content = root.own.get("content")
    return Behind(root.id, len(content) if isinstance(content, str) else None)


class Tree:
    """The components of one surface."""

    __slots__ = (
        "_seq",
        "_undo",
        "added",
        "gone",
        "marks",
        "nodes",
        "outputs",
        "removed",
        "reshaped",
        "restructured",
    )

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.outputs: dict[str, list[str]] = {}
        """Ids of root components in order, by turn (`""` where there are no turns)."""
        self.marks = Marks()
        """What stands among the output without being a component."""
        self.removed: dict[str, Removed] = {}
        """What went away and did not come back, oldest first."""
        self.gone: dict[str, Node] = {}
        """What the newest change took away or replaced, by id, as it was before."""
        self.restructured = 0
        """The last commit after which a renderer that was behind it needs a snapshot."""
        self.reshaped = 0
        """The last commit that put something else in the place of a root component which a
        renderer may show in parts: a layout, or what has such a fallback."""
        self.added = 0
        """How many components the newest change added or replaced, over all levels."""
        self._undo: list[Callable[[], Any]] = []
        self._seq = 0

    # -- reading ---------------------------------------------------------------------------------

    def component(self, component_id: str) -> Component:
        """Return a component whole, children inside its props; the tree goes on changing it.

        Raises:
            KeyError: No such id.
        """
        node = self.nodes[component_id]
        return node.whole([self.component(child) for child in node.children])

    def output(self, turn: str = "") -> list[Component]:
        """Return the root components of one turn, in order."""
        return [self.component(root) for root in self.outputs.get(turn, ())]

    def root_of(self, component_id: str) -> Node:
        """Return the root component that holds a component.

        Raises:
            KeyError: No such id.
        """
        return self.nodes[component_id].root

    # -- one change, all or nothing --------------------------------------------------------------

    def begin(self, seq: int = 0) -> None:
        """Open the tree for a change that is to be known as `seq`."""
        self._undo.clear()
        self.marks.discard()
        self.gone.clear()
        self.added = 0
        self._seq = seq

    def keep(self) -> None:
        """Close the tree: the change stands."""
        self._undo.clear()
        self.marks.apply_removals(self.nodes)
        while len(self.removed) > REMEMBERED:
            forgotten = self.removed.pop(next(iter(self.removed)))
            self.restructured = max(self.restructured, forgotten.seq)

    def rollback(self) -> None:
        """Close the tree as it was before `begin`."""
        while self._undo:
            self._undo.pop()()
        self.marks.discard()
        self.gone.clear()
        self.added = 0

    def upsert(self, component: Component, turn: str = "") -> None:
        """Replace the component with this id, or add it at the end of the turn's output.

        Raises:
            InvalidPatch, ResourceLimit: It does not fit the tree. The tree is still open and holds
                half of the change; call `rollback`.
        """
        if component.id in self.nodes:
            self._replace(component.id, component)
        else:
            self._place(component, self._output(turn), turn, None, None)

    def clear(self) -> None:
        """Remove everything."""
        for output in self.outputs.values():
            for root in list(output):
                self._remove(self.nodes[root])
        self._mark("restructured")

    def patch(self, op: PatchOp, turn: str = "") -> None:
        """Apply one op.

        Raises:
            InvalidPatch, ResourceLimit: A target, path or place that is not there. The tree is
                still open and holds half of the change; call `rollback`.
        """
        match op:
            case Update():
                self._update(op)
            case Append():
                self._append(op)
            case Insert():
                self._insert(op, turn)
            case Remove():
                self._remove(self._find(op.target))
            case Replace():
                self._find(op.target)
                self._replace(op.target, op.component)
            case _:
                self._reorder(op)

    def append_text(self, component_id: str, path: str, text: str, seq: int = 0) -> None:
        """Extend a text of a component, outside any change, at the cost of `text` alone.

        Args:
            component_id: A component that is there.
            path: Its prop, which holds a string or is absent; appending to any but `content` costs
                as much as the whole of it.
            text: What to add.
            seq: What the change is to be known as.
        """
        node = self.nodes[component_id]
        if path == "content":
            node.tail.append(text)
        else:
            node.set(path, node.own.get(path, "") + text)
        at: Node | None = node
        while at is not None:
            at.seq = max(seq, at.seq)
            at = at.parent

    def mark(self, mark: Mark, turn: str = "") -> None:
        """Put a mark at its place, or behind all that a turn has put out so far.

        Args:
            mark: Takes its place from here on. One that names a component stays with it.
            turn: Whose output it stands in.
        """
        if mark.behind is END:
            output = self.outputs.get(turn)
            mark.behind = end_of(self.nodes[output[-1]]) if output else Behind()
        self.marks.add(mark)

    # -- the ops ---------------------------------------------------------------------------------

    def _update(self, op: Update) -> None:
        node = self._find(op.target)
        segments = parse_path(op.path)
        name = str(segments[0])
        if name not in slot_names(node.type) or _is_label(node.type, segments):
            holder, key = self._reach(node, segments, op.path)
            self._set(holder, key, op.value)
            self._touch(node)
        elif len(segments) == 1:
            component = self.component(node.id)
            props = {**component.props, name: op.value}
            self._replace(node.id, msgspec.structs.replace(component, props=props))
        else:
            raise InvalidPatch(
                f"{node.id!r}: the children of a {node.type} are patched by their own ids",
                detail=node.id,
            )

    def _append(self, op: Append) -> None:
        node = self._find(op.target)
        segments = parse_path(op.path)
        if segments[0] in slot_names(node.type):
            raise InvalidPatch(f"{op.path}: add children with insert", detail=op.target)
        holder, key = self._reach(node, segments, op.path)
        old = holder.get(key) if isinstance(holder, dict) else holder[key]
        if isinstance(op.value, str) and (old is None or isinstance(old, str)):
            _check_offset(op, old or "")
            self._set(holder, key, (old or "") + op.value)
        elif isinstance(op.value, list) and (old is None or isinstance(old, list)):
            _check_offset(op, old or ())
            if old:
                self._extend(old, op.value)
            else:
                self._set(holder, key, op.value)
        else:
            raise InvalidPatch(
                f"{op.path}: cannot append {kind_of(op.value)} to {kind_of(old)}", detail=op.target
            )
        self._touch(node)

    def _insert(self, op: Insert, turn: str) -> None:
        after = None if op.after is UNSET else op.after
        if op.component.id in self.nodes:
            raise InvalidPatch(
                f"component {op.component.id!r} is there already; use replace",
                detail=op.component.id,
            )
        parent: Node | None = None
        if op.parent is not None:
            parent = self._find(op.parent)
        elif after is not None:
            sibling = self._find(after)
            parent, turn = sibling.parent, sibling.turn
        if parent is not None and not has_free_slots(parent.type):
            raise InvalidPatch(
                f"{parent.id!r} is a {parent.type}: only a group takes inserted children",
                detail=parent.id,
            )
        places = parent.children if parent else self._output(turn)
        index = None if op.after is UNSET else _place_behind(places, after)
        self._place(op.component, places, parent.turn if parent else turn, parent, index)

    def _reorder(self, op: Reorder) -> None:
        node = self._find(op.target)
        if op.after == op.target:
            raise InvalidPatch(f"{op.target!r} cannot stand behind itself", detail=op.target)
        places = self._free_places(node)
        before = places.index(op.target)
        del places[before]
        self._undo.append(lambda: places.insert(before, op.target))
        index = _place_behind(places, op.after)
        places.insert(index, op.target)
        self._undo.append(lambda: places.__delitem__(index))
        self._touch(node)
        if node.parent is None:
            self._mark("restructured")

    # -- the steps that they are made of, each with its undo ---------------------------------------

    def _find(self, component_id: str) -> Node:
        node = self.nodes.get(component_id)
        if node is None:
            raise InvalidPatch(
                f"no component {component_id!r} on this surface", detail=component_id
            )
        return node

    def _output(self, turn: str) -> list[str]:
        found = self.outputs.get(turn)
        if found is None:
            found = self.outputs[turn] = []
            self._undo.append(lambda: self.outputs.pop(turn))
        return found

    def _places(self, node: Node) -> list[str]:
        return node.parent.children if node.parent else self.outputs[node.turn]

    def _free_places(self, node: Node) -> list[str]:
        """Return the list that a component can be moved in or taken from."""
        if node.parent is not None and not has_free_slots(node.parent.type):
            raise InvalidPatch(
                f"{node.id!r} has a fixed place in a {node.parent.type}", detail=node.id
            )
        return self._places(node)

    def _place(
        self,
        component: Component,
        places: list[str],
        turn: str,
        parent: Node | None,
        index: int | None,
    ) -> None:
        level = parent.level + 1 if parent else 1
        node = self._add(component, turn, parent, level)
        at = len(places) if index is None else index
        if parent is None and at < len(places):
            self._mark("restructured")
        places.insert(at, component.id)
        self._undo.append(lambda: places.__delitem__(at))
        self._touch(node)

    def _add(self, component: Component, turn: str, parent: Node | None, level: int) -> Node:
        """Add a node and its children, not yet placed in any list."""
        if level > MAX_LEVELS:
            raise ResourceLimit(
                f"component {component.id!r} is nested {level} levels deep; at most {MAX_LEVELS}",
                detail=component.id,
            )
        if component.id in self.nodes:
            raise InvalidPatch(f"component id {component.id!r} is used twice", detail=component.id)
        alone, children = apart(component)
        node = self.nodes[component.id] = Node(alone, turn, parent, self._seq)
        self._undo.append(lambda: self.nodes.pop(component.id))
        self.added += 1
        if component.id in self.removed:
            self._reuse(component.id, node.root.id)
        for child in children:
            self._add(child, turn, node, level + 1)
            node.children.append(child.id)
        return node

    def _reuse(self, component_id: str, root: str) -> None:
        """Record that an id is in use again; in another place that counts as restructured."""
        removed_before = dict(self.removed)
        before = self.removed.pop(component_id)

        def undo() -> None:
            # In the order of before: the oldest are forgotten first, and a state holds them so.
            self.removed.clear()
            self.removed.update(removed_before)

        self._undo.append(undo)
        if before.root != root or root == component_id:
            self._mark("restructured")

    def _replace(self, target: str, component: Component) -> None:
        old = self.nodes[target]
        places = self._places(old)
        index = places.index(target)
        self._forget(old, old.root.id, in_place=component.id == target)
        added = self._add(component, old.turn, old.parent, old.level)
        if component.id == target:
            added.born = old.born
            if old.parent is None and may_have_parts(old.type):
                self._mark("reshaped")
        elif old.parent is None:
            self._mark("restructured")
            self.marks.note_removed(old, component.id)
            old.successor = component.id
            self._undo.append(partial(setattr, old, "successor", None))
        places[index] = component.id
        self._undo.append(lambda: places.__setitem__(index, target))
        self._touch(added)

    def _remove(self, node: Node) -> None:
        places = self._free_places(node)
        index = places.index(node.id)
        if node.parent is not None:
            self._touch(node.parent)
        self._forget(node, node.root.id)
        if node.parent is None:
            self.marks.note_removed(node, places[index - 1] if index else None)
        del places[index]
        self._undo.append(lambda: places.insert(index, node.id))

    def _forget(self, node: Node, root: str, *, in_place: bool = False) -> None:
        for child in node.children:
            self._forget(self.nodes[child], root)
        del self.nodes[node.id]
        self._undo.append(lambda: self.nodes.__setitem__(node.id, node))
        self.gone.setdefault(node.id, node)
        if not in_place:
            self.removed[node.id] = Removed(self._seq, node.born, node.type, root)
            self._undo.append(lambda: self.removed.pop(node.id))

    def _reach(
        self, node: Node, segments: tuple[str | int, ...], path: str
    ) -> tuple[Json, str | int]:
        """Return the container that holds the last segment, and that segment."""
        holder: Json = node.writable()
        for segment in segments[:-1]:
            if isinstance(holder, dict) and str(segment) in holder:
                holder = holder[str(segment)]
            elif isinstance(holder, list):
                holder = holder[_index(holder, segment, path)]
            else:
                raise InvalidPatch(
                    f"{path}: there is no {segment!r} in {node.id!r}", detail=node.id
                )
        last = segments[-1]
        if isinstance(holder, dict):
            return holder, str(last)
        if isinstance(holder, list):
            return holder, _index(holder, last, path)
        raise InvalidPatch(f"{path}: {kind_of(holder)} has no {last!r}", detail=node.id)

    def _set(self, holder: Json, key: str | int, value: Json) -> None:
        """Put a copy of a value in its place: the op that brought it stays as it is."""
        if isinstance(holder, dict) and key not in holder:
            self._undo.append(lambda: holder.pop(key))
        else:
            old = holder[key]
            self._undo.append(lambda: holder.__setitem__(key, old))
        holder[key] = msgspec.to_builtins(value)

    def _extend(self, items: list[Json], more: list[Json]) -> None:
        length = len(items)
        items.extend(msgspec.to_builtins(more))
        self._undo.append(lambda: items.__delitem__(slice(length, None)))

    def _touch(self, node: Node) -> None:
        """Mark a component, and those that it stands in, as changed."""
        at: Node | None = node
        while at is not None:
            if at.seq < self._seq:
                self._undo.append(partial(setattr, at, "seq", at.seq))
                at.seq = self._seq
            at = at.parent

    def _mark(self, name: Literal["restructured", "reshaped"]) -> None:
        self._undo.append(partial(setattr, self, name, getattr(self, name)))
        setattr(self, name, self._seq)


def _check_offset(op: Append, old: Sequence[Json]) -> None:
    if op.offset is not None and op.offset != len(old):
        raise InvalidPatch(
            f"{op.path}: append at {op.offset}, but its length is {len(old)}", detail=op.target
        )


def _place_behind(places: list[str], after: str | None) -> int:
    if after is None:
        return 0
    try:
        return places.index(after) + 1
    except ValueError:
        raise InvalidPatch(f"{after!r} does not stand in that list", detail=after) from None


def _is_label(type_name: str, segments: Sequence[str | int]) -> bool:
    """Return whether a path into `tabs` means a tab's label or icon, which are the tabs' own."""
    return type_name == "tabs" and tuple(segments[2:]) in (("label",), ("icon",))


def _index(items: list[Json], segment: str | int, path: str) -> int:
    if not isinstance(segment, int) or segment >= len(items):
        raise InvalidPatch(f"{path}: the array has {len(items)} items, no {segment!r}")
    return segment
