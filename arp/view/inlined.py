"""Popups and overlays for renderers without them: shown in the output of the turn that opened them.

The session has an empty group on `main` for each popup and overlay. For such a renderer the group
contains the components of the popup, with ids that begin with the name of the popup; the surface
itself is not sent. When the popup changes, the whole group is rendered again, because popups are
small. Moving the text parts instead would give them other ids than the session has, and each
catch-up would have to know that.
"""

from __future__ import annotations

import msgspec

from arp.protocol.catalog import put_children, split_children
from arp.protocol.components import Component, as_object, from_object
from arp.protocol.connection.screen import Screen
from arp.protocol.tree import Tree
from arp.surface.change import Change, RenderChange
from arp.view.profile import Profile


class InlinedTree(Tree):
    """The components of `main`, with the components of popups and overlays in their groups.

    A view of the current state, to be read before the next change.
    """

    __slots__ = ("_screen",)

    def __init__(self, screen: Screen) -> None:
        main = screen.surfaces["main"]
        self.nodes, self.outputs, self.marks = main.nodes, main.outputs, main.marks
        self.removed, self.gone, self.added = main.removed, main.gone, main.added
        self.restructured, self.reshaped = main.restructured, main.reshaped
        self._screen = screen

    def component(self, component_id: str) -> Component:
        """Return a component as `Tree.component`; the group of a popup has its components."""
        component = super().component(component_id)
        if component.type != "group" or not is_inlined(component_id, self._screen):
            return component
        shown = self._screen.surfaces[component_id].output()
        children = [as_object(_with_prefixed_ids(one, component_id)) for one in shown]
        return msgspec.structs.replace(component, props={**component.props, "children": children})


def inlines(profile: Profile) -> bool:
    """Return whether a profile shows popups and overlays in the output of their turns."""
    return not profile.takes("overlays")


def is_inlined(surface: str, screen: Screen) -> bool:
    """Return whether a surface is a popup or an overlay."""
    entry = screen.infos.get(surface)
    return entry is not None and entry.info.is_transient


def main_for(screen: Screen, profile: Profile) -> Tree:
    """Return the components of `main` for a profile, before degrading."""
    if not inlines(profile) or not any(is_inlined(name, screen) for name in screen.infos):
        return screen.surfaces["main"]
    return InlinedTree(screen)


def filled(changes: list[Change], tree: Tree) -> list[Change]:
    """Return changes of `main` with the components of popups and overlays in their groups.

    Args:
        changes: The applied changes.
        tree: The result of `main_for` after the commit.
    """
    if not isinstance(tree, InlinedTree):
        return changes
    return [_filled(change, tree) for change in changes]


def _filled(change: Change, tree: InlinedTree) -> Change:
    if not isinstance(change, RenderChange):
        return change
    components = [
        tree.component(one.id) if one.type == "group" and one.id in tree.nodes else one
        for one in change.components
    ]
    return msgspec.structs.replace(change, components=components)


def _with_prefixed_ids(component: Component, surface: str) -> Component:
    """Return a component and its descendants with ids that are unique on `main`."""
    own, children = split_children(component.type, component.props)
    props = component.props
    if children:
        prefixed = [
            as_object(_with_prefixed_ids(from_object(child), surface)) for child in children
        ]
        props = put_children(component.type, own, prefixed)
    fallback = component.fallback
    if fallback is not None:
        fallback = _with_prefixed_ids(fallback, surface)
    # A component in a fallback may have no id. It gets the id of the component that it replaces.
    name = f"{surface}/{component.id}" if component.id else ""
    return msgspec.structs.replace(component, id=name, props=props, fallback=fallback)
