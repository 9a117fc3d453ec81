"""A renderer's connection in the object dialect, and the choice between both dialects.

Theory of operation. For the hub this is a peer like any other. Between it and the transport stands
an `ObjectDialect`: what the hub sends this renderer goes through it, and so does what comes. Only
reading large frames is done in a thread; the objects of a connection belong to the loop.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.inbound import LARGE_BYTES
from arp.hub.outbox import FrameOutbox
from arp.hub.peer import HELLO_DEADLINE_S, CheckToken, Peer, PlaceFiles
from arp.protocol.capabilities import NO_APP, agent_hello
from arp.protocol.codec import Encoding
from arp.protocol.envelope import Dialect
from arp.protocol.json_value import Json
from arp.protocol.messages import Input
from arp.protocol.object_wire import ObjectEnvelope, RefusedEnvelope, read
from arp.view.object_dialect import ObjectDialect

BEHIND_BYTES: Final = 1 << 40
"""What waits for a renderer that is behind, as the hub is told: more than any may have, so that it
gets one catch-up when it has displayed what it has, or shows anything again."""


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

    __slots__ = ("_dialect", "_encoding", "_frames", "_was_suspended")

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
        self._frames = ObjectOutbox(outbox, self._dialect)
        super().__init__(hub, self._frames, "json", workflow, principal, check_token)

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
