"""A renderer's connection in the object dialect, and the choice between the two dialects.

Theory of operation. The hub treats this peer like any other. An `ObjectDialect` between the hub and
the transport translates frames in both directions. Only parsing of large frames runs in a thread;
the objects of a connection are used by the loop alone.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.inbound import LARGE_BYTES
from arp.hub.peers.peer import HELLO_DEADLINE_S, CheckToken, Peer, PlaceFiles
from arp.live.live_session import LiveSession, settle
from arp.live.outbox import FrameOutbox
from arp.live.tasks import start_task
from arp.protocol.capabilities import NO_APP, agent_hello
from arp.protocol.codec import Encoding
from arp.protocol.errors import ArpError, TransferDenied
from arp.protocol.framing.envelope import Dialect
from arp.protocol.json_value import Json
from arp.protocol.messages import Input
from arp.protocol.objects.messages import SurfaceSurfaceAcquiredEvent, SurfaceTransferRequest
from arp.protocol.objects.wire import ObjectEnvelope, RefusedEnvelope, read
from arp.view.objects.dialect import ObjectDialect

BEHIND_BYTES: Final = 1 << 40
"""Buffered bytes that are reported for a renderer that lags in the dialect.

More than any limit, so that the hub treats the renderer as lagging too. It then gets one catch-up:
when it has displayed everything, or when a suspended surface is visible again or a turn ends."""


HAND_OVER_S: Final = 10.0
"""Seconds that a renderer gets to move a surface. It asks no person, so that is enough."""


class ObjectOutbox:
    """Outbox that translates the hub's frames into requests for the transport's outbox."""

    def __init__(self, outbox: FrameOutbox, dialect: ObjectDialect) -> None:
        self._outbox = outbox
        self._dialect = dialect

    def send(self, frames: list[bytes]) -> None:
        """Send frames of the session dialect, as fast as the renderer displays them."""
        self._dialect.show(frames, asyncio.get_running_loop().time())
        self.flush()

    def send_first(self, frame: bytes) -> None:
        """Drop the frame, because it is a `pong`; the object dialect uses `sync` instead."""

    def flush(self) -> None:
        """Send the requests that the dialect has ready."""
        frames = self._dialect.data_to_send()
        if frames:
            self._outbox.send(frames)

    @property
    def buffered(self) -> int:
        """Buffered bytes, including those in the dialect; see `FrameOutbox.buffered`."""
        # A renderer that stopped displaying has to lag for the hub, even with an empty buffer.
        if self._dialect.is_behind:
            return BEHIND_BYTES
        return self._outbox.buffered + self._dialect.waiting_bytes

    def waiting(self) -> list[bytes]:
        """Return the buffered frames; see `FrameOutbox.waiting`."""
        return self._outbox.waiting()

    def close(self, code: int, reason: str) -> None:
        """Close the connection; see `FrameOutbox.close`."""
        self._outbox.close(code, reason)


class ObjectPeer(Peer):
    """Connection of a renderer that speaks the object dialect; arguments as for `Peer`."""

    __slots__ = ("_accepting", "_dialect", "_encoding", "_frames", "_transfers")

    def __init__(
        self,
        hub: Hub,
        outbox: FrameOutbox,
        encoding: Encoding,
        workflow: str,
        principal: Principal | None,
        check_token: CheckToken,
    ) -> None:
        app = hub.app.about() if principal is not None else NO_APP
        about = agent_hello(hub.settings.limits, hub.app.commands(), hub.settings.takes_input, app)
        self._encoding: Encoding = encoding
        self._dialect = ObjectDialect(
            encoding, hub.settings.limits, secrets.token_urlsafe(12), about, secrets.token_hex(8)
        )
        self._dialect.owner = self
        self._frames = ObjectOutbox(outbox, self._dialect)
        self._transfers: dict[str, asyncio.Future[TransferDenied | bool]] = {}
        """Outcomes of running transfers, by surface: true = moved, false = unknown, or an error."""
        self._accepting: set[asyncio.Task[None]] = set()
        super().__init__(hub, self._frames, "json", workflow, principal, check_token)
        self.viewer.request_transfer = self._request_transfer
        self.viewer.on_turn_end = self._turn_ended

    def start(self) -> None:
        """Request the capabilities of the renderer."""
        self._dialect.start()
        self._frames.flush()
        if self.principal is None:
            asyncio.get_running_loop().call_later(HELLO_DEADLINE_S, self._close_untrusted)

    async def receive(self, frame: bytes | str) -> None:
        """Process one frame; invalid content never raises."""
        if len(frame) < LARGE_BYTES:
            await self._receive_frame(frame, len(frame))
            return
        most = self._hub.settings.limits.max_message_bytes
        # The dialect refuses a frame above the limit without parsing it, so no thread is needed.
        if len(frame) > most:
            await self._receive_frame(frame, len(frame))
            return
        data = frame.encode("utf-8", "replace") if isinstance(frame, str) else frame
        inbound = self._hub.inbound
        large = await inbound.read(partial(read, data, self._encoding), _data_of_inputs)
        with inbound.redactor.knowing(large.cleaned):
            await self._receive_frame(large.value, len(frame))

    async def receive_files(self, frame: bytes, place: PlaceFiles) -> None:
        """Process a frame with uploaded files; see `Peer.receive_files`."""
        events = self._dialect.receive(frame, asyncio.get_running_loop().time())
        self._frames.flush()
        for event in events:
            if isinstance(event, Input) and self.principal is not None:
                await self._submit(event, place, self.principal)
            else:
                await self._handle_events([event], len(frame))

    async def _receive_frame(
        self, frame: bytes | str | Sequence[ObjectEnvelope | RefusedEnvelope], size: int
    ) -> None:
        was_waiting = self._dialect.is_behind or self._dialect.waiting_bytes > 0
        events = self._dialect.receive(frame, asyncio.get_running_loop().time())
        self._frames.flush()
        await self._handle_events(events, size)
        # The renderer has displayed everything that was held back, so it can catch up.
        if was_waiting and not self._dialect.is_behind and not self._dialect.waiting_bytes:
            self.viewer.drained()

    def _turn_ended(self) -> None:
        """Send a suspended renderer a catch-up at the end of a turn (docs/protocol.md, O16)."""
        if self._dialect.let_through():
            self.viewer.drained()

    # -- transfers of surfaces ---------------------------------------------------------------------

    async def _request_transfer(self, name: str, request: SurfaceTransferRequest) -> bool:
        """Ask the renderer to move a surface to another agent; see `Viewer.request_transfer`.

        Returns:
            Whether the renderer moved it; false if the outcome is unknown, also after
            `HAND_OVER_S`. A later confirmation still closes the surface.

        Raises:
            TransferDenied: The renderer refuses.
        """
        if name in self._transfers:
            raise TransferDenied(f"surface {name!r:.80} is being transferred already", detail=name)
        outcome: asyncio.Future[TransferDenied | bool] = asyncio.get_running_loop().create_future()
        self._transfers[name] = outcome
        try:
            self._dialect.hand_over(name, request)
            self._frames.flush()
            async with asyncio.timeout(HAND_OVER_S):
                answer = await outcome
        except TimeoutError:
            return False
        finally:
            del self._transfers[name]
        if isinstance(answer, TransferDenied):
            raise answer
        return answer

    def acquired(self, surface_id: int, given: SurfaceSurfaceAcquiredEvent) -> str | None:
        """Adopt a surface; see `SurfaceOwner.acquired`."""
        self._hub.check_takes_input()
        live = self._hub.session_of(self.viewer)
        if live is None or self.principal is None:
            raise TransferDenied("this renderer is on no session")
        name = self._hub.transfers.acquired(live, given)
        task = start_task(self._accept(live, surface_id), "arp-accept")
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)
        return name

    async def _accept(self, live: LiveSession, surface_id: int) -> None:
        """Confirm an adopted surface to the renderer once it is durable."""
        # If the surface cannot be written, the session closes this connection without a
        # confirmation, and the source session asks again.
        with suppress(ArpError):
            await live.written()
            self._dialect.accept(surface_id)
            self._frames.flush()

    def transferred(self, name: str) -> None:
        """Close a moved surface; see `SurfaceOwner.transferred`."""
        live = self._hub.session_of(self.viewer)
        if live is not None:
            self._hub.transfers.transferred(live, name)
        self._set_outcome(name, True)

    def denied(self, name: str, error: TransferDenied) -> None:
        """Record a refusal; see `SurfaceOwner.denied`."""
        self._set_outcome(name, error)

    def unanswered(self, name: str) -> None:
        """Record an unknown outcome; see `SurfaceOwner.unanswered`."""
        self._set_outcome(name, False)

    def desynchronised(self) -> None:
        """Request a snapshot; see `SurfaceOwner.desynchronised`."""
        # Delayed: the delivery is iterating over its renderers, and a resync changes that list.
        asyncio.get_running_loop().call_soon(self._resync)

    def _resync(self) -> None:
        delivery = self.viewer.delivery
        if delivery is not None:
            delivery.resync(self.viewer)

    def closed(self) -> None:
        """Detach the renderer (see `Peer.closed`); running transfers get an unknown outcome."""
        for name in list(self._transfers):
            self._set_outcome(name, False)
        super().closed()

    def _set_outcome(self, name: str, outcome: TransferDenied | bool) -> None:
        if name in self._transfers:
            settle(self._transfers[name], outcome)

    def _send_hello(self) -> None:
        """Do nothing, because the session's metadata has the capabilities of the agent side."""


def _data_of_inputs(envelopes: Iterable[ObjectEnvelope | RefusedEnvelope]) -> Iterable[Json]:
    return (
        one.payload.get("data")
        for one in envelopes
        if isinstance(one, ObjectEnvelope) and one.op == "input"
    )


def peer_speaking(dialect: Dialect) -> type[Peer]:
    """Return the peer class of a dialect; both have the same constructor."""
    return ObjectPeer if dialect == "object" else Peer
