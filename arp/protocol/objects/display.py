"""A renderer with several agents: surfaces go from one to another through it, and nothing else.

Each agent has a connection with ids, surfaces, serials and input of its own. The only thing that
one agent can name of another is the id of its session, in `transfer`; what it learns is whether the
surface was taken.

Theory of operation. A surface is offered to the new owner first (`surface_acquired`). The old owner
gets `transferred` when the new one has given it a role, which says that its ledger has it, and
`TRANSFER_DENIED` when the new one has refused or destroyed it instead. If the new one is gone
before that, the outcome is not known: the old owner gets `BUSY` and asks again, with the same
`transfer_id`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from msgspec import Struct

from arp.protocol.errors import ArpError, SessionBusy, TransferDenied
from arp.protocol.objects.connection import ObjectEvent
from arp.protocol.objects.messages import (
    DisplayErrorRequest,
    ShellGetOverlayRequest,
    ShellGetPopupRequest,
    ShellGetToplevelRequest,
    SurfaceDestroyRequest,
    SurfaceTransferRequest,
)
from arp.protocol.objects.renderer import ObjectRendererConnection
from arp.protocol.objects.wire import ObjectMessage


class HandedOver(Struct, frozen=True):
    """A surface has another owner."""

    giver: str
    surface_id: int
    """As it was called there."""
    taker: str
    new_id: int


class _OfferedSurface(Struct, frozen=True):
    """A surface that an agent was offered and has not answered."""

    giver: str
    asked: ObjectMessage
    """The `transfer`."""


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
        self._offered: dict[tuple[str, int], _OfferedSurface] = {}
        """By the name of the new owner, and the id of the surface there."""

    def attach(self, name: str, connection: ObjectRendererConnection) -> None:
        """Add an agent under a name that only this renderer knows."""
        self.agents[name] = connection

    def detach(self, name: str) -> None:
        """Forget an agent: its connection is gone, and so are its surfaces.

        An agent that had asked to hand a surface to it gets `BUSY`: the outcome is not known.
        """
        self.agents.pop(name, None)
        for place, offered in list(self._offered.items()):
            if name not in (place[0], offered.giver):
                continue
            del self._offered[place]
            if offered.giver != name:
                self._deny(offered, SessionBusy("to_session: no answer; ask again"))

    def receive(self, name: str, frame: bytes | str, now_s: float) -> list[DisplayEvent]:
        """Take a frame of an agent. What it asks to hand over is offered or denied at once."""
        out: list[DisplayEvent] = []
        for event in self.agents[name].receive(frame, now_s):
            out.append(event)
            match event:
                case ObjectMessage(surface_id, payload=SurfaceTransferRequest() as request):
                    try:
                        self._offer(name, event, request)
                    except ArpError as error:
                        denied = error if isinstance(error, TransferDenied) else None
                        self.agents[name].deny_transfer(event, denied)
                case ObjectMessage(
                    payload=(
                        ShellGetToplevelRequest(surface_id)
                        | ShellGetPopupRequest(surface_id)
                        | ShellGetOverlayRequest(surface_id)
                    )
                ):
                    out += self._taken(name, surface_id)
                case ObjectMessage(payload=SurfaceDestroyRequest() | DisplayErrorRequest()):
                    self._not_taken(name)
                case _:
                    pass
        return out

    def _offer(self, giver: str, asked: ObjectMessage, request: SurfaceTransferRequest) -> None:
        """Offer a surface to another agent.

        Raises:
            TransferDenied: No other agent may have it.
            ArpError: The other agent can have no more surfaces, or the message is too long.
        """
        surface_id = asked.object_id
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
        new_id = self.agents[taker].acquire(components, title, request.transfer_id)
        self._offered[taker, new_id] = _OfferedSurface(giver, asked)

    def _taken(self, taker: str, new_id: int) -> list[HandedOver]:
        """Take a surface from its old owner, if the new one was offered it."""
        offered = self._offered.pop((taker, new_id), None)
        if offered is None:
            return []
        surface_id = offered.asked.object_id
        try:
            self.agents[offered.giver].hand_over(surface_id)
        except ArpError:  # its old owner, or the user, has closed it meanwhile
            with suppress(ArpError):  # and so has the new one
                self.agents[taker].close(new_id)
            return []
        return [HandedOver(offered.giver, surface_id, taker, new_id)]

    def _not_taken(self, taker: str) -> None:
        """Tell the old owners of surfaces that a new one has refused or destroyed."""
        entries = self.agents[taker].objects.entries
        for name, new_id in list(self._offered):
            if name == taker and new_id not in entries:
                self._deny(self._offered.pop((name, new_id)), None)

    def _deny(self, offered: _OfferedSurface, error: ArpError | None) -> None:
        source = self.agents[offered.giver]
        if offered.asked.object_id in source.objects.surfaces:
            source.deny_transfer(offered.asked, error)
