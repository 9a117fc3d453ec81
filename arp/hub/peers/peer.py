"""One connection of a renderer: frames from a transport in, frames to its outbox out.

Theory of operation. A connection begins with the agent side's `hello`. A peer without a principal
is not trusted: only a `hello` with a valid token is processed; everything else is answered with
UNAUTHENTICATED. After the token was accepted, the peer receives another `hello`, which lists the
agents.
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
from arp.live.files import IncomingFile
from arp.live.outbox import FrameOutbox
from arp.live.trace import is_tracing, log_received, traced
from arp.protocol.capabilities import NO_APP
from arp.protocol.codec import Encoding
from arp.protocol.connection.agent_connection import (
    AgentConnection,
    AgentEvent,
    ConnectionFailure,
    RejectedMessage,
)
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
"""Returns the principal of a token; `None` if the token is not valid."""


PlaceFiles: TypeAlias = Callable[[JsonObject], tuple[Sequence[IncomingFile], JsonObject]]
"""Returns the files that an input names, and its data with references to them."""

HELLO_DEADLINE_S = 10.0
"""Seconds after which a connection without a principal is closed."""

SILENT_S = 2.0
"""Silence in seconds after which a client is taken for a draft client; others send `hello`."""


class Peer:
    """Connection of a renderer, independent of its transport."""

    __slots__ = (
        "_check_token",
        "_connection",
        "_hub",
        "_silence",
        "_workflow",
        "may_come_back",
        "may_create_session",
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
        """Called when the peer has sent a valid token, and when it has disconnected."""
        self.refusal: ArpError | None = None
        """Error that was sent last."""
        self.may_create_session = True
        """Whether a session that its `hello` creates is stored at once; otherwise the session stays
        provisional."""
        self.may_come_back = False
        """Whether this may be a draft client whose previous connection broke during a turn."""
        self._hub = hub
        self._workflow = workflow
        self._check_token = check_token
        self._connection = AgentConnection(encoding, hub.settings.limits)
        self._silence: asyncio.TimerHandle | None = None
        """Timer that runs until the client sends something."""

    def start(self) -> None:
        """Send the agent side's `hello`."""
        self._send_hello()
        if self.may_come_back:
            loop = asyncio.get_running_loop()
            self._silence = loop.call_later(SILENT_S, self._send_final_commit)
        if self.principal is None:
            asyncio.get_running_loop().call_later(HELLO_DEADLINE_S, self._close_untrusted)

    def _send_hello(self) -> None:
        """Send the agent side's `hello`; only a principal learns which agents exist."""
        hub = self._hub
        app = hub.app.about() if self.principal is not None else NO_APP
        settings = hub.settings
        frame = self._connection.hello(hub.app.commands(), settings.takes_input, app)
        self.viewer.outbox.send([frame])

    def _send_final_commit(self) -> None:
        """Send a final commit, in case a draft client waits for one since its last connection.

        The client has named no session, so it is unknown whether its turn continues, and without
        the commit it would send nothing more.
        """
        self._silence = None
        if self.principal is not None:
            self.viewer.tell(Commit(session_id="", final=True))

    def _stop_silence_timer(self) -> None:
        """Stop the timer for silent clients."""
        silence, self._silence = self._silence, None
        if silence is not None:
            silence.cancel()

    def _close_untrusted(self) -> None:
        """Close a connection that has shown no valid token in time."""
        if self.principal is None:
            self.viewer.outbox.close(1008, "no valid token in time")

    async def receive(self, frame: bytes | str) -> None:
        """Process one frame; invalid content never raises."""
        self._stop_silence_timer()
        if len(frame) < LARGE_BYTES:
            await self._handle_events(self._connection.receive(frame), len(frame))
            return
        inbound = self._hub.inbound
        read = await inbound.events(self._connection, frame)
        with inbound.redactor.knowing(read.cleaned):
            await self._handle_events(read.value, len(frame))

    async def receive_files(self, frame: bytes, place: PlaceFiles) -> None:
        """Process one frame with an input and uploaded files; invalid content never raises."""
        self._stop_silence_timer()
        read = await self._hub.inbound.events(self._connection, frame)
        with self._hub.inbound.redactor.knowing(read.cleaned):
            for event in read.value:
                if not isinstance(event, Input) or self.principal is None:
                    await self._handle_events([event], len(frame))
                    continue
                await self._submit(event, place, self.principal)

    async def _submit(self, message: Input, place: PlaceFiles, owner: Principal) -> None:
        """Submit an input with uploaded files."""
        delivery = self.viewer.delivery
        try:
            files, data = place(message.data)
            session_id = message.session_id or (delivery.session_id if delivery else None)
            message = replace(message, data=data, session_id=session_id)
        except ArpError as error:
            self.refuse(error, message.id)
            return
        self.viewer.tell(await self._hub.submit(message, owner, self._workflow, files))

    async def _handle_events(self, events: list[AgentEvent], size: int) -> None:
        """Handle the messages of one frame, in order."""
        if is_tracing():
            log_received(self.viewer.id, events, size)
        for event in events:
            match event:
                case RendererHello():
                    await self._hello(event)
                case RejectedMessage(error, input_id):
                    self.refuse(error, input_id)
                case ConnectionFailure(code, reason):
                    self.viewer.outbox.close(code, reason)
                case Input() if self.principal is not None:
                    await self._hub.receive(self.viewer, event, self.principal, self._workflow)
                case RendererAck() if self.principal is not None:
                    self.viewer.acknowledge(event.seq, event.presented)
                case Ping() if self.principal is not None:
                    self._send_pong(event)
                case Pong() if self.principal is not None:
                    pass  # only event streams are pinged by us, and their pong arrives by POST
                case _:
                    input_id = event.id if isinstance(event, Input) else None
                    self.refuse(Unauthenticated("send hello with a token first"), input_id)

    def _send_pong(self, ping: Ping) -> None:
        """Answer a ping at once, before buffered frames; the session is not involved."""
        self.viewer.outbox.send_first(self._connection.pong(ping))

    def expel(self) -> None:
        """Detach a peer that lost its permission; later frames are refused."""
        self.principal = None
        self._hub.detach(self.viewer)

    def closed(self) -> None:
        """Detach the renderer; called once, when the connection is closed."""
        self._stop_silence_timer()
        self.on_trusted()
        self._hub.detach(self.viewer)
        logger.info("renderer %s is gone", self.viewer.id)

    async def _hello(self, hello: RendererHello) -> None:
        """Check the token of a peer without a principal, then attach its renderer to a session."""
        try:
            if self.principal is None:
                self.principal = await self._check_token(hello.token) if hello.token else None
                if self.principal is None:
                    raise Unauthenticated("hello.token: missing or not valid")
                if self._hub.app.about() != NO_APP:
                    # The first `hello` hid the agents from an unknown peer.
                    self._send_hello()
            self.on_trusted()
            provisional = not self.may_create_session
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
        """Send an error to the renderer."""
        self.refusal = error
        self.viewer.tell(ErrorMessage(payload=error_payload(error, input_id)))
