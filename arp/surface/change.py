"""What a commit consists of, before it is addressed to anyone."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from arp.protocol.components import Component
from arp.protocol.patch import PatchOp


class RenderChange(Struct, frozen=True):
    """Components to show, or to replace those with their ids."""

    components: list[Component]
    tool_name: str | None = None
    replace: bool = False
    """Sets the whole tree of the surface."""


class PatchChange(Struct, frozen=True):
    """Ops, in order."""

    ops: list[PatchOp]


Change: TypeAlias = RenderChange | PatchChange
