"""Surfaces that go from one session to another: in this server, or by way of a renderer.

Theory of operation. Both sessions here: what the one loses and the other gets goes to the store in
one write, so that after a crash the surface is in exactly one of them. Anybody else's session: only
a renderer knows it, which has both agents and hands the surface over; so this session closes it
when the renderer says that it is done, and the other agent takes over what the renderer shows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from arp.access.principal import Principal
from arp.hub.live import LiveSession
from arp.hub.writer import Writer
from arp.protocol.components import Component
from arp.protocol.errors import ArpError, SessionNotFound, TransferDenied
from arp.session.effects import Effect
from arp.session.surfaces import acquire_surface, close_surface, transfer_surface


class Transfers:
    """Moves surfaces for the sessions of a hub.

    Args:
        find: Returns a session of a user.
        carry_out: Does what a session asks for.
        writer: Writes both sessions at once.
    """

    def __init__(
        self,
        find: Callable[[str, Principal], Awaitable[LiveSession]],
        carry_out: Callable[[LiveSession, Sequence[Effect]], None],
        writer: Writer,
    ) -> None:
        self._find = find
        self._carry_out = carry_out
        self._writer = writer

    async def give(
        self, live: LiveSession, name: str, to_session: str, retain_content: bool
    ) -> None:
        """Give a surface to another session, durably.

        Args:
            live: Has it.
            name: Of the surface.
            to_session: Of the same user here; else of another agent of one of the renderers.
            retain_content: Whether its components go along.

        Raises:
            TransferDenied: There is none, or it takes none; the same error for a session that does
                not exist and for one of somebody else. Nothing has changed.
            SurfaceDestroyed: There is no such surface.
        """
        try:
            target = await self._find(to_session, Principal(live.session.head.owner))
        except SessionNotFound:
            await self._by_renderer(live, name, to_session, retain_content)
            return
        if target is live:
            raise TransferDenied("the surface is in this session already", detail=to_session)
        try:
            effects = transfer_surface(
                live.session, name, target.session, retain_content=retain_content
            )
        except ArpError:
            if target.session.has_recorded:  # half of it, which it has closed again
                target.mark()
            raise
        target.is_provisional = False
        self._writer.mark_together((target, live))
        self._carry_out(live, effects)
        await target.written()
        await live.written()

    async def _by_renderer(
        self, live: LiveSession, name: str, to_session: str, retain_content: bool
    ) -> None:
        """Ask the renderers of a session, one after the other, to hand a surface over."""
        denied = TransferDenied(
            f"there is no session {to_session!r:.80} of this user", detail=to_session
        )
        if live.session.screen.info(name).is_transient:
            raise TransferDenied("only a toplevel can be given to another session", detail=name)
        await live.written()  # so that they show it
        for viewer in list(live.viewers.values()):
            if viewer.hand_over is None:
                continue
            try:
                await viewer.hand_over(name, to_session, retain_content)
            except TransferDenied as error:
                denied = error
            else:
                await live.written()
                return
        raise denied

    def transferred(self, live: LiveSession, name: str) -> None:
        """Close a surface that a renderer has handed to another agent."""
        if live.session.tree(name) is not None:
            self._carry_out(live, close_surface(live.session, name, "transferred"))

    def acquired(
        self, live: LiveSession, title: str | None, components: Sequence[Component]
    ) -> str:
        """Take over a surface that a renderer hands to a session; return its name there.

        Raises:
            ArpError: As `acquire_surface`. Nothing is shown.
        """
        name = acquire_surface(live.session, title, components)
        live.is_provisional = False
        live.touch()
        live.mark()
        return name
