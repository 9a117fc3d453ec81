"""The agent side of one surface: a commit is checked whole, then it stands, or nothing has changed.

Invariants: what is in the tree has passed validation; the cost of a commit follows the change.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arp.protocol.component import Component
from arp.protocol.errors import ArpError, InvalidPatch, ResourceLimit
from arp.protocol.limits import Limits
from arp.protocol.patch import OP_NAMES, Append, Insert, PatchOp, Reorder, Replace, Update
from arp.protocol.tree import Tree
from arp.protocol.validation import check_appended, check_component, check_property, parse_path
from arp.surface.change import Change, PatchChange, RenderChange


class Surface:
    """One surface of a session."""

    def __init__(self, name: str, tree: Tree, limits: Limits) -> None:
        self.name = name
        self.tree = tree
        self._limits = limits
        self._weights: dict[str, int] = {}
        """Bytes put into a component by patches since it was last measured."""

    def commit(self, changes: Sequence[Change], turn: str, seq: int) -> list[Change]:
        """Applies all changes, or none.

        Args:
            changes: In order. The tree takes the components' props over; share nothing with it.
            turn: The turn whose output new components join; `""` for surfaces without turns.
            seq: What the commit is to be known as.

        Returns:
            The changes as they were applied.

        Raises:
            InvalidComponent, InvalidPatch, ComponentUnsupported, ResourceLimit: Names the component or
                op; the surface is as it was.
        """
        self._check_limits(changes)
        self.tree.begin(seq)
        try:
            applied = [self._apply(change, turn) for change in changes]
            self._check_count(self.tree.added)
        except ArpError:
            self.tree.rollback()
            raise
        self.tree.keep()
        return applied

    def _check_limits(self, changes: Sequence[Change]) -> None:
        ops = [op for change in changes if isinstance(change, PatchChange) for op in change.ops]
        if len(ops) > self._limits.max_patch_ops:
            raise ResourceLimit(
                f"{len(ops)} patch ops in one commit; at most {self._limits.max_patch_ops}: "
                "await something between them",
                detail="max_patch_ops",
            )
        shown = [c for change in changes if isinstance(change, RenderChange) for c in change.components]
        self._check_count(len(shown) + sum(isinstance(op, Insert | Replace) for op in ops))

    def _check_count(self, count: int) -> None:
        most = self._limits.max_components_per_commit
        if count > most:
            raise ResourceLimit(
                f"more than {most} components in one commit: show them in several",
                detail="max_components_per_commit",
            )

    def _apply(self, change: Change, turn: str) -> Change:
        if isinstance(change, RenderChange):
            return self._render(change, turn)
        return PatchChange([self._patch(op, index, turn) for index, op in enumerate(change.ops)])

    def _render(self, change: RenderChange, turn: str) -> RenderChange:
        if change.replace:
            self.tree.clear()
        checked = []
        for index, component in enumerate(change.components):
            component = check_component(component, f"components[{index}]")
            self._check_size(component, f"components[{index}]")
            self.tree.upsert(component, turn)
            checked.append(component)
        return RenderChange(checked, change.tool_name, change.replace)

    def _patch(self, op: PatchOp, index: int, turn: str) -> PatchOp:
        where = f"ops[{index}] {OP_NAMES[type(op)]}"
        try:
            op = self._check_op(op, where)
            self.tree.patch(op, turn)
        except (InvalidPatch, ResourceLimit) as error:
            if error.message.startswith("ops["):
                raise
            raise type(error)(f"{where}: {error.message}", detail=error.detail) from None
        return op

    def _check_op(self, op: PatchOp, where: str) -> PatchOp:
        match op:
            case Update() | Append():
                self._check_value(op, where)
            case Insert() | Replace():
                component = check_component(op.component, f"{where}.component")
                self._check_size(component, f"{where}.component")
                return msgspec.structs.replace(op, component=component)
            case Reorder(after=after) if after is not None and after not in self.tree.nodes:
                raise InvalidPatch(f"no component {after!r} on this surface", detail=after)
        return op

    def _check_value(self, op: Update | Append, where: str) -> None:
        node = self.tree.nodes.get(op.target)
        if node is None:
            raise InvalidPatch(f"no component {op.target!r} on this surface", detail=op.target)
        segments = parse_path(op.path)
        check = check_property if isinstance(op, Update) else check_appended
        check(node.type, segments, op.value, f"{where}: {op.path}")
        weight = self._weights.get(op.target, 0) + len(msgspec.json.encode(op.value))
        if weight > self._limits.max_message_bytes // 2:
            held = self.tree.component(op.target)
            size = len(msgspec.json.encode(held)) + len(msgspec.json.encode(op.value))
            if size > self._limits.max_message_bytes:
                raise ResourceLimit(
                    f"component {op.target!r} would grow to {size} bytes; "
                    f"at most {self._limits.max_message_bytes}",
                    detail="max_message_bytes",
                )
            weight = 0
        self._weights[op.target] = weight

    def _check_size(self, component: Component, where: str) -> None:
        size = len(msgspec.json.encode(component))
        if size > self._limits.max_message_bytes:
            raise ResourceLimit(
                f"{where}: {size} bytes; a component has at most {self._limits.max_message_bytes}",
                detail="max_message_bytes",
            )
