"""The places of popups and overlays on `main`: empty groups that only their surfaces fill.

Where a renderer has no popups, the group shows the components of the surface
(`arp/view/inlined.py`). So nothing else may stand in it: one renderer would show that, another not.
The agent may move or remove the group, as any other component.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from arp.protocol.components import Component
from arp.protocol.errors import InvalidPatch
from arp.protocol.patch import Insert, Replace, Update
from arp.protocol.screen import Screen
from arp.protocol.tree import apart
from arp.surface.change import Change, RenderChange


def check_places(changes: Iterable[Change], screen: Screen) -> None:
    """Refuse changes of `main` that put something into the place of a popup or an overlay.

    Raises:
        InvalidPatch: One does. Nothing has changed.
    """
    if not screen.infos:
        return
    places = [name for name, entry in screen.infos.items() if entry.info.is_transient]
    if not places:
        return
    for change in changes:
        if isinstance(change, RenderChange):
            _check_components(change.components, places)
            continue
        for op in change.ops:
            if isinstance(op, Insert | Replace):
                _check_components([op.component], places)
            if isinstance(op, Insert) and op.parent in places:
                raise _refusal(op.parent)
            if isinstance(op, Update) and op.target in places and op.path == _CHILDREN:
                raise _refusal(op.target)


_CHILDREN: Final = "props.children"


def _check_components(components: Iterable[Component], places: Collection[str]) -> None:
    for component in components:
        children = _children(component)
        if children and component.id in places:
            raise _refusal(component.id)
        _check_components(children, places)


def _children(component: Component) -> list[Component]:
    try:
        return apart(component)[1]
    except InvalidPatch:
        return []  # it fits no schema, and is refused for that


def _refusal(name: str | None) -> InvalidPatch:
    return InvalidPatch(
        f"component {name!r} is the place of a popup or an overlay: show on that surface",
        detail=name,
    )
