"""The six patch ops, as values.

Source: protocol.md 4. What they do to a tree is in `tree`.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType

from arp.protocol.components import Component
from arp.protocol.json_value import Json


class Update(Struct, frozen=True, tag_field="op", tag="update"):
    """Sets a property."""

    target: str
    path: str
    """Dotted, begins with `props`; numbers index arrays."""
    value: Json


class Append(Struct, frozen=True, tag_field="op", tag="append", omit_defaults=True):
    """Extends a string, or an array by the items of an array."""

    target: str
    path: str
    value: Json
    offset: int | None = None
    """The length before, so that a mismatch is noticed."""


class Insert(Struct, frozen=True, tag_field="op", tag="insert", omit_defaults=True):
    """Adds a component behind another one of the same list."""

    component: Component
    after: str | UnsetType | None = UNSET
    """`None` = first, absent = last."""
    parent: str | None = None
    """A `group`; `None` = the turn's output."""


class Remove(Struct, frozen=True, tag_field="op", tag="remove"):
    """Takes a component away, with its children."""

    target: str


class Replace(Struct, frozen=True, tag_field="op", tag="replace"):
    """Puts another component in the place of one."""

    target: str
    component: Component


class Reorder(Struct, frozen=True, tag_field="op", tag="reorder"):
    """Moves a component within its list; `after: null` = first."""

    target: str
    after: str | None = None


PatchOp: TypeAlias = Update | Append | Insert | Remove | Replace | Reorder

OP_NAMES = {
    Update: "update",
    Append: "append",
    Insert: "insert",
    Remove: "remove",
    Replace: "replace",
    Reorder: "reorder",
}
"""For error messages."""
