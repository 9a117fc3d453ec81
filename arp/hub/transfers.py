"""Transfers of surfaces between sessions: inside this server, or through a renderer.

Theory of operation. If both sessions are in this server, the facts of both are stored in one write,
so that after a crash the surface is in exactly one of them. A session of another agent is only
known to a renderer that is connected to both agents. That renderer moves the surface: the other
agent adopts what the renderer shows, and this session closes the surface when the renderer reports
success.

Two servers have no common write, so each step is durable before the next one begins:

1. The source session records the request with a transfer id (`leaving`), then asks the renderer.
2. The target session records the surface and the transfer id, then confirms to its renderer.
3. The renderer confirms to the source session, which records that the surface is closed.

So the surface is always in at least one session. A crash or a lost renderer between steps 2 and 3
leaves it in both. Therefore every renderer that joins the source session is asked again for each
recorded request. The target session knows the transfer id, so it confirms again and adds nothing.

A renderer is not trusted. The surface that it brings is accepted only for an open transfer: of a
session in this server with the same owner, or with an id that another server signed
(`transfer_id`).
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
"""Seconds before a renderer is asked again, because it may not be connected to both agents yet."""

MOST_AGAIN_S: Final = 30.0
"""Longest pause between two requests, in seconds; each pause is twice the one before."""


class Transfers:
    """Transfers surfaces between the sessions of a hub.

    Args:
        find: Returns a session of a user.
        carry_out: Runs the effects that a session returned.
        writer: Writes both sessions in one write.
        sessions: Returns the sessions in memory.
        key: Secret that is shared with other servers; `None` rejects surfaces of other servers.
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
        """Tasks that repeat the requests to a renderer, by viewer id."""
        self._awaited: set[tuple[str, str]] = set()
        """Session and surface of each transfer that an agent waits for.

        `_keep_asking` sends no second request for them."""

    def close(self) -> None:
        """Stop repeating requests."""
        for task in self._asking.values():
            task.cancel()

    async def give(
        self, live: LiveSession, name: str, to_session: str, retain_content: bool
    ) -> None:
        """Transfer a surface to another session, durably.

        Args:
            live: Session that has the surface.
            name: Name of the surface.
            to_session: Id of the target: a session of the same user in this server, or a session of
                another agent that one of the renderers is connected to.
            retain_content: Whether the components of the surface are transferred too.

        Raises:
            TransferDenied: The target does not exist or refuses. A session of another user gives
                the same error as a missing one. Nothing has changed.
            SurfaceDestroyed: The surface does not exist.
        """
        try:
            target = await self._find(to_session, Principal(live.session.owner))
        except SessionNotFound:
            await self._give_by_renderer(live, name, to_session, retain_content)
            return
        self._check_not_leaving(live, name)
        if target is live:
            raise TransferDenied("the surface is in this session already", detail=to_session)
        try:
            effects = transfer_surface(
                live.session, name, target.session, retain_content=retain_content
            )
        except ArpError:
            # The target may have recorded the opened surface and its closing. Both must be written.
            if target.session.has_recorded:
                target.mark()
            raise
        target.is_provisional = False
        self._writer.mark_together((target, live))
        self._carry_out(live, effects)
        await target.written()
        await live.written()

    async def _give_by_renderer(
        self, live: LiveSession, name: str, to_session: str, retain_content: bool
    ) -> None:
        """Ask the renderers of a session, one after another, to move a surface."""
        if live.session.is_transient(name):
            raise TransferDenied("only a toplevel can be transferred", detail=name)
        self._check_not_leaving(live, name, to_session)
        if (live.id, name) in self._awaited:
            raise TransferDenied(f"surface {name!r:.80} is being transferred already", detail=name)
        viewers = [one for one in live.viewers.values() if one.request_transfer is not None]
        if not viewers:
            raise TransferDenied(
                f"there is no session {to_session!r:.80} of this user", detail=to_session
            )
        known = live.session.leaving.get(name)
        ends = TransferEnds(live.id, to_session, live.session.owner)
        request = known or SurfaceTransferRequest(
            to_session, retain_content, new_transfer_id(ends, self._key)
        )
        self._awaited.add((live.id, name))
        try:
            if known is None:
                note_leaving(live.session, name, request)
                live.mark()
            # Before a renderer is asked, it must show the surface, and the request must be durable:
            # the target may record the surface at once, and a crash must not lose the request.
            await live.written()
            denied = await self._ask_all(live, viewers, name, request)
            # A repeated request that is denied does not prove that the first one was denied. Only
            # a new request may be dropped; otherwise the surface could end up in both sessions.
            if denied is not None and known is None and name in live.session.leaving:
                note_leaving(live.session, name, None)
                live.mark()
            await live.written()
        finally:
            self._awaited.discard((live.id, name))
        if denied is not None:
            raise denied

    async def _ask_all(
        self,
        live: LiveSession,
        viewers: Sequence[Viewer],
        name: str,
        request: SurfaceTransferRequest,
    ) -> TransferDenied | None:
        """Ask renderers until one has moved a surface; else return the refusal of the last one.

        Raises:
            _OutcomeUnknown: A renderer may have moved it; the outcome is unknown.
        """
        denied: TransferDenied | None = None
        for viewer in viewers:
            try:
                await self._ask(live, viewer, name, request)
            # Another renderer must not be asked now: the surface could be transferred twice.
            except _OutcomeUnknown:
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
        """Ask one renderer to move a surface.

        Raises:
            _OutcomeUnknown: The outcome is unknown.
            TransferDenied: The renderer or the target refuses.

        Cancel: Safe; `ask_again` repeats the request.
        """
        assert viewer.request_transfer is not None
        try:
            is_done = await viewer.request_transfer(name, request)
        except asyncio.CancelledError:
            self.ask_again(live, viewer)
            raise
        if not is_done:
            raise _OutcomeUnknown(
                "the outcome of the transfer is unknown: no renderer has confirmed that session "
                f"{request.to_session!r:.80} has surface {name!r:.80}; renderers that join are "
                "asked again",
                detail=name,
            )

    @staticmethod
    def _check_not_leaving(live: LiveSession, name: str, to_session: str = "") -> None:
        """Raise if the surface may already be in another session than the requested one."""
        known = live.session.leaving.get(name)
        if known is not None and known.to_session != to_session:
            raise TransferDenied(
                f"surface {name!r:.80} is being transferred to session {known.to_session!r:.80}, "
                "which may have it already; close it, or transfer it there",
                detail=name,
            )

    def ask_again(self, live: LiveSession, viewer: Viewer) -> None:
        """Start a task that repeats open requests to a renderer while it is attached."""
        if viewer.request_transfer is None or not live.session.leaving or viewer.id in self._asking:
            return
        task = start_task(self._keep_asking(live, viewer), "arp-transfers")
        self._asking[viewer.id] = task
        task.add_done_callback(lambda _: self._asking.pop(viewer.id, None))

    async def _keep_asking(self, live: LiveSession, viewer: Viewer) -> None:
        """Repeat the requests of a session to one renderer, with growing pauses."""
        pause_s = FIRST_AGAIN_S
        while not live.gone.done() and viewer.id in live.viewers and live.session.leaving:
            for name, request in list(live.session.leaving.items()):
                if (live.id, name) in self._awaited:
                    continue
                with suppress(TransferDenied):
                    assert viewer.request_transfer is not None
                    await viewer.request_transfer(name, request)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MOST_AGAIN_S)

    def transferred(self, live: LiveSession, name: str) -> None:
        """Close a surface that a renderer has moved to another agent."""
        if live.session.tree(name) is not None:
            self._carry_out(live, close_surface(live.session, name, "transferred"))

    def acquired(self, live: LiveSession, given: SurfaceSurfaceAcquiredEvent) -> str | None:
        """Adopt a surface that a renderer brings; return its name in this session.

        `None` means that this session adopted it before.

        Raises:
            TransferDenied: No open transfer of this user has this id. Nothing is shown.
            ArpError: See `acquire_surface`. Nothing is shown.
        """
        transfer_id = given.transfer_id
        # The confirmation was lost and the source session asks again. Adopting the surface again
        # would show it twice.
        if transfer_id is not None and has_taken(live.session, transfer_id):
            return None
        source = self._source(live, transfer_id)
        if transfer_id is None or source is None:
            logger.warning(
                "a renderer brought a surface to session %r, and no transfer is open; servers that "
                "transfer surfaces to each other need the same key (--transfer-key)",
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
        """Return the source session of an open transfer; `None` if there is none."""
        owner = live.session.owner
        for one in self._sessions():
            for request in one.session.leaving.values():
                is_it = (request.transfer_id, request.to_session) == (transfer_id, live.id)
                # A renderer must not move a surface between sessions of different users.
                if is_it and one.session.owner == owner:
                    return one.id
        if transfer_id is None or self._key is None:
            return None
        return signed_source(transfer_id, live.id, owner, self._key)


class _OutcomeUnknown(TransferDenied):
    """The outcome is unknown, because another agent may have the surface."""
