"""The components of a surface by id, with atomic renders and patches.

Theory of operation. A `Tree` is changed in place, so that the cost of a commit depends on the size
of the change and not on the size of the tree. `begin` opens the tree. Every step of the change then
adds its inverse to an undo log: `rollback` runs the log backwards, `keep` discards it. Both sides
of the wire use this class: the agent's surface, after validation, and a renderer's screen, which
checks only the structure of what it receives. A tree never modifies its arguments: a component is
copied before its first patch, and the value of a patch is copied when it is stored.

Root components are listed in *outputs*: one list per turn on the surface `main`, and the single
list `""` on other surfaces.

Catch-up of a lagging renderer reads three records: `removed` holds the components that were
removed. `restructured` is the newest commit that a catch-up cannot reproduce by updating roots and
appending new ones: the order changed, an id was reused elsewhere, or its removal is no longer
remembered. `reshaped` is the newest commit that cannot be reproduced for renderers that show the
parts of a root instead of the root itself.
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
    split_children,
)
from arp.protocol.components import Component, as_object
from arp.protocol.errors import InvalidPatch, ResourceLimit
from arp.protocol.json_value import Json, JsonObject, kind_of
from arp.protocol.limits import MAX_LEVELS
from arp.protocol.mark import END, Mark, OutputAnchor
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update, parse_path

REMEMBERED = 256
"""Removed components that are remembered; a renderer lagging further behind needs a snapshot."""


MOST_FALLBACKS = 16
"""Longest chain of fallbacks, four times the limit of the agent side. It bounds the recursion."""


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
        """The component without its children."""
        self.is_own = False
        """Whether the props belong to this node alone, so that they may be changed in place."""
        self.children: list[str] = []
        """Ids of the children, in order."""
        self.parent = parent
        self.turn = turn
        self.born = seq
        """Commit that added the component."""
        self.seq = seq
        """Last commit that changed the component or one of its descendants."""
        self.tail: list[str] = []
        """Text appended to `content` that is not joined to it yet."""
        self.successor: Node | None = None
        """Node that replaced this root component in its position; it may have another id."""

    @property
    def own(self) -> JsonObject:
        """Props without children."""
        return self.component.props

    @property
    def root(self) -> Node:
        """The root component above this node, or the node itself."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    @property
    def level(self) -> int:
        """Nesting level: 1 for a root component."""
        return 1 if self.parent is None else self.parent.level + 1

    def join(self) -> None:
        """Move appended text into `content`."""
        if self.tail:
            tail, self.tail = self.tail, []
            self.set("content", "".join([self.own.get("content", ""), *tail]))

    def set(self, name: str, value: Json) -> None:
        """Set one prop outside a change; this cannot be rolled back."""
        if self.is_own:
            self.own[name] = value
        else:
            props = {**self.own, name: value}
            self.component = msgspec.structs.replace(self.component, props=props)

    def writable(self) -> JsonObject:
        """Return the props for changes in place; copy them first if they may be shared."""
        self.join()
        if not self.is_own:
            props = msgspec.to_builtins(self.own)
            self.component = msgspec.structs.replace(self.component, props=props)
            self.is_own = True
        return self.own

    def whole(self, children: Sequence[Component]) -> Component:
        """Return the component with `children` in its props, if its type has children."""
        self.join()
        if not slot_names(self.type):
            return self.component
        props = put_children(self.type, self.own, [as_object(child) for child in children])
        return msgspec.structs.replace(self.component, props=props)


class RemovedComponent(NamedTuple):
    """A removed component."""

    seq: int
    """Commit that removed it."""
    born: int
    """Commit that added it."""
    type: str
    root: str
    """Id of the root component above it, or its own id if it was a root."""


def levels_of(component: Component) -> int:
    """Return the nesting levels of a component or of its fallback, whichever is deeper.

    Raises:
        InvalidPatch: The component does not have the required structure; see `apart`.
    """
    below = (levels_of(child) for child in apart(component)[1])
    instead = levels_of(component.fallback) if component.fallback is not None else 1
    return max(instead, 1 + max(below, default=0))


