"""One commit as a renderer of some profile gets it.

What the profile shows natively goes through unchanged. A root component that it does not is shown as something
else under the same id; every change of it becomes a `render` of that something, made anew from the
committed state. Where ids do not map one to one (a group shown as its children) and the order changes, the
answer is `None`: that renderer needs a snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from arp.protocol.component import Component
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update
from arp.protocol.tree import Node, Tree
from arp.protocol.validation import parse_path
from arp.surface.change import Change, PatchChange, RenderChange
from arp.surface.profile import Profile, is_native, shown_as, supported


class NeedsSnapshot(Exception):
    """This commit cannot be told to this profile by changes alone."""


def translate(changes: list[Change], profile: Profile, tree: Tree) -> list[Change] | None:
    """Gives the changes for a profile.

    Args:
        changes: What was just committed.
        profile: For whom.
        tree: As it stands right after that commit.

    Returns:
        Changes with the same effect for that renderer (the very same list where nothing differs); `None` if
        it needs a snapshot instead.
    """
    translation = _Translation(profile, tree)
    if all(translation.passes(change) for change in changes):
        return changes
    try:
        return translation.run(changes)
    except NeedsSnapshot:
        return None


class _Translation:
    def __init__(self, profile: Profile, tree: Tree) -> None:
        self._profile = profile
        self._tree = tree
        self._redo: dict[str, None] = {}
        """Roots to render anew at the end, in order of first change."""

    def passes(self, change: Change) -> bool:
        """Tells whether a change means the same to this profile as it stands."""
        if isinstance(change, RenderChange):
            return all(is_native(component, self._profile) for component in change.components)
        return all(self._op_passes(op) for op in change.ops)

    def _op_passes(self, op: PatchOp) -> bool:
        if isinstance(op, Append) and not self._profile.takes("patch-append"):
            return False
        if isinstance(op, Insert | Replace) and not is_native(op.component, self._profile):
            return False
        if isinstance(op, Remove):
            gone = self._tree.gone.get(op.target)
            return gone is not None and self._native(gone)
        if isinstance(op, Replace) and not self._native(self._tree.gone.get(op.target)):
            return False
        name = op.component.id if isinstance(op, Insert) else op.target
        after = op.after if isinstance(op, Insert | Reorder) and op.after is not UNSET else None
        return self._native(self._tree.nodes.get(name)) and (
            after is None or self._native(self._tree.nodes.get(after))
        )

    def run(self, changes: Sequence[Change]) -> list[Change]:
        out: list[Change] = []
        for change in changes:
            if isinstance(change, RenderChange):
                out.append(self._render(change))
            else:
                ops = [op for before in change.ops for op in self._op(before)]
                if ops:
                    out.append(PatchChange(ops))
        again = [
            shown
            for root in self._redo
            if root in self._tree.nodes
            for shown in shown_as(self._tree.component(root), self._profile)
        ]
        if again:
            out.append(RenderChange(again))
        return out

    def _render(self, change: RenderChange) -> RenderChange:
        shown = []
        for component in change.components:
            pieces = shown_as(component, self._profile)
            if len(pieces) != 1 and component.id in self._tree.gone:
                raise NeedsSnapshot
            shown.extend(pieces)
        return RenderChange(shown, change.tool_name, change.replace)

    def _op(self, op: PatchOp) -> list[PatchOp]:
        match op:
            case Update() | Append():
                return self._value(op)
            case Insert():
                return self._insert(op)
            case Remove():
                return self._remove(op)
            case Replace():
                return self._replace(op)
            case Reorder():
                return self._reorder(op)

    def _value(self, op: Update | Append) -> list[PatchOp]:
        node = self._tree.nodes.get(op.target)
        if node is None:
            return []
        if not self._native(node):
            return self._again(node, moved=False)
        if isinstance(op, Append) and not self._profile.takes("patch-append"):
            return self._whole_value(op)
        return [op]

    def _whole_value(self, op: Append) -> list[PatchOp]:
        value = self._tree.component(op.target).props
        for segment in parse_path(op.path):
            try:
                value = value[segment]
            except (KeyError, IndexError, TypeError):
                return []
        return [Update(op.target, op.path, value)]

    def _insert(self, op: Insert) -> list[PatchOp]:
        node = self._tree.nodes.get(op.component.id)
        if node is None:
            return []
        if node.parent is not None and not self._native(node.parent):
            return self._again(node.parent, moved=True)
        if node.parent is None and op.after is not UNSET and op.after is not None:
            self._must_be_one(op.after)
        return [msgspec.structs.replace(op, component=self._one(op.component))]

    def _remove(self, op: Remove) -> list[PatchOp]:
        gone = self._tree.gone.get(op.target)
        if gone is None:
            return []
        if gone.parent is None:
            if self._may_have_exploded(gone):
                raise NeedsSnapshot
            return [op]
        parent = self._tree.nodes.get(gone.parent.id)
        if parent is None:
            return []
        return [op] if self._native(parent) else self._again(parent, moved=True)

    def _replace(self, op: Replace) -> list[PatchOp]:
        node = self._tree.nodes.get(op.component.id)
        if node is None:
            return []
        if node.parent is not None and not self._native(node.parent):
            return self._again(node.parent, moved=True)
        gone = self._tree.gone.get(op.target)
        if gone is not None and self._may_have_exploded(gone):
            raise NeedsSnapshot
        return [Replace(op.target, self._one(op.component))]

    def _reorder(self, op: Reorder) -> list[PatchOp]:
        node = self._tree.nodes.get(op.target)
        if node is None:
            return []
        if node.parent is not None:
            return [op] if self._native(node.parent) else self._again(node.parent, moved=True)
        self._must_be_one(op.target)
        if op.after is not None:
            self._must_be_one(op.after)
        return [op]

    # -- what this profile sees --------------------------------------------------------------------

    def _native(self, node: Node | None) -> bool:
        """Tells whether a component and all that it stands in are shown as they are; `None` is not."""
        if node is None:
            return False
        known = supported(self._profile)
        at: Node | None = node
        while at is not None:
            if known.versions.get(at.type, 0) < at.component.version:
                return False
            if at.type == "table" and known.max_table_rows is not None:
                return False
            at = at.parent
        return True

    def _may_have_exploded(self, gone: Node) -> bool:
        return gone.type in ("group", "tabs", "split") and "group" not in supported(self._profile).versions

    def _one(self, component: Component) -> Component:
        pieces = shown_as(component, self._profile)
        if len(pieces) != 1:
            raise NeedsSnapshot
        return pieces[0]

    def _again(self, node: Node, *, moved: bool) -> list[PatchOp]:
        root = self._tree.root_of(node.id).id
        if moved and len(shown_as(self._tree.component(root), self._profile)) != 1:
            raise NeedsSnapshot
        self._redo[root] = None
        return []

    def _must_be_one(self, component_id: str) -> None:
        if component_id not in self._tree.nodes:
            raise NeedsSnapshot
        self._one(self._tree.component(component_id))
