"""One component as a tree holds it: apart from its children, which are nodes of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from arp.protocol.component import Component
from arp.protocol.errors import InvalidPatch
from arp.protocol.json_value import JsonObject
from arp.protocol.slots import put_children, slot_names, take_children

MAX_FALLBACKS = 16
"""Fallbacks in a row: four times what the agent side lets pass, so that reading one always ends."""


class Node:
    """One component in a tree."""

    __slots__ = (
        "born",
        "children",
        "component",
        "id",
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
        """Without its children; its props change in place."""
        self.children: list[str] = []
        """Their ids, in order."""
        self.parent = parent
        self.turn = turn
        self.born = seq
        """The commit that put it there."""
        self.seq = seq
        """The last commit that touched it or something in it."""
        self.tail: list[str] = []
        """Text appended to `content` that is not yet joined to it."""
        self.successor: str | None = None
        """Of a root component that is gone: the one that took its place under another id."""

    @property
    def own(self) -> JsonObject:
        """Its props without children."""
        return self.component.props

    @property
    def root(self) -> Node:
        """The root component that holds it, or itself."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    @property
    def level(self) -> int:
        """How deep it stands: 1 for a root component."""
        return 1 if self.parent is None else self.parent.level + 1

    def join(self) -> None:
        """Put text that was appended into `content`."""
        if self.tail:
            content = self.own.get("content", "")
            self.own["content"] = "".join([content, *self.tail])
            self.tail = []

    def whole(self, children: Sequence[Component]) -> Component:
        """Return the component with children in its props, where its type has any."""
        self.join()
        if not slot_names(self.type):
            return self.component
        props = put_children(self.type, self.own, [as_object(child) for child in children])
        return msgspec.structs.replace(self.component, props=props)


class Removed(NamedTuple):
    """A component that went away."""

    seq: int
    """The commit that took it."""
    born: int
    """The commit that had put it there."""
    type: str
    root: str
    """The id of the root component that held it; its own if it was one."""


def as_object(component: Component) -> JsonObject:
    """Return a component as the plain object that stands in its parent's props."""
    plain: JsonObject = {"id": component.id, "type": component.type, "props": component.props}
    if component.version != 1:
        plain["version"] = component.version
    if component.fallback is not None:
        plain["fallback"] = as_object(component.fallback)
    return plain


def from_object(plain: JsonObject) -> Component:
    """Do the inverse of `as_object`, for objects that have been validated."""
    fallback = plain.get("fallback")
    return Component(
        plain["id"],
        plain["type"],
        plain["props"],
        plain.get("version", 1),
        from_object(fallback) if fallback is not None else None,
    )


def levels_of(component: Component) -> int:
    """Count the levels that a component takes, whether it is shown itself or by a fallback.

    Raises:
        InvalidPatch: As `apart`.
    """
    below = (levels_of(child) for child in apart(component)[1])
    instead = levels_of(component.fallback) if component.fallback is not None else 1
    return max(instead, 1 + max(below, default=0))


def apart(component: Component) -> tuple[Component, list[Component]]:
    """Return a component without its children, and them.

    Raises:
        InvalidPatch: What stands where children belong is none, or its fallbacks do not end: the
            wire's structure only is looked at, so that nothing that a peer sends can break a tree.
    """
    fallback, fallbacks = component.fallback, 0
    while fallback is not None:
        fallback, fallbacks = fallback.fallback, fallbacks + 1
    if fallbacks > MAX_FALLBACKS:
        raise InvalidPatch(f"component {component.id!r}: more than {MAX_FALLBACKS} fallbacks")
    if not slot_names(component.type):
        return component, []
    try:
        own, children = take_children(component.type, component.props)
        found = msgspec.convert(children, list[Component])
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError):
        raise InvalidPatch(
            f"component {component.id!r}: its props hold no children of a {component.type}",
            detail=component.id,
        ) from None
    return msgspec.structs.replace(component, props=own), found
