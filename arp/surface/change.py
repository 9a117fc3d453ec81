"""The changes of a commit."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from arp.protocol.components import Component
from arp.protocol.patch import PatchOp


class RenderChange(Struct, frozen=True):
    """Components to add, or to replace components with the same ids."""

    components: list[Component]
    tool_name: str | None = None
    replace: bool = False
    """Whether the components replace the whole content of the surface."""


class PatchChange(Struct, frozen=True):
    """Operations in order."""

    ops: list[PatchOp]


Change: TypeAlias = RenderChange | PatchChange
