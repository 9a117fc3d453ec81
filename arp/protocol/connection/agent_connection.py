"""The agent side of one connection, without I/O: parses and encodes frames.

Theory of operation. A connection lives until its transport closes it. `receive` returns events and
never raises. A refused message becomes a `RejectedMessage` with its code; the connection continues
with the next message of the same frame. `ConnectionFailure` means that the connection cannot
continue (protocol.md 5, close codes). A renderer may send `hello` again to change the session. Only
messages for this one renderer are encoded here: renderers with the same profile share the other
frames of their session (`arp/view`).
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from arp.protocol.capabilities import NO_APP, AppInfo, hello_frame
from arp.protocol.codec import (
    ENCODINGS,
    Encoding,
    UnreadableMessage,
    encode_shown,
    recode,
    renderer_decoder,
)
from arp.protocol.errors import InvalidMessage, RemoteError, ResourceLimit, VersionMismatch
from arp.protocol.json_value import MAX_VALUES, check_count, check_plain_json
from arp.protocol.limits import Limits
from arp.protocol.messages import (
    VERSION,
    AgentMessage,
    Command,
    Input,
    Ping,
    Pong,
    RendererAck,
    RendererHello,
    RendererMessage,
)

MAX_REJECTED = 1000
"""Refused messages after which the connection fails."""


class RejectedMessage(Struct, frozen=True):
    """A message was refused; the peer gets the error."""

    error: RemoteError | ResourceLimit
    input_id: str | None = None


class ConnectionFailure(Struct, frozen=True):
    """The connection must be closed with this WebSocket close code and reason."""

    code: int
    reason: str


AgentEvent: TypeAlias = (
    RendererHello | Input | RendererAck | Ping | Pong | RejectedMessage | ConnectionFailure
)


class AgentConnection:
    """Parses the frames of one renderer, and encodes the messages for it alone."""

    __slots__ = ("_decoder", "_rejected", "encoding", "limits")

    def __init__(self, encoding: Encoding, limits: Limits) -> None:
        self.encoding: Encoding = encoding
        self.limits = limits
        self._decoder = _DECODERS[encoding]
        self._rejected = 0

    # -- out -------------------------------------------------------------------------------------

    def hello(
        self,
        commands: tuple[Command, ...] = (),
        takes_input: bool = True,
        app: AppInfo = NO_APP,
    ) -> bytes:
        """Return the first frame of the connection, with the capabilities of the agent side."""
        return hello_frame(self.limits, self.encoding, commands, takes_input, app)

    def pong(self, ping: Ping) -> bytes:
        """Return the frame that answers a ping of the renderer."""
        return self.encode(Pong(id=ping.id))

    def encode(self, message: AgentMessage) -> bytes:
        """Return a message as a frame."""
        return recode(encode_shown(message), self.encoding)

    # -- in --------------------------------------------------------------------------------------

    def receive(self, frame: bytes | str) -> list[AgentEvent]:
        """Parse one frame and return its events in order.

        Args:
            frame: One WebSocket message, line, or body; `str` if the transport knows it is text.

        Returns:
            Events; never empty for a frame that holds anything. Never raises.
        """
        data = frame.encode("utf-8", "replace") if isinstance(frame, str) else frame
        if len(data) > self.limits.max_message_bytes:
            return self._reject(
                ResourceLimit(
                    f"message of {len(data)} bytes; at most {self.limits.max_message_bytes}",
                    detail="max_message_bytes",
                )
            )
        try:
            messages = self._decoder.read(data)
        except InvalidMessage as error:
            return self._reject(error)
        return [event for message in messages for event in self._check(message, len(data))]

    def _check(self, message: RendererMessage | UnreadableMessage, size: int) -> list[AgentEvent]:
        if isinstance(message, UnreadableMessage):
            return self._reject(message.error, message.input_id)
        input_id = message.id if isinstance(message, Input) else None
        try:
            if message.v != VERSION:
                raise VersionMismatch(
                    f"message.v: version {message.v} is not spoken here; send v: {VERSION}"
                )
            if isinstance(message, Input):
                if self.encoding == "json":  # the other decoders have checked it
                    check_plain_json(message.data, "message.data")
                if size > MAX_VALUES:  # each value has at least one byte
                    check_count(message.data, "message.data", "data")
        except (RemoteError, ResourceLimit) as error:
            return self._reject(error, input_id)
        return [message]

    def _reject(
        self, error: RemoteError | ResourceLimit, input_id: str | None = None
    ) -> list[AgentEvent]:
        self._rejected += 1
        if self._rejected > MAX_REJECTED:
            return [ConnectionFailure(1008, f"more than {MAX_REJECTED} messages were refused")]
        return [RejectedMessage(error, input_id)]


_DECODERS = {encoding: renderer_decoder(encoding) for encoding in ENCODINGS}
"""One decoder per encoding. All connections share it, because a decoder has no state."""
