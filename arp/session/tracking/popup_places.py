"""The placeholders of popups and overlays on `main`: empty groups that stay empty.

A renderer without popups shows the components of the surface in this group
(`arp/view/inlined.py`). If the agent put other components into it, one renderer would show them
and another would not. The agent may move or remove the group like any other component.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from arp.protocol.components import Component
from arp.protocol.connection.screen import Screen
from arp.protocol.errors import InvalidPatch
from arp.protocol.patch import Insert, Replace, Update
from arp.protocol.tree import apart
from arp.surface.change import Change, RenderChange


def check_places(changes: Iterable[Change], screen: Screen) -> None:
    """Refuse changes of `main` that put components into a placeholder.

    Raises:
        InvalidPatch: A change does so. Nothing has changed.
    """
    if not screen.infos:
        return
    placeholders = [name for name, entry in screen.infos.items() if entry.info.is_transient]
    if not placeholders:
        return
    for change in changes:
        if isinstance(change, RenderChange):
            _check_components(change.components, placeholders)
            continue
        for op in change.ops:
            if isinstance(op, Insert | Replace):
                _check_components([op.component], placeholders)
            if isinstance(op, Insert) and op.parent in placeholders:
                raise _refusal(op.parent)
            if isinstance(op, Update) and op.target in placeholders and op.path == _CHILDREN:
                raise _refusal(op.target)


_CHILDREN: Final = "props.children"


def _check_components(components: Iterable[Component], placeholders: Collection[str]) -> None:
    for component in components:
        children = _children(component)
        if children and component.id in placeholders:
            raise _refusal(component.id)
        _check_components(children, placeholders)


def _children(component: Component) -> list[Component]:
    try:
        return apart(component)[1]
    except InvalidPatch:
        return []  # it fits no schema; the commit refuses it


def _refusal(name: str | None) -> InvalidPatch:
    return InvalidPatch(
        f"component {name!r} is the place of a popup or an overlay: show on that surface",
        detail=name,
    )
