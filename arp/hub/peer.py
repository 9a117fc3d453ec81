"""One connection's conversation with the hub: bytes from a transport in, bytes to its outbox out.

Theory of operation. A connection begins with the agent side's `hello`. A peer without a principal
is not trusted yet: only a `hello` with a valid token is heard, everything else is answered
UNAUTHENTICATED. With the token it gets another `hello`, which lists the agents.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.inbound import LARGE_BYTES
from arp.live.delivery import Viewer
from arp.live.files import Arrived
from arp.live.outbox import FrameOutbox
from arp.live.trace import is_tracing, log_received, traced
from arp.protocol.agent_connection import AgentConnection, AgentEvent, Failed, Rejected
from arp.protocol.capabilities import NO_APP
from arp.protocol.codec import Encoding
from arp.protocol.errors import ArpError, Unauthenticated, error_payload
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import (
    Commit,
    ErrorMessage,
    Input,
    Ping,
    Pong,
    RendererAck,
    RendererHello,
)
from arp.store.errors import StoreError

logger = logging.getLogger(__name__)

CheckToken: TypeAlias = Callable[[str], Awaitable[Principal | None]]
"""Tells to whom a token belongs; `None`: to nobody."""


PlaceFiles: TypeAlias = Callable[[JsonObject], tuple[Sequence[Arrived], JsonObject]]
"""Returns the files that the data of an input names, and the data with references to them."""

HELLO_DEADLINE_S = 10.0
"""How long a connection may stay without a principal."""

SILENT_S = 2.0
"""A client that sends nothing for so long knows only the draft: others begin with `hello`."""


class Peer:
    """A renderer's connection, whatever carries it."""

    __slots__ = (
        "_check_token",
        "_connection",
        "_hub",
        "_silence",
        "_workflow",
        "may_come_back",
        "may_make",
        "on_trusted",
        "principal",
        "refusal",
        "viewer",
    )

    def __init__(
        self,
        hub: Hub,
        outbox: FrameOutbox,
        encoding: Encoding,
        workflow: str,
        principal: Principal | None,
        check_token: CheckToken,
    ) -> None:
        viewer_id = secrets.token_hex(8)
        self.viewer = Viewer(viewer_id, traced(outbox, viewer_id, encoding), encoding)
        self.principal = principal
        self.on_trusted: Callable[[], object] = lambda: None
        """Is called when the peer has shown a token, or is gone."""
        self.refusal: ArpError | None = None
        """The last thing that was refused."""
        self.may_make = True
        """Whether a session that it asks for and that there is not is made, and not only shown."""
        self.may_come_back = False
        """A client of the draft may be here whose connection before was lost while it waited."""
        self._hub = hub
        self._workflow = workflow
        self._check_token = check_token
        self._connection = AgentConnection(encoding, hub.settings.limits)
        self._silence: asyncio.TimerHandle | None = None
        """Runs until the client has sent something."""

    def start(self) -> None:
        """Send the agent side's `hello`."""
        self._send_hello()
        if self.may_come_back:
            loop = asyncio.get_running_loop()
            self._silence = loop.call_later(SILENT_S, self._end_lost_stream)
        if self.principal is None:
            asyncio.get_running_loop().call_later(HELLO_DEADLINE_S, self._too_late)

    def _send_hello(self) -> None:
        """Say what the app can do; which agents there are is told to a principal alone."""
        hub = self._hub
        app = hub.app.about() if self.principal is not None else NO_APP
        settings = hub.settings
        frame = self._connection.hello(hub.app.commands(), settings.takes_input, app)
        self.viewer.outbox.send([frame])

    def _end_lost_stream(self) -> None:
        """Send a final commit: a client of the draft may wait for one since its last connection.

        It names no session, so nobody can say whether its turn goes on; it would send nothing else.
        """
        self._silence = None
        if self.principal is not None:
            self.viewer.tell(Commit(session_id="", final=True))

    def _heard(self) -> None:
        """Note that the client has sent something, or is gone."""
        silence, self._silence = self._silence, None
        if silence is not None:
            silence.cancel()

    def _too_late(self) -> None:
        if self.principal is None:
            self.viewer.outbox.close(1008, "no valid token in time")

    async def receive(self, frame: bytes | str) -> None:
        """Take one frame. Never raises for what is in it."""
        self._heard()
        if len(frame) < LARGE_BYTES:
            await self._take(self._connection.receive(frame), len(frame))
            return
        inbound = self._hub.inbound
        read = await inbound.events(self._connection, frame)
        with inbound.redactor.knowing(read.cleaned):
            await self._take(read.value, len(frame))

    async def receive_files(self, frame: bytes, place: PlaceFiles) -> None:
        """Take one frame with an input that came with files. Never raises for what is in it."""
        self._heard()
        read = await self._hub.inbound.events(self._connection, frame)
        with self._hub.inbound.redactor.knowing(read.cleaned):
            for event in read.value:
                if not isinstance(event, Input) or self.principal is None:
                    await self._take([event], len(frame))
                    continue
                await self._submit(event, place, self.principal)

    async def _submit(self, message: Input, place: PlaceFiles, owner: Principal) -> None:
        delivery = self.viewer.delivery
        try:
            files, data = place(message.data)
            session_id = message.session_id or (delivery.session_id if delivery else None)
            message = replace(message, data=data, session_id=session_id)
        except ArpError as error:
            self.refuse(error, message.id)
            return
        self.viewer.tell(await self._hub.submit(message, owner, self._workflow, files))

    async def _take(self, events: list[AgentEvent], size: int) -> None:
        if is_tracing():
            log_received(self.viewer.id, events, size)
        for event in events:
            match event:
                case RendererHello():
                    await self._hello(event)
                case Rejected(error, input_id):
                    self.refuse(error, input_id)
                case Failed(code, reason):
                    self.viewer.outbox.close(code, reason)
                case Input() if self.principal is not None:
                    await self._hub.receive(self.viewer, event, self.principal, self._workflow)
                case RendererAck() if self.principal is not None:
                    self.viewer.acknowledge(event.seq, event.presented)
                case Ping() if self.principal is not None:
                    self._answer(event)
                case Pong() if self.principal is not None:
                    pass  # we ask only over event streams, where it comes by POST
                case _:
                    input_id = event.id if isinstance(event, Input) else None
                    self.refuse(Unauthenticated("say hello with a token first"), input_id)

    def _answer(self, ping: Ping) -> None:
        """Answer at once, before what waits; no session hears of it."""
        self.viewer.outbox.send_first(self._connection.pong(ping))

    def expel(self) -> None:
        """Take nothing further: whoever is there is not let in any more."""
        self.principal = None
        self._hub.detach(self.viewer)

    def closed(self) -> None:
        """Is called once, when the connection is gone."""
        self._heard()
        self.on_trusted()
        self._hub.detach(self.viewer)
        logger.info("renderer %s is gone", self.viewer.id)

    async def _hello(self, hello: RendererHello) -> None:
        try:
            if self.principal is None:
                self.principal = await self._check_token(hello.token) if hello.token else None
                if self.principal is None:
                    raise Unauthenticated("hello.token: missing or not valid")
                if self._hub.app.about() != NO_APP:
                    self._send_hello()  # now with the agents
            self.on_trusted()
            provisional = not self.may_make
            await self._hub.hello(
                self.viewer,
                hello,
                self.principal,
                hello.workflow or self._workflow,
                provisional=provisional,
            )
            self._log_session()
        except (ArpError, StoreError) as error:
            self.refuse(error)

    def _log_session(self) -> None:
        delivery = self.viewer.delivery
        if delivery is not None and self.principal is not None:
            who = f" as {self.principal.name!r}" if self.principal.name else ""
            logger.info("renderer %s is on session %r%s", self.viewer.id, delivery.session_id, who)

    def refuse(self, error: ArpError, input_id: str | None = None) -> None:
        """Tell the other end that something was refused."""
        self.refusal = error
        self.viewer.tell(ErrorMessage(payload=error_payload(error, input_id)))
