"""A renderer with several agents: surfaces go from one to another through it, and nothing else.

Each agent has a connection with ids, surfaces, serials and input of its own. The only thing that
one agent can name of another is the id of its session, in `transfer`; what it learns is whether the
surface was taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from arp.protocol.errors import ArpError, TransferDenied
from arp.protocol.object_connection import ObjectEvent
from arp.protocol.object_messages import SurfaceTransferRequest
from arp.protocol.object_renderer import ObjectRendererConnection
from arp.protocol.object_wire import ObjectMessage


class HandedOver(Struct, frozen=True):
    """A surface has another owner."""

    giver: str
    surface_id: int
    """As it was called there."""
    taker: str
    new_id: int


DisplayEvent: TypeAlias = ObjectEvent | HandedOver

MayTransfer: TypeAlias = Callable[[str, str], bool]
"""Decides whether one agent may hand a surface to another, both by their names."""


class ObjectDisplay:
    """The agents of one renderer.

    Args:
        may_transfer: Default: every agent may hand a surface to every other.
    """

    def __init__(self, may_transfer: MayTransfer = lambda giver, taker: True) -> None:
        self.agents: dict[str, ObjectRendererConnection] = {}
        self._may_transfer = may_transfer

    def attach(self, name: str, connection: ObjectRendererConnection) -> None:
        """Add an agent under a name that only this renderer knows."""
        self.agents[name] = connection

    def detach(self, name: str) -> None:
        """Forget an agent: its connection is gone, and so are its surfaces."""
        self.agents.pop(name, None)

    def receive(self, name: str, frame: bytes | str, now_s: float) -> list[DisplayEvent]:
        """Take a frame of an agent. What it asks to hand over is handed over or denied at once."""
        out: list[DisplayEvent] = []
        for event in self.agents[name].receive(frame, now_s):
            out.append(event)
            match event:
                case ObjectMessage(surface_id, payload=SurfaceTransferRequest() as request):
                    try:
                        out.append(self._hand_over(name, surface_id, request))
                    except ArpError as error:
                        denied = error if isinstance(error, TransferDenied) else None
                        self.agents[name].deny_transfer(event, denied)
                case _:
                    pass
        return out

    def _hand_over(
        self, giver: str, surface_id: int, request: SurfaceTransferRequest
    ) -> HandedOver:
        source = self.agents[giver]
        taker = next(
            (
                name
                for name, one in self.agents.items()
                if one is not source and one.objects.session_id == request.to_session
            ),
            None,
        )
        if taker is None or not self._may_transfer(giver, taker):
            # The same words for both: an agent learns nothing of sessions that are not its own.
            raise TransferDenied("to_session: not handed over", detail="to_session")
        components = source.content(surface_id) if request.retain_content else None
        surface = source.objects.surface(surface_id)
        title = surface.title or surface.name or None
        new_id = self.agents[taker].acquire(components, title)
        source.hand_over(surface_id)
        return HandedOver(giver, surface_id, taker, new_id)
