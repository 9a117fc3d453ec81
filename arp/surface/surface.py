"""The agent side of one surface, with atomic commits.

Invariants: every component in the tree has passed validation and is not shared with other code; the
cost of a commit depends on the change, not on the tree.

Theory of operation. A commit is checked twice. Before the tree is opened, limits and whole
components are checked. While it is applied, each operation is checked against the component that it
changes. Any error rolls the tree back. The size of a root is not measured at every patch. Its
*weight* is an estimate that grows by the bytes of each patch; only a weight above the limit makes
the surface measure the root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from arp.protocol.components import Component
from arp.protocol.errors import ArpError, InvalidComponent, InvalidPatch, ResourceLimit
from arp.protocol.json_value import Json
from arp.protocol.limits import MAX_LEVELS, Limits
from arp.protocol.patch import OP_NAMES, Append, Insert, PatchOp, Replace, Update, parse_path
from arp.protocol.tree import Node, Tree, levels_of
from arp.protocol.validate import check_appended, check_component, check_property
from arp.surface.change import Change, PatchChange, RenderChange

SLACK = 16
"""After a measurement, the weight is at most 15/16 of the limit. A root is therefore measured again
only after a 16th of the limit was written, and may exceed the limit by a 16th."""

_ADDING = (Insert, Replace)
_PUTTING = (Update, Append)
"""Tuples, because a union is created again on each evaluation of the expression."""


class Surface:
    """One surface of a session."""

    __slots__ = ("_levels", "_limits", "_new_weights", "_weights", "tree")

    def __init__(self, tree: Tree, limits: Limits, levels: int = MAX_LEVELS) -> None:
        """Create a surface.

        Args:
            tree: Components of the surface.
            limits: Limits of the session.
            levels: Levels of nested components that are allowed.
        """
        self.tree = tree
        self._levels = levels
        self._limits = limits
        self._weights: dict[str, int] = {}
        """Estimated size of each root as JSON, in bytes."""
        self._new_weights: dict[str, int] = {}
        """Weights changed by the current commit."""

    def commit(self, changes: Sequence[Change], turn: str, seq: int) -> list[Change]:
        """Apply all changes, or none.

        Args:
            changes: Changes in order; the caller must not modify them afterwards.
            turn: Turn of new components; `""` for surfaces without turns.
            seq: Sequence number of the commit.

        Returns:
            The changes as applied, with aliases resolved.

        Raises:
            InvalidComponent, InvalidPatch, ComponentUnsupported, ResourceLimit: A change does not
                fit; the surface is unchanged. The message names the component or operation.
        """
        changes = self._checked(changes)
        self.tree.begin(seq)
        self._new_weights.clear()
        try:
            applied = _each(changes, lambda change: self._apply(change, turn))
            self._check_count(self.tree.added)
        except BaseException:
            self.tree.rollback()
            raise
        self.tree.keep()
        for gone in self.tree.gone:
            self._weights.pop(gone, None)
        self._weights.update(self._new_weights)
        return applied

    def forget(self, roots: Iterable[str]) -> None:
        """Forget the weights of evicted roots."""
        for root in roots:
            self._weights.pop(root, None)

    def _checked(self, changes: Sequence[Change]) -> list[Change]:
        """Check the limits and all whole components; return the changes with aliases resolved.

        Operations on existing components are checked when they are applied.
        """
        ops = components = 0
        for change in changes:
            if isinstance(change, PatchChange):
                ops += len(change.ops)
                components += len([op for op in change.ops if isinstance(op, _ADDING)])
            else:
                components += len(change.components)
        if ops > self._limits.max_patch_ops:
            raise ResourceLimit(
                f"{ops} patch ops in one commit; at most {self._limits.max_patch_ops}: "
                "await something between them",
                detail="max_patch_ops",
            )
        self._check_count(components)
        return _each(changes, _checked_change)

    def _check_count(self, count: int) -> None:
        most = self._limits.max_components_per_commit
        if count > most:
            raise ResourceLimit(
                f"more than {most} components in one commit: show them in several",
                detail="max_components_per_commit",
            )

    def _apply(self, change: Change, turn: str) -> Change:
        if isinstance(change, PatchChange):
            return PatchChange(
                [self._patch(op, index, turn) for index, op in enumerate(change.ops)]
            )
        if change.replace:
            self.tree.clear()
        for index, component in enumerate(change.components):
            where = f"components[{index}]"
            size = self._size(component, where)
            self.tree.upsert(component, turn)
            self._check_added(component, size, where)
        return change

    def _patch(self, op: PatchOp, index: int, turn: str) -> PatchOp:
        where = f"ops[{index}] {OP_NAMES[type(op)]}"
        try:
            return self._patch_at(op, where, turn)
        except (InvalidPatch, ResourceLimit) as error:
            if error.message.startswith("ops["):
                raise
            raise type(error)(f"{where}: {error.message}", detail=error.detail) from None

    def _patch_at(self, op: PatchOp, where: str, turn: str) -> PatchOp:
        _refuse_text_parts(op)
        if isinstance(op, _PUTTING):
            return self._patch_value(op, where, turn)
        if not isinstance(op, _ADDING):
            self.tree.patch(op, turn)
            return op
        size = self._size(op.component, f"{where}.component")
        self.tree.patch(op, turn)
        self._check_added(op.component, size, where)
        return op

    def _patch_value(self, op: Update | Append, where: str, turn: str) -> Update | Append:
        node = self.tree.nodes.get(op.target)
        if node is None:
            raise InvalidPatch(f"no component {op.target!r} on this surface", detail=op.target)
        check = check_property if isinstance(op, Update) else check_appended
        value = check(node.type, parse_path(op.path), op.value, f"{where}: {op.path}")
        if value is not op.value:
            op = msgspec.structs.replace(op, value=value)
        raw = _encoded(value, where)
        _encoded(op.path, where)  # raises if the path is not valid text
        self.tree.patch(op, turn)
        node = self.tree.nodes[op.target]
        if op.target in self.tree.gone:  # an update of all children replaced the component
            self._check_levels(node, self.tree.component(op.target))
        self._weigh(node, len(raw), where)
        return op

    # -- size and nesting --------------------------------------------------------------------------

    def _size(self, component: Component, where: str) -> int:
        """Return the size of a component as JSON, in bytes.

        Raises:
            ResourceLimit: It is larger than a message may be.
        """
        size = len(_encoded(component, where))
        if size > self._limits.max_message_bytes:
            raise self._too_heavy(component.id, size, where)
        return size

    def _check_added(self, component: Component, size: int, where: str) -> None:
        """Check the nesting and the weight of a component that was just added.

        Raises:
            ResourceLimit: It is nested too deep, or its root has become too large.
        """
        node = self.tree.nodes[component.id]
        # `check_component` has already checked the nesting of a root from level 1.
        if node.parent is not None or self._levels < MAX_LEVELS:
            self._check_levels(node, component)
        if node.parent is None:
            self._new_weights[node.id] = size
        else:
            self._weigh(node, size, where)

    def _check_levels(self, node: Node, component: Component) -> None:
        """Check the nesting of a component, including its fallbacks; the tree ignores fallbacks.

        Raises:
            ResourceLimit: It is nested too deep.
        """
        level = node.level + levels_of(component) - 1
        if level > self._levels:
            raise ResourceLimit(
                f"component {component.id!r} is nested {level} levels deep, its fallback counted; "
                f"at most {self._levels}",
                detail=component.id,
            )

    def _weigh(self, node: Node, written: int, where: str) -> None:
        """Add written bytes to the weight of a root; measure the root if it may be too large.

        Raises:
            ResourceLimit: The root is larger than a message may be.
        """
        root, most = node.root.id, self._limits.max_message_bytes
        # A root without a known weight counts as full, so that it is measured.
        weight = self._new_weights.get(root, self._weights.get(root, most)) + written
        if weight > most:
            weight = len(msgspec.json.encode(self.tree.component(root)))
            if weight > most:
                raise self._too_heavy(root, weight, where)
            weight = min(weight, most - most // SLACK)
        self._new_weights[root] = weight

    def _too_heavy(self, component_id: str, size: int, where: str) -> ResourceLimit:
        most = self._limits.max_message_bytes
        return ResourceLimit(
            f"{where}: component {component_id!r} would have {size} bytes; at most {most}",
            detail="max_message_bytes",
        )


def _each(changes: Sequence[Change], work: Callable[[Change], Change]) -> list[Change]:
    """Return the result of `work` for each change; an error gets the number of its change."""
    results: list[Change] = []
    for number, change in enumerate(changes):
        try:
            results.append(work(change))
        except ArpError as error:
            error.change = number
            raise
    return results


def _checked_change(change: Change) -> Change:
    if isinstance(change, RenderChange):
        _encoded(change.tool_name, "tool_name")
        components = [
            check_component(component, f"components[{index}]")
            for index, component in enumerate(change.components)
        ]
        return RenderChange(components, change.tool_name, change.replace)
    return PatchChange([_checked_op(op, index) for index, op in enumerate(change.ops)])


def _checked_op(op: PatchOp, index: int) -> PatchOp:
    if not isinstance(op, _ADDING):
        return op
    where = f"ops[{index}] {OP_NAMES[type(op)]}.component"
    return msgspec.structs.replace(op, component=check_component(op.component, where))


def _encoded(value: Json | Component, where: str) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise InvalidComponent(f"{where}: holds half a surrogate pair, which is no text") from None


def _refuse_text_parts(op: PatchOp) -> None:
    """Refuse an id with a slash: it can only name streamed text, which cannot be patched.

    Raises:
        InvalidPatch: The operation names such an id.
    """
    for name in (getattr(op, field, None) for field in ("target", "after", "parent")):
        if isinstance(name, str) and "/" in name:
            raise InvalidPatch(f"no component {name!r} on this surface", detail=name)
