"""A renderer with several agents, which can transfer surfaces to each other.

Agents are isolated: each has its own connection with ids, surfaces, serials and inputs. The only
exchange is `transfer`, which names the session of another agent; the sender learns only whether the
other agent accepted the surface.

Theory of operation. The renderer first offers the surface to the new owner (`surface_acquired`).
The new owner accepts by giving it a role, which means that the surface is in its ledger; the old
owner then gets `transferred`. If the new owner refuses or destroys the surface, the old owner gets
`TRANSFER_DENIED`. If the new owner disconnects before it answers, the outcome is unknown: the old
owner gets `BUSY` and asks again with the same `transfer_id`.
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


class SurfaceTransferred(Struct, frozen=True):
    """A surface was transferred to another agent. Agents are named as in `ObjectDisplay`."""

    giver: str
    surface_id: int
    """Id on the connection of the old owner."""
    taker: str
    new_id: int
    """Id on the connection of the new owner."""


class _OfferedSurface(Struct, frozen=True):
    """A surface offered to an agent that has not answered yet."""

    giver: str
    request: ObjectMessage
    """The `transfer` request of the old owner."""


DisplayEvent: TypeAlias = ObjectEvent | SurfaceTransferred

MayTransfer: TypeAlias = Callable[[str, str], bool]
"""Whether the first agent may transfer a surface to the second, both by name."""


class ObjectDisplay:
    """The agents of one renderer.

    Args:
        may_transfer: Permission check; by default every transfer is allowed.
    """

    def __init__(self, may_transfer: MayTransfer = lambda giver, taker: True) -> None:
        self.agents: dict[str, ObjectRendererConnection] = {}
        self._may_transfer = may_transfer
        self._offered: dict[tuple[str, int], _OfferedSurface] = {}
        """Open offers, by the name of the new owner and the id of the surface there."""

    def attach(self, name: str, connection: ObjectRendererConnection) -> None:
        """Add an agent under a name that only this renderer knows."""
        self.agents[name] = connection

    def detach(self, name: str) -> None:
        """Remove an agent after the end of its connection, with its surfaces.

        If another agent has offered it a surface, that agent gets `BUSY`: the outcome is unknown.
        """
        self.agents.pop(name, None)
        for key, offered in list(self._offered.items()):
            if name not in (key[0], offered.giver):
                continue
            del self._offered[key]
            if offered.giver != name:
                self._deny(offered, SessionBusy("to_session: no answer; ask again"))

    def receive(self, name: str, frame: bytes | str, now_s: float) -> list[DisplayEvent]:
        """Apply a frame of an agent and return its events; offer or deny its transfers at once."""
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
                    out += self._complete_offer(name, surface_id)
                case ObjectMessage(payload=SurfaceDestroyRequest() | DisplayErrorRequest()):
                    self._deny_declined(name)
                case _:
                    pass
        return out

    def _offer(self, giver: str, message: ObjectMessage, request: SurfaceTransferRequest) -> None:
        """Offer a surface to another agent.

        Raises:
            TransferDenied: There is no such agent, or the transfer is not allowed.
            ArpError: The other agent has too many surfaces, or the offer is too long.
        """
        surface_id = message.object_id
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
            # One text for both cases: otherwise an agent could probe which sessions exist.
            raise TransferDenied("to_session: not transferred", detail="to_session")
        components = source.content(surface_id) if request.retain_content else None
        surface = source.objects.surface(surface_id)
        title = surface.title or surface.name or None
        new_id = self.agents[taker].acquire(components, title, request.transfer_id)
        self._offered[taker, new_id] = _OfferedSurface(giver, message)

    def _complete_offer(self, taker: str, new_id: int) -> list[SurfaceTransferred]:
        """Remove a surface from its old owner if the new owner has accepted an offer."""
        offered = self._offered.pop((taker, new_id), None)
        if offered is None:
            return []
        surface_id = offered.request.object_id
        try:
            self.agents[offered.giver].hand_over(surface_id)
        except ArpError:
            # The old owner or the user has closed the surface after the offer. The new owner must
            # not keep a surface that no longer exists.
            with suppress(ArpError):  # the new owner has closed it too
                self.agents[taker].close(new_id)
            return []
        return [SurfaceTransferred(offered.giver, surface_id, taker, new_id)]

    def _deny_declined(self, taker: str) -> None:
        """Deny the transfers of offered surfaces that the new owner has refused or destroyed."""
        entries = self.agents[taker].objects.entries
        for name, new_id in list(self._offered):
            if name == taker and new_id not in entries:
                self._deny(self._offered.pop((name, new_id)), None)

    def _deny(self, offered: _OfferedSurface, error: ArpError | None) -> None:
        source = self.agents[offered.giver]
        if offered.request.object_id in source.objects.surfaces:
            source.deny_transfer(offered.request, error)