def apart(component: Component) -> tuple[Component, list[Component]]:
    """Return a component without its children, and the list of the children.

    Only the structure is checked, so that no message of a peer can break a tree.

    Raises:
        InvalidPatch: The props for children do not hold components, or the chain of fallbacks is
            longer than `MOST_FALLBACKS`.
    """
    fallback, fallbacks = component.fallback, 0
    while fallback is not None:
        fallback, fallbacks = fallback.fallback, fallbacks + 1
    if fallbacks > MOST_FALLBACKS:
        raise InvalidPatch(f"component {component.id!r}: more than {MOST_FALLBACKS} fallbacks")
    if not slot_names(component.type):
        return component, []
    try:
        own, children = split_children(component.type, component.props)
        found = msgspec.convert(children, list[Component])
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError):
        raise InvalidPatch(
            f"component {component.id!r}: its props hold no children of a {component.type}",
            detail=component.id,
        ) from None
    return msgspec.structs.replace(component, props=own), found


class Marks:
    """The marks of one tree, grouped by the root component that they follow."""

    __slots__ = ("_by_root", "_removals", "handed")

    def __init__(self) -> None:
        self.handed: set[str | None] = set()
        """Ids of the roots that received marks of removed roots in the last change.

        `None` means that marks moved to the position before all output.
        """
        self._by_root: dict[str, list[Mark]] = {}
        self._removals: list[tuple[Node, str | None]] = []

    def add(self, mark: Mark) -> None:
        """Register a mark under its root. A mark before all output never moves and is skipped."""
        if mark.behind.component is not None:
            self._by_root.setdefault(mark.behind.component, []).append(mark)

    def note_removed(self, root: Node, heir: str | None) -> None:
        """Record that the open change removes a root; `apply_removals` then moves its marks.

        Args:
            root: The removed root component.
            heir: Id of the root that receives its marks: the replacement, or else the preceding
                root; `None` = there is none.
        """
        # A root without marks may still receive those of a root removed earlier in this change.
        if root.id in self._by_root or self._removals:
            self._removals.append((root, heir))

    def drop(self, marks: Iterable[Mark]) -> None:
        """Forget the marks of an evicted turn."""
        for mark in marks:
            name = mark.behind.component
            siblings = self._by_root.get(name) if name is not None else None
            if siblings is not None and name is not None:
                siblings[:] = [one for one in siblings if one is not mark]
                if not siblings:
                    del self._by_root[name]

    def discard(self) -> None:
        """Forget the recorded removals, because the change was rolled back."""
        self._removals.clear()

    def apply_removals(self, nodes: Mapping[str, Node]) -> None:
        """Move the marks of removed roots to the roots that `note_removed` named as heirs.

        A root that was removed and then added again in the same change keeps its marks.

        Args:
            nodes: The nodes of the tree after the change.
        """
        self.handed = set()
        for root, heir in self._removals:
            current = nodes.get(root.id)
            # An id that now belongs to a child, or to another turn, is no longer the same root:
            # its marks would be shown in the wrong turn, or not at all.
            if current is not None and current.parent is None and current.turn == root.turn:
                continue
            before = nodes.get(heir) if heir is not None else None
            # An heir that was itself removed later in this change has no node: its own entry in
            # `_removals` follows and moves these marks on.
            behind = end_of(before) if before is not None else OutputAnchor(heir)
            for mark in self._by_root.pop(root.id, ()):
                mark.behind = behind
                self.add(mark)
                self.handed.add(heir)
        self._removals.clear()


