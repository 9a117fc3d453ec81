"""Changes to a surface by a program, without a turn; for example the progress of a job."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from arp.control.context import ControlContext
from arp.control.method import SessionParams, method
from arp.protocol.messages import SurfaceName
from arp.protocol.patch import Append, Update
from arp.session.input.outside_change import change_shown


class UpdateSurface(SessionParams, frozen=True, kw_only=True):
    """Parameters of `agentSession/surface/update`."""

    ops: Annotated[list[Update | Append], Meta(min_length=1, description="one op or more")]
    """Operations of a `patch`: `{"op": "update", "target", "path", "value"}` sets a property of a
    component, `append` extends an array. All operations are one commit."""
    surface: SurfaceName = "main"
    """Name of the surface."""


class SurfaceState(Struct, frozen=True, rename="camel"):
    """A surface after a change."""

    session_id: str
    surface: str
    sequence: int
    """Sequence number of the fact about the change."""


class Surfaces:
    """Surfaces in the sessions of one principal."""

    def __init__(self, context: ControlContext) -> None:
        self._context = context

    @method("agentSession/surface/update")
    async def update(self, request: UpdateSurface) -> SurfaceState:
        """Change components for all renderers, without beginning or stopping a turn.

        Raises:
            SurfaceDestroyed: The surface does not exist, or no longer exists. Nothing has changed.
            InvalidPatch: An operation is not valid. Nothing has changed.
            ResourceLimit: The result would exceed a limit. Nothing has changed.
        """
        live = await self._context.to_change(request.session_id)
        change_shown(live.session, request.surface, request.ops)
        sequence = live.session.sequence
        self._context.carry_out(live, [])
        await live.written()
        return SurfaceState(live.id, request.surface, sequence)
