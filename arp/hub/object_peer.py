"""A renderer's connection in the object dialect, and the choice between both dialects.

Theory of operation. For the hub this is a peer like any other. Between it and the transport stands
an `ObjectDialect`: what the hub sends this renderer goes through it, and so does what comes. Only
reading large frames is done in a thread; the objects of a connection belong to the loop.
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
from arp.hub.peer import HELLO_DEADLINE_S, CheckToken, Peer, PlaceFiles
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
"""What waits for a renderer that is behind, as the hub is told: more than any may have, so that it
gets one catch-up when it has displayed what it has, or shows anything again."""


HAND_OVER_S: Final = 10.0
"""How long a renderer may take to hand a surface over; no person is asked."""


class ObjectOutbox:
    """Writes what the hub sends as requests, and hands them to the outbox of the transport."""

    def __init__(self, outbox: FrameOutbox, dialect: ObjectDialect) -> None:
        self._outbox = outbox
        self._dialect = dialect

    def send(self, frames: list[bytes]) -> None:
        """Send frames of the session dialect, as far as the renderer displays what it has."""
        self._dialect.show(frames, asyncio.get_running_loop().time())
        self.flush()

    def send_first(self, frame: bytes) -> None:
        """Pass over signs of life: `sync` is for that."""

    def flush(self) -> None:
        """Send the requests that wait."""
        frames = self._dialect.data_to_send()
        if frames:
            self._outbox.send(frames)

    @property
    def buffered(self) -> int:
        """As `FrameOutbox.buffered`; what waits for the renderer counts too."""
        if self._dialect.is_behind:
            return BEHIND_BYTES
        return self._outbox.buffered + self._dialect.waiting_bytes

    def waiting(self) -> list[bytes]:
        """As `FrameOutbox.waiting`."""
        return self._outbox.waiting()

    def close(self, code: int, reason: str) -> None:
        """As `FrameOutbox.close`."""
        self._outbox.close(code, reason)


class ObjectPeer(Peer):
    """A renderer that speaks the object dialect; its arguments are those of `Peer`."""

    __slots__ = ("_accepting", "_dialect", "_encoding", "_frames", "_handing_over")

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
        self._handing_over: dict[str, asyncio.Future[TransferDenied | bool]] = {}
        """Surfaces that the renderer was asked to hand over: whether it has, as far as is known."""
        self._accepting: set[asyncio.Task[None]] = set()
        super().__init__(hub, self._frames, "json", workflow, principal, check_token)
        self.viewer.hand_over = self._hand_over
        self.viewer.on_turn_end = self._turn_ended

    def start(self) -> None:
        """Ask what the renderer offers."""
        self._dialect.start()
        self._frames.flush()
        if self.principal is None:
            asyncio.get_running_loop().call_later(HELLO_DEADLINE_S, self._too_late)

    async def receive(self, frame: bytes | str) -> None:
        """Take one frame. Never raises for what is in it."""
        if len(frame) < LARGE_BYTES:
            await self._take_object_frame(frame, len(frame))
            return
        most = self._hub.settings.limits.max_message_bytes
        if len(frame) > most:
            await self._take_object_frame(frame, len(frame))
            return
        data = frame.encode("utf-8", "replace") if isinstance(frame, str) else frame
        inbound = self._hub.inbound
        large = await inbound.read(partial(read, data, self._encoding), _data_of_inputs)
        with inbound.redactor.knowing(large.cleaned):
            await self._take_object_frame(large.value, len(frame))

    async def receive_files(self, frame: bytes, place: PlaceFiles) -> None:
        """As `Peer.receive_files`."""
        events = self._dialect.receive(frame, asyncio.get_running_loop().time())
        self._frames.flush()
        for event in events:
            if isinstance(event, Input) and self.principal is not None:
                await self._submit(event, place, self.principal)
            else:
                await self._take([event], len(frame))

    async def _take_object_frame(
        self, frame: bytes | str | Sequence[ObjectEnvelope | RefusedEnvelope], size: int
    ) -> None:
        was_waiting = self._dialect.is_behind or self._dialect.waiting_bytes > 0
        events = self._dialect.receive(frame, asyncio.get_running_loop().time())
        self._frames.flush()
        await self._take(events, size)
        if was_waiting and not self._dialect.is_behind and not self._dialect.waiting_bytes:
            self.viewer.drained()

    def _turn_ended(self) -> None:
        """Bring a suspended conversation to the end of its turn (docs/protocol.md, O16)."""
        if self._dialect.let_through():
            self.viewer.drained()

    # -- surfaces that go to another agent, or come from one ---------------------------------------

    async def _hand_over(self, name: str, request: SurfaceTransferRequest) -> bool:
        """Ask the renderer to give a surface to another of its agents; see `Viewer.hand_over`.

        Returns:
            Whether it has; false if that is not known, also after `HAND_OVER_S`. Should it do so
            later, the surface is closed then.

        Raises:
            TransferDenied: It does not.
        """
        if name in self._handing_over:
            raise TransferDenied(f"surface {name!r:.80} is being handed over", detail=name)
        outcome: asyncio.Future[TransferDenied | bool] = asyncio.get_running_loop().create_future()
        self._handing_over[name] = outcome
        try:
            self._dialect.hand_over(name, request)
            self._frames.flush()
            async with asyncio.timeout(HAND_OVER_S):
                answer = await outcome
        except TimeoutError:
            return False
        finally:
            del self._handing_over[name]
        if isinstance(answer, TransferDenied):
            raise answer
        return answer

    def acquired(self, surface_id: int, given: SurfaceSurfaceAcquiredEvent) -> str | None:
        """As `SurfaceOwner.acquired`."""
        self._hub.check_takes_input()
        live = self._hub.of(self.viewer)
        if live is None or self.principal is None:
            raise TransferDenied("this renderer is on no session")
        name = self._hub.transfers.acquired(live, given)
        task = start_task(self._accept(live, surface_id), "arp-accept")
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)
        return name

    async def _accept(self, live: LiveSession, surface_id: int) -> None:
        """Tell the renderer that a surface is taken, once the ledger has it."""
        with suppress(ArpError):  # it could not be written, and the connection ends
            await live.written()
            self._dialect.accept(surface_id)
            self._frames.flush()

    def transferred(self, name: str) -> None:
        """As `SurfaceOwner.transferred`."""
        live = self._hub.of(self.viewer)
        if live is not None:
            self._hub.transfers.transferred(live, name)
        self._settle(name, True)

    def denied(self, name: str, error: TransferDenied) -> None:
        """As `SurfaceOwner.denied`."""
        self._settle(name, error)

    def unanswered(self, name: str) -> None:
        """As `SurfaceOwner.unanswered`."""
        self._settle(name, False)

    def desynchronised(self) -> None:
        """As `SurfaceOwner.desynchronised`."""
        # Not at once: the delivery is going through its renderers.
        asyncio.get_running_loop().call_soon(self._resync)

    def _resync(self) -> None:
        delivery = self.viewer.delivery
        if delivery is not None:
            delivery.resync(self.viewer)

    def closed(self) -> None:
        """As `Peer.closed`."""
        for name in list(self._handing_over):
            self._settle(name, False)
        super().closed()

    def _settle(self, name: str, outcome: TransferDenied | bool) -> None:
        if name in self._handing_over:
            settle(self._handing_over[name], outcome)

    def _send_hello(self) -> None:
        """Do nothing: what the agent side can do stands in the metadata of the session."""


def _data_of_inputs(envelopes: Iterable[ObjectEnvelope | RefusedEnvelope]) -> Iterable[Json]:
    return (
        one.payload.get("data")
        for one in envelopes
        if isinstance(one, ObjectEnvelope) and one.op == "input"
    )


def peer_speaking(dialect: Dialect) -> type[Peer]:
    """Return what speaks a dialect for the hub; both kinds are made alike."""
    return ObjectPeer if dialect == "object" else Peer
