"""The agent side of one surface: a commit is checked whole, then it stands, or nothing has changed.

Invariants: what is in the tree has passed validation and is nobody else's; the cost of a commit
follows the change.
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
"""A root component is measured again when at least a 16th of what it may weigh was written to it,
so that it may weigh that much more before it is refused."""

_ADDING = (Insert, Replace)
_PUTTING = (Update, Append)
"""As tuples: a union is made anew each time that it is written."""


class Surface:
    """One surface of a session."""

    __slots__ = ("_levels", "_limits", "_new_weights", "_weights", "tree")

    def __init__(self, tree: Tree, limits: Limits, levels: int = MAX_LEVELS) -> None:
        """See the class.

        Args:
            tree: Its components.
            limits: Of the session.
            levels: Levels of nested components that it takes.
        """
        self.tree = tree
        self._levels = levels
        self._limits = limits
        self._weights: dict[str, int] = {}
        """Bytes that a root component has at most, as JSON."""
        self._new_weights: dict[str, int] = {}
        """Those that a commit changed which is not kept yet."""

    def commit(self, changes: Sequence[Change], turn: str, seq: int) -> list[Change]:
        """Apply all changes, or none.

        Args:
            changes: In order; for nobody to change afterwards.
            turn: The turn whose output new components join; `""` for surfaces without turns.
            seq: What the commit is to be known as.

        Returns:
            The changes as they were applied.

        Raises:
            InvalidComponent, InvalidPatch, ComponentUnsupported, ResourceLimit: Names the component
                or op; the surface is as it was.
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
        """Drop what is remembered of root components that are no longer in the tree."""
        for root in roots:
            self._weights.pop(root, None)

    def _checked(self, changes: Sequence[Change]) -> list[Change]:
        """Return changes in which every component fits the catalog, as far as that is known.

        What an op means for the component that it names is found out when it is applied.
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
            self._placed(component, size, where)
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
        self._placed(op.component, size, where)
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
        _encoded(op.path, where)
        self.tree.patch(op, turn)
        node = self.tree.nodes[op.target]
        if op.target in self.tree.gone:  # its children were set, all of them
            self._check_levels(node, self.tree.component(op.target))
        self._weigh(node, len(raw), where)
        return op

    # -- how much a component weighs ---------------------------------------------------------------

    def _size(self, component: Component, where: str) -> int:
        """Return how many bytes a component has as JSON, and refuse too many."""
        size = len(_encoded(component, where))
        if size > self._limits.max_message_bytes:
            raise self._too_heavy(component.id, size, where)
        return size

    def _placed(self, component: Component, size: int, where: str) -> None:
        node = self.tree.nodes[component.id]
        if node.parent is not None or self._levels < MAX_LEVELS:
            self._check_levels(node, component)
        if node.parent is None:
            self._new_weights[node.id] = size
        else:
            self._weigh(node, size, where)

    def _check_levels(self, node: Node, component: Component) -> None:
        """Refuse a component that is nested too deep where it is shown by a fallback.

        The tree knows how deep its components are, but nothing of what may stand in their place.
        """
        level = node.level + levels_of(component) - 1
        if level > self._levels:
            raise ResourceLimit(
                f"component {component.id!r} is nested {level} levels deep, its fallback counted; "
                f"at most {self._levels}",
                detail=component.id,
            )

    def _weigh(self, node: Node, written: int, where: str) -> None:
        """Add what was written into a component to the weight of its root, and refuse too much.

        A root is measured when the sum of what was written says that it could be too heavy.
        """
        root, most = node.root.id, self._limits.max_message_bytes
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
    """Return what `work` makes of each change; an error gets the number of its change."""
    made: list[Change] = []
    for number, change in enumerate(changes):
        try:
            made.append(work(change))
        except ArpError as error:
            error.change = number
            raise
    return made


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
    """Refuse a name with a slash: what the agent said is not patched, and no component has one."""
    for name in (getattr(op, field, None) for field in ("target", "after", "parent")):
        if isinstance(name, str) and "/" in name:
            raise InvalidPatch(f"no component {name!r} on this surface", detail=name)
