"""Surfaces that go from one session to another: in this server, or by way of a renderer.

Theory of operation. Both sessions here: what the one loses and the other gets goes to the store in
one write, so that after a crash the surface is in exactly one of them. Anybody else's session: only
a renderer knows it, which has both agents and hands the surface over; so this session closes it
when the renderer says that it is done, and the other agent takes over what the renderer shows.

Between two servers no write is common to both, so each step is durable before the next begins:

1. The giving session records that it asks, with the id of the transfer (`leaving`), then asks.
2. The taking session records the surface and the id; then its renderer hears that it is taken.
3. The giving session hears it, and records that the surface is closed.

So the surface is never in neither of them. A crash or a lost renderer between 2 and 3 leaves it in
both: every renderer that joins the giving session is therefore asked again for what is recorded
as leaving, and the taking session, which knows the id, says again that it has taken it.

A renderer is not trusted. What it brings is taken for an open transfer alone: one of a session here
of the same user, or one that the other server has signed (`transfer_id`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from arp.access.principal import Principal
from arp.hub.transfer_id import TransferEnds, new_transfer_id, signed_source
from arp.live.delivery import Viewer
from arp.live.live_session import LiveSession
from arp.live.tasks import start_task
from arp.live.writer import Writer
from arp.protocol.errors import ArpError, SessionNotFound, TransferDenied
from arp.protocol.objects.messages import SurfaceSurfaceAcquiredEvent, SurfaceTransferRequest
from arp.session.effects import Effect
from arp.session.surfaces import (
    acquire_surface,
    close_surface,
    has_taken,
    note_leaving,
    transfer_surface,
)

logger = logging.getLogger(__name__)

FIRST_AGAIN_S: Final = 0.1
"""After which a renderer is asked again for the first time: it may not have both agents yet."""

MOST_AGAIN_S: Final = 30.0
"""Between two requests; until then each waits twice as long as the one before."""


class Transfers:
    """Moves surfaces for the sessions of a hub.

    Args:
        find: Returns a session of a user.
        carry_out: Does what a session asks for.
        writer: Writes both sessions at once.
        sessions: Returns the sessions in memory.
        key: The secret that is shared with other servers; `None`: surfaces come from none.
    """

    def __init__(
        self,
        find: Callable[[str, Principal], Awaitable[LiveSession]],
        carry_out: Callable[[LiveSession, Sequence[Effect]], None],
        writer: Writer,
        sessions: Callable[[], Iterable[LiveSession]],
        key: str | None,
    ) -> None:
        self._find = find
        self._carry_out = carry_out
        self._writer = writer
        self._sessions = sessions
        self._key = key
        self._asking: dict[str, asyncio.Task[None]] = {}
        """Those that ask a renderer again, by its id."""
        self._under_way: set[tuple[str, str]] = set()
        """Surfaces, with their sessions, for which an author waits: nobody else asks for them."""

    def close(self) -> None:
        """Ask no renderer any more."""
        for task in self._asking.values():
            task.cancel()

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
        self._check_may_go(live, name)
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
        if live.session.screen.info(name).is_transient:
            raise TransferDenied("only a toplevel can be given to another session", detail=name)
        self._check_may_go(live, name, to_session)
        if (live.id, name) in self._under_way:
            raise TransferDenied(f"surface {name!r:.80} is being handed over", detail=name)
        viewers = [one for one in live.viewers.values() if one.hand_over is not None]
        if not viewers:
            raise TransferDenied(
                f"there is no session {to_session!r:.80} of this user", detail=to_session
            )
        known = live.session.leaving.get(name)
        ends = TransferEnds(live.id, to_session, live.session.head.owner)
        request = known or SurfaceTransferRequest(
            to_session, retain_content, new_transfer_id(ends, self._key)
        )
        self._under_way.add((live.id, name))
        try:
            if known is None:
                note_leaving(live.session, name, request)
                live.mark()
            await live.written()  # so that they show it, and a crash does not forget the request
            denied = await self._ask_all(live, viewers, name, request)
            # Of one that was asked before, it does not say that the other has not taken it then.
            if denied is not None and known is None and name in live.session.leaving:
                note_leaving(live.session, name, None)
                live.mark()
            await live.written()
        finally:
            self._under_way.discard((live.id, name))
        if denied is not None:
            raise denied

    async def _ask_all(
        self,
        live: LiveSession,
        viewers: Sequence[Viewer],
        name: str,
        request: SurfaceTransferRequest,
    ) -> TransferDenied | None:
        """Ask renderers until one has handed a surface over; else return why the last has not.

        Raises:
            _Unclear: It is not known whether one has done so.
        """
        denied: TransferDenied | None = None
        for viewer in viewers:
            try:
                await self._ask(live, viewer, name, request)
            except _Unclear:
                self.ask_again(live, viewer)
                raise
            except TransferDenied as error:
                denied = error
            else:
                return None
        return denied

    async def _ask(
        self, live: LiveSession, viewer: Viewer, name: str, request: SurfaceTransferRequest
    ) -> None:
        """Ask one renderer to hand a surface over.

        Raises:
            _Unclear: It is not known whether it has done so.
            TransferDenied: It does not.

        Cancel: Safe; the renderer is asked again by `ask_again`.
        """
        assert viewer.hand_over is not None
        try:
            is_done = await viewer.hand_over(name, request)
        except asyncio.CancelledError:
            self.ask_again(live, viewer)
            raise
        if not is_done:
            raise _Unclear(
                f"no renderer has said whether session {request.to_session!r:.80} has surface "
                f"{name!r:.80} now; each that joins is asked again",
                detail=name,
            )

    @staticmethod
    def _check_may_go(live: LiveSession, name: str, to_session: str = "") -> None:
        """Refuse to give a surface to one session that another may have already."""
        known = live.session.leaving.get(name)
        if known is not None and known.to_session != to_session:
            raise TransferDenied(
                f"surface {name!r:.80} is being given to session {known.to_session!r:.80}, which "
                "may have it already; close it, or transfer it there",
                detail=name,
            )

    def ask_again(self, live: LiveSession, viewer: Viewer) -> None:
        """Ask a renderer again for what is leaving, as long as it is there; do it in a task."""
        if viewer.hand_over is None or not live.session.leaving or viewer.id in self._asking:
            return
        task = start_task(self._keep_asking(live, viewer), "arp-transfers")
        self._asking[viewer.id] = task
        task.add_done_callback(lambda _: self._asking.pop(viewer.id, None))

    async def _keep_asking(self, live: LiveSession, viewer: Viewer) -> None:
        pause_s = FIRST_AGAIN_S
        while not live.gone.done() and viewer.id in live.viewers and live.session.leaving:
            for name, request in list(live.session.leaving.items()):
                if (live.id, name) in self._under_way:
                    continue
                with suppress(TransferDenied):
                    assert viewer.hand_over is not None
                    await viewer.hand_over(name, request)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MOST_AGAIN_S)

    def transferred(self, live: LiveSession, name: str) -> None:
        """Close a surface that a renderer has handed to another agent."""
        if live.session.tree(name) is not None:
            self._carry_out(live, close_surface(live.session, name, "transferred"))

    def acquired(self, live: LiveSession, given: SurfaceSurfaceAcquiredEvent) -> str | None:
        """Take over a surface that a renderer hands to a session; return its name there.

        `None`: the session has taken it before.

        Raises:
            TransferDenied: No session of this user gives it away. Nothing is shown.
            ArpError: As `acquire_surface`. Nothing is shown.
        """
        transfer_id = given.transfer_id
        if transfer_id is not None and has_taken(live.session, transfer_id):
            return None
        source = self._source(live, transfer_id)
        if transfer_id is None or source is None:
            logger.warning(
                "a renderer brought a surface to session %r, and no transfer is open; servers that "
                "give surfaces to each other need the same transfer key (--transfer-key)",
                live.id,
            )
            raise TransferDenied(
                "transfer_id: no transfer to this session is open", detail="transfer_id"
            )
        name = acquire_surface(
            live.session, given.title, given.components or [], transfer_id, source
        )
        live.is_provisional = False
        live.touch()
        live.mark()
        return name

    def _source(self, live: LiveSession, transfer_id: str | None) -> str | None:
        """Return the session that gives a surface to another one; `None`: there is none."""
        owner = live.session.head.owner
        for one in self._sessions():
            for request in one.session.leaving.values():
                is_it = (request.transfer_id, request.to_session) == (transfer_id, live.id)
                if is_it and one.session.head.owner == owner:
                    return one.id
        if transfer_id is None or self._key is None:
            return None
        return signed_source(transfer_id, live.id, owner, self._key)


class _Unclear(TransferDenied):
    """It is not known whether another agent has the surface."""