def end_of(root: Node) -> OutputAnchor:
    """Return the position after a root component; in a text part, after its current text."""
    if "/" not in root.id:
        return OutputAnchor(root.id)
    # A delta may extend a text part later. The mark belongs before that text, so its position
    # includes the current length.
    root.join()
    content = root.own.get("content")
    return OutputAnchor(root.id, len(content) if isinstance(content, str) else None)


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
        """Ids of root components in order, by turn (`""` on surfaces without turns)."""
        self.marks = Marks()
        """Positions of inputs, thinking, tools and errors in the output."""
        self.removed: dict[str, RemovedComponent] = {}
        """Removed components that were not added again, oldest first."""
        self.gone: dict[str, Node] = {}
        """Nodes that the newest change removed or replaced, by id, in their previous state."""
        self.restructured = 0
        """Last commit that requires a snapshot for every renderer that has not received it."""
        self.reshaped = 0
        """Last commit that replaced a root component which some renderers show in parts: a layout,
        or a component with a layout as fallback."""
        self.added = 0
        """Number of components that the newest change added or replaced, on all levels."""
        self._undo: list[Callable[[], Any]] = []
        self._seq = 0

    # -- reading ---------------------------------------------------------------------------------

    def component(self, component_id: str) -> Component:
        """Return a component with its children in its props.

        Later patches may change its props: copy what must stay the same.

        Raises:
            KeyError: No such id.
        """
        node = self.nodes[component_id]
        return node.whole([self.component(child) for child in node.children])

    def output(self, turn: str = "") -> list[Component]:
        """Return the root components of one turn, in order."""
        return [self.component(root) for root in self.outputs.get(turn, ())]

    def root_of(self, component_id: str) -> Node:
        """Return the root component above a component, or the component itself.

        Raises:
            KeyError: No such id.
        """
        return self.nodes[component_id].root

    # -- one change, all or nothing --------------------------------------------------------------

    def begin(self, seq: int = 0) -> None:
        """Open the tree for a change with the number `seq`."""
        self._undo.clear()
        self.marks.discard()
        self.gone.clear()
        self.added = 0
        self._seq = seq

    def keep(self) -> None:
        """Close the tree and keep the change."""
        self._undo.clear()
        # Only a kept change may move marks: `rollback` could not move them back.
        self.marks.apply_removals(self.nodes)
        while len(self.removed) > REMEMBERED:
            forgotten = self.removed.pop(next(iter(self.removed)))
            # A renderer that missed this removal would keep showing the component for ever.
            self.restructured = max(self.restructured, forgotten.seq)

    def rollback(self) -> None:
        """Close the tree and restore its state before `begin`."""
        while self._undo:
            self._undo.pop()()
        self.marks.discard()
        self.gone.clear()
        self.added = 0

    def upsert(self, component: Component, turn: str = "") -> None:
        """Replace the component with this id, or add it at the end of the turn's output.

        Raises:
            InvalidPatch, ResourceLimit: It does not fit the tree. The tree is still open and the
                change is incomplete; call `rollback`.
        """
        if component.id in self.nodes:
            self._replace(component.id, component)
        else:
            self._add_to_list(component, self._output(turn), turn, None, None)

    def clear(self) -> None:
        """Remove all components."""
        for output in self.outputs.values():
            for root in list(output):
                self._remove(self.nodes[root])
        self._mark("restructured")

    def patch(self, op: PatchOp, turn: str = "") -> None:
        """Apply one operation.

        Raises:
            InvalidPatch, ResourceLimit: The target, path or position does not exist, or a limit is
                exceeded. The tree is still open and the change is incomplete; call `rollback`.
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
        """Append text to a prop, outside a change; it cannot be rolled back.

        The cost depends on `text` alone if the prop is `content`, and on the whole value otherwise.

        Args:
            component_id: An existing component.
            path: Name of a prop that holds a string or is absent.
            text: The text to append.
            seq: The number of this change.
        """
        node = self.nodes[component_id]
        if path == "content":
            # Joining on every delta would make the cost of a long text quadratic.
            node.tail.append(text)
        else:
            node.set(path, node.own.get(path, "") + text)
        ancestor: Node | None = node
        while ancestor is not None:
            ancestor.seq = max(seq, ancestor.seq)
            ancestor = ancestor.parent

    def mark(self, mark: Mark, turn: str = "") -> None:
        """Add a mark to the output of a turn.

        Args:
            mark: The mark; the tree updates its position from now on. `END` is resolved to the end
                of the turn's current output.
            turn: The turn.
        """
        if mark.behind is END:
            output = self.outputs.get(turn)
            mark.behind = end_of(self.nodes[output[-1]]) if output else OutputAnchor()
        self.marks.add(mark)

    # -- operations of a patch -------------------------------------------------------------------

    def _update(self, op: Update) -> None:
        node = self._find(op.target)
        segments = parse_path(op.path)
        name = str(segments[0])
        if name not in slot_names(node.type) or _is_label(node.type, segments):
            holder, key = self._container_at(node, segments, op.path)
            self._set(holder, key, op.value)
            self._touch(node)
        elif len(segments) == 1:
            # Children are nodes of their own. Setting the prop would leave the old nodes in the
            # tree, so an update of all children replaces the whole component.
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
        holder, key = self._container_at(node, segments, op.path)
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
            # The list of `after` decides, not the current turn: the component may belong to an
            # earlier turn.
            sibling = self._find(after)
            parent, turn = sibling.parent, sibling.turn
        if parent is not None and not has_free_slots(parent.type):
            raise InvalidPatch(
                f"{parent.id!r} is a {parent.type}: only a group takes inserted children",
                detail=parent.id,
            )
        siblings = parent.children if parent else self._output(turn)
        index = None if op.after is UNSET else _index_after(siblings, after)
        self._add_to_list(op.component, siblings, parent.turn if parent else turn, parent, index)

    def _reorder(self, op: Reorder) -> None:
        node = self._find(op.target)
        if op.after == op.target:
            raise InvalidPatch(f"{op.target!r} cannot be moved after itself", detail=op.target)
        siblings = self._movable_siblings(node)
        before = siblings.index(op.target)
        del siblings[before]
        self._undo.append(lambda: siblings.insert(before, op.target))
        index = _index_after(siblings, op.after)
        siblings.insert(index, op.target)
        self._undo.append(lambda: siblings.__delitem__(index))
        self._touch(node)
        if node.parent is None:
            self._mark("restructured")

    # -- steps of an operation, each with its undo -------------------------------------------------

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

    def _siblings(self, node: Node) -> list[str]:
        return node.parent.children if node.parent else self.outputs[node.turn]

    def _movable_siblings(self, node: Node) -> list[str]:
        """Return the list of a component if it may be moved within it or removed from it.

        Raises:
            InvalidPatch: The component has a fixed position in its parent.
        """
        if node.parent is not None and not has_free_slots(node.parent.type):
            raise InvalidPatch(
                f"{node.id!r} has a fixed place in a {node.parent.type}", detail=node.id
            )
        return self._siblings(node)

    def _add_to_list(
        self,
        component: Component,
        siblings: list[str],
        turn: str,
        parent: Node | None,
        index: int | None,
    ) -> None:
        level = parent.level + 1 if parent else 1
        node = self._add(component, turn, parent, level)
        at = len(siblings) if index is None else index
        if parent is None and at < len(siblings):
            # A catch-up adds new roots at the end, so it would show this one in the wrong position.
            self._mark("restructured")
        siblings.insert(at, component.id)
        self._undo.append(lambda: siblings.__delitem__(at))
        self._touch(node)

    def _add(self, component: Component, turn: str, parent: Node | None, level: int) -> Node:
        """Add nodes for a component and its children, without adding it to the list of its parent.

        Raises:
            InvalidPatch: An id is in use, or the component is malformed.
            ResourceLimit: Nested deeper than `MAX_LEVELS`.
        """
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
            self._record_reuse(component.id, node.root.id)
        for child in children:
            self._add(child, turn, node, level + 1)
            node.children.append(child.id)
        return node

    def _record_reuse(self, component_id: str, root: str) -> None:
        """Record that the id of a removed component is in use again."""
        removed_before = dict(self.removed)
        before = self.removed.pop(component_id)

        def undo() -> None:
            # Restores the order too: the oldest entries are forgotten first, and a stored state
            # keeps this order.
            self.removed.clear()
            self.removed.update(removed_before)

        self._undo.append(undo)
        # A lagging renderer still shows the old component with this id. Inside the same root it
        # receives that root again. Anywhere else it would update the old one in its old position.
        if before.root != root or root == component_id:
            self._mark("restructured")

    def _replace(self, target: str, component: Component) -> None:
        old = self.nodes[target]
        siblings = self._siblings(old)
        index = siblings.index(target)
        self._remove_nodes(old, old.root.id, in_place=component.id == target)
        added = self._add(component, old.turn, old.parent, old.level)
        if component.id == target:
            added.born = old.born
            if old.parent is None and may_have_parts(old.type):
                # Renderers that show the parts of the old root must remove them first.
                self._mark("reshaped")
        elif old.parent is None:
            self._mark("restructured")
            self.marks.note_removed(old, component.id)
        if old.parent is None:
            old.successor = added
            self._undo.append(partial(setattr, old, "successor", None))
        siblings[index] = component.id
        self._undo.append(lambda: siblings.__setitem__(index, target))
        self._touch(added)

    def _remove(self, node: Node) -> None:
        siblings = self._movable_siblings(node)
        index = siblings.index(node.id)
        if node.parent is not None:
            # Removing a root needs no touch: `removed` records it. A child disappears only when
            # its root is sent again.
            self._touch(node.parent)
        self._remove_nodes(node, node.root.id)
        if node.parent is None:
            self.marks.note_removed(node, siblings[index - 1] if index else None)
        del siblings[index]
        self._undo.append(lambda: siblings.insert(index, node.id))

    def _remove_nodes(self, node: Node, root: str, *, in_place: bool = False) -> None:
        """Remove a node and its descendants; `in_place` means that its id is added again."""
        for child in node.children:
            self._remove_nodes(self.nodes[child], root)
        del self.nodes[node.id]
        self._undo.append(lambda: self.nodes.__setitem__(node.id, node))
        self.gone.setdefault(node.id, node)
        if not in_place:
            self.removed[node.id] = RemovedComponent(self._seq, node.born, node.type, root)
            self._undo.append(lambda: self.removed.pop(node.id))

    def _container_at(
        self, node: Node, segments: tuple[str | int, ...], path: str
    ) -> tuple[Json, str | int]:
        """Return the object or array that contains the last segment, and that segment.

        Raises:
            InvalidPatch: The path leads to nothing.
        """
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
        """Store a copy of a value, so that later patches do not change the operation's value."""
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
        """Mark a component and its ancestors as changed by this commit."""
        ancestor: Node | None = node
        while ancestor is not None:
            if ancestor.seq < self._seq:
                self._undo.append(partial(setattr, ancestor, "seq", ancestor.seq))
                ancestor.seq = self._seq
            ancestor = ancestor.parent

    def _mark(self, name: Literal["restructured", "reshaped"]) -> None:
        self._undo.append(partial(setattr, self, name, getattr(self, name)))
        setattr(self, name, self._seq)


def _check_offset(op: Append, old: Sequence[Json]) -> None:
    if op.offset is not None and op.offset != len(old):
        raise InvalidPatch(
            f"{op.path}: append at {op.offset}, but its length is {len(old)}", detail=op.target
        )


def _index_after(siblings: list[str], after: str | None) -> int:
    if after is None:
        return 0
    try:
        return siblings.index(after) + 1
    except ValueError:
        raise InvalidPatch(f"{after!r} is not in that list", detail=after) from None


def _is_label(type_name: str, segments: Sequence[str | int]) -> bool:
    """Return whether a path leads to the label or icon of a tab: props of `tabs`, not children."""
    return type_name == "tabs" and tuple(segments[2:]) in (("label",), ("icon",))


def _index(items: list[Json], segment: str | int, path: str) -> int:
    if not isinstance(segment, int) or segment >= len(items):
        raise InvalidPatch(f"{path}: the array has {len(items)} items, no {segment!r}")
    return segment
