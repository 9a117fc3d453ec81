"""What a renderer of the object dialect keeps of one surface: pending changes and a committed tree.

A commit is checked as a whole and then applied, or nothing of it shows. If a part of it was refused
on arrival, the commit that it belongs to is refused too: a renderer never shows half of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from arp.protocol.components import Component
from arp.protocol.errors import ComponentUnsupported, InvalidMessage, InvalidPatch
from arp.protocol.limits import MAX_LEVELS
from arp.protocol.objects.messages import SurfacePatchRequest, SurfaceRenderRequest
from arp.protocol.patch import OP_NAMES, Append, Insert, PatchOp, Replace, Update, parse_path
from arp.protocol.tree import Tree
from arp.protocol.validate import check_appended, check_component, check_property

SurfaceChange: TypeAlias = SurfaceRenderRequest | SurfacePatchRequest


class SurfaceContent:
    """The components of one surface.

    Args:
        offered: Returns the types that this renderer shows now, with their newest versions.
    """

    def __init__(self, offered: Callable[[], Mapping[str, int]]) -> None:
        self.tree = Tree()
        self.applied: list[SurfaceChange] = []
        """What the last commit changed, with the components as they show."""
        self._offered = offered
        self._pending: list[SurfaceChange] = []
        self._is_spoiled = False

    @property
    def components(self) -> list[Component]:
        """What shows."""
        return self.tree.output()

    def add(self, change: SurfaceChange) -> None:
        """Keep a change for the next commit."""
        if not self._is_spoiled:
            self._pending.append(change)

    def spoil(self) -> None:
        """Refuse the next commit: a part of it was refused."""
        self._pending.clear()
        self._is_spoiled = True

    def drop(self) -> None:
        """Forget what waits for a commit."""
        self._pending.clear()
        self._is_spoiled = False

    def show(self, components: list[Component]) -> None:
        """Show components in place of everything."""
        self.tree.begin()
        self.tree.clear()
        for component in components:
            self.tree.upsert(component)
        self.tree.keep()

    def commit(self) -> None:
        """Apply what is pending.

        Raises:
            InvalidComponent, InvalidPatch, ComponentUnsupported, ResourceLimit: Names what does not
                fit. Nothing shows of it, and nothing is pending any more.
            InvalidMessage: A part of it was refused before.
        """
        pending, is_spoiled = self._pending, self._is_spoiled
        self._pending, self._is_spoiled = [], False
        if is_spoiled:
            raise InvalidMessage("commit: a part of it was refused", detail="commit")
        self.tree.begin()
        try:
            applied = [self._apply(change) for change in pending]
        except BaseException:
            self.tree.rollback()
            raise
        self.tree.keep()
        self.applied = applied

    def _apply(self, change: SurfaceChange) -> SurfaceChange:
        """Apply one change; return it with the components as they show."""
        if isinstance(change, SurfacePatchRequest):
            ops = [
                self._patch(op, f"ops[{index}] {OP_NAMES[type(op)]}")
                for index, op in enumerate(change.ops)
            ]
            return msgspec.structs.replace(change, ops=ops)
        if change.replace:
            self.tree.clear()
        shown: list[Component] = []
        for index, component in enumerate(change.components):
            shown.append(self._checked(component, f"components[{index}]"))
            self.tree.upsert(shown[-1])
        return msgspec.structs.replace(change, components=shown)

    def _patch(self, op: PatchOp, where: str) -> PatchOp:
        if isinstance(op, Insert | Replace):
            component = self._checked(op.component, f"{where}.component")
            op = msgspec.structs.replace(op, component=component)
        elif isinstance(op, Update | Append):
            node = self.tree.nodes.get(op.target)
            if node is None:
                wrong = f"{where}: no component {op.target!r:.60} on this surface"
                raise InvalidPatch(wrong, detail=op.target)
            check = check_property if isinstance(op, Update) else check_appended
            value = check(node.type, parse_path(op.path), op.value, f"{where}: {op.path}")
            op = msgspec.structs.replace(op, value=value)
        self.tree.patch(op)
        return op

    def _checked(self, component: Component, where: str) -> Component:
        """Return a component that this renderer shows: itself, or its fallback.

        Raises:
            ComponentUnsupported: Neither.
        """
        shown: Component | None = component
        offered = self._offered()
        while shown is not None and offered.get(shown.type, 0) < shown.version:
            shown = shown.fallback
        if shown is None:
            wrong = f"{where}: {component.type!r:.60} is not offered, and has no fallback"
            raise ComponentUnsupported(wrong, detail=component.id)
        if shown is not component:
            shown = msgspec.structs.replace(shown, id=component.id)
        return check_component(shown, where, levels=MAX_LEVELS, any_ids=True)
