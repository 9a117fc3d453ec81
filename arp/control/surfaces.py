"""What a program changes on a surface without a turn, such as the progress of a job."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from arp.control.context import ControlContext
from arp.control.method import SessionParams, method
from arp.protocol.messages import SurfaceName
from arp.protocol.patch import Append, Update
from arp.session.outside_change import change_shown


class UpdateSurface(SessionParams, frozen=True, kw_only=True):
    """Sets or extends properties of components that show."""

    ops: Annotated[list[Update | Append], Meta(min_length=1, description="one op or more")]
    """As in a `patch` of the protocol: `{"op": "update", "target", "path", "value"}`, or `append`,
    which extends an array. All of them are one commit."""
    surface: SurfaceName = "main"
    """Name of the surface."""


class SurfaceState(Struct, frozen=True, rename="camel"):
    """A surface after a change."""

    session_id: str
    surface: str
    sequence: int
    """The fact of the change."""


class Surfaces:
    """Surfaces of sessions that belong to one principal."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context

    @method("agentSession/surface/update")
    async def update(self, request: UpdateSurface) -> SurfaceState:
        """Change components on all screens, without beginning or stopping a turn.

        Raises:
            SurfaceDestroyed: There is no such surface (any more). Nothing has changed.
            InvalidPatch, ResourceLimit: An op does not fit. Nothing has changed.
        """
        live = await self._context.to_change(request.session_id)
        change_shown(live.session, request.surface, request.ops)
        sequence = live.session.sequence
        self._context.carry_out(live, [])
        await live.written()
        return SurfaceState(live.id, request.surface, sequence)
