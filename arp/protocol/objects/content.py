"""The content of one surface in a renderer of the object dialect.

Theory of operation. `render` and `patch` are collected as pending changes. A commit checks and
applies all of them to the tree, or none. If a change was refused on arrival, the commit that it
belongs to is refused too, so that a renderer never shows half of a commit.
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
        offered: Function that returns the component types that this renderer shows at present,
            with their newest versions.
    """

    def __init__(self, offered: Callable[[], Mapping[str, int]]) -> None:
        self.tree = Tree()
        self.applied: list[SurfaceChange] = []
        """Changes of the last commit, with fallbacks in place of components not shown here."""
        self._offered = offered
        self._pending: list[SurfaceChange] = []
        self._is_spoiled = False

    @property
    def components(self) -> list[Component]:
        """Committed root components, in order."""
        return self.tree.output()

    def add(self, change: SurfaceChange) -> None:
        """Add a change to the next commit."""
        if not self._is_spoiled:
            self._pending.append(change)

    def spoil(self) -> None:
        """Record that a change was refused, so that the next commit is refused too."""
        self._pending.clear()
        self._is_spoiled = True

    def drop(self) -> None:
        """Discard the pending changes, because their commit itself was refused."""
        self._pending.clear()
        self._is_spoiled = False

    def show(self, components: list[Component]) -> None:
        """Replace the whole content."""
        self.tree.begin()
        self.tree.clear()
        for component in components:
            self.tree.upsert(component)
        self.tree.keep()

    def commit(self) -> None:
        """Apply the pending changes. Whatever the outcome, none is pending afterwards.

        Raises:
            InvalidComponent, InvalidPatch, ComponentUnsupported, ResourceLimit: A change does not
                fit; the content is unchanged. The message names the change.
            InvalidMessage: A change of this commit was refused before; the content is unchanged.
        """
        # Cleared before anything can fail: the next commit must not apply these changes again.
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
        """Apply one change to the open tree; return it with its fallbacks resolved."""
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
            shown.append(self._resolve_fallback(component, f"components[{index}]"))
            self.tree.upsert(shown[-1])
        return msgspec.structs.replace(change, components=shown)

    def _patch(self, op: PatchOp, where: str) -> PatchOp:
        if isinstance(op, Insert | Replace):
            component = self._resolve_fallback(op.component, f"{where}.component")
            op = msgspec.structs.replace(op, component=component)
        elif isinstance(op, Update | Append):
            node = self.tree.nodes.get(op.target)
            if node is None:
                wrong = f"{where}: no component {op.target!r:.60} on this surface"
                raise InvalidPatch(wrong, detail=op.target)
            # The tree may have a fallback instead of the component that the agent sent. The
            # operation changes the props of that fallback, so its type decides.
            check = check_property if isinstance(op, Update) else check_appended
            value = check(node.type, parse_path(op.path), op.value, f"{where}: {op.path}")
            op = msgspec.structs.replace(op, value=value)
        self.tree.patch(op)
        return op

    def _resolve_fallback(self, component: Component, where: str) -> Component:
        """Return the component, or its first fallback that this renderer shows, validated.

        Raises:
            ComponentUnsupported: Neither the component nor a fallback is offered.
            InvalidComponent, ResourceLimit: The result does not fit.
        """
        shown: Component | None = component
        offered = self._offered()
        while shown is not None and offered.get(shown.type, 0) < shown.version:
            shown = shown.fallback
        if shown is None:
            wrong = f"{where}: {component.type!r:.60} is not offered, and has no fallback"
            raise ComponentUnsupported(wrong, detail=component.id)
        if shown is not component:
            # Later patches use the id of the component, so its fallback must be found under it.
            shown = msgspec.structs.replace(shown, id=component.id)
        return check_component(shown, where, levels=MAX_LEVELS, any_ids=True)
