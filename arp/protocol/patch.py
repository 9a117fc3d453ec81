"""The six patch operations as values, and the paths in them.

`tree` applies them; `validate` checks the values. Source: protocol.md 4.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType

from arp.protocol.components import Component
from arp.protocol.errors import InvalidPatch
from arp.protocol.json_value import Json

Segments: TypeAlias = tuple[str | int, ...]
"""A path below `props`: names of props and indexes of arrays."""

MAX_SEGMENTS = 16
MAX_SEGMENT_LENGTH = 64
MAX_INDEX_DIGITS = 9

_FORBIDDEN_SEGMENTS = frozenset(("constructor", "prototype"))
_INDEX = re.compile(r"[0-9]+")


class Update(Struct, frozen=True, tag_field="op", tag="update"):
    """Set a property."""

    target: str
    path: str
    """Path with dots, beginning with `props`; numbers are indexes of arrays."""
    value: Json


class Append(Struct, frozen=True, tag_field="op", tag="append", omit_defaults=True):
    """Append text to a string, or the items of an array to an array."""

    target: str
    path: str
    value: Json
    offset: int | None = None
    """Expected length before the append; another length is refused."""


class Insert(Struct, frozen=True, tag_field="op", tag="insert", omit_defaults=True):
    """Insert a component after another component of the same list."""

    component: Component
    after: str | UnsetType | None = UNSET
    """Id of the preceding component; `None` = first, absent = last."""
    parent: str | None = None
    """Id of a `group`; `None` = the output of the turn."""


class Remove(Struct, frozen=True, tag_field="op", tag="remove"):
    """Remove a component with its children."""

    target: str


class Replace(Struct, frozen=True, tag_field="op", tag="replace"):
    """Replace a component."""

    target: str
    component: Component


class Reorder(Struct, frozen=True, tag_field="op", tag="reorder"):
    """Move a component within its list; `after: null` = first."""

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
"""Names of the operations in error messages."""


def parse_path(path: str) -> Segments:
    """Split the path of a patch into names and indexes, without the leading `props`.

    Raises:
        InvalidPatch: The path does not begin with `props`, names no prop or is too long. Or a
            segment is empty, begins with `_`, is `constructor` or `prototype`, or is an index with
            a leading zero or too many digits.

    Source: protocol.md 4.
    """
    shown = f"path {path!r:.80}"
    root, *names = path.split(".", MAX_SEGMENTS + 1)
    if root != "props":
        raise InvalidPatch(f'{shown}: begins with "props", then a dot')
    if not names:
        raise InvalidPatch(f'{shown}: names no property; write "props.NAME", or use replace')
    if len(names) > MAX_SEGMENTS:
        raise InvalidPatch(f"{shown}: more than {MAX_SEGMENTS} segments")
    return tuple(_segment(name, shown) for name in names)


def _segment(name: str, shown: str) -> str | int:
    if not name:
        raise InvalidPatch(f"{shown}: has an empty segment")
    if len(name) > MAX_SEGMENT_LENGTH:
        raise InvalidPatch(f"{shown}: a segment has more than {MAX_SEGMENT_LENGTH} characters")
    if name.startswith("_") or name in _FORBIDDEN_SEGMENTS:
        raise InvalidPatch(f'{shown}: the segment "{name}" is not allowed')
    if _INDEX.fullmatch(name) is None:
        return name
    if name[0] == "0" and name != "0":
        raise InvalidPatch(f'{shown}: the index "{name}" begins with 0; write "{int(name)}"')
    if len(name) > MAX_INDEX_DIGITS:
        raise InvalidPatch(f'{shown}: the index "{name}" is too large')
    return int(name)
