"""A renderer's end of one session, without I/O: frames in, messages out, and the screen kept.

Theory of operation. One object outlives many connections. `hello` gives the first frame of each: it names
the last place that was applied, so that the agent side sends what was missed, or a snapshot. A snapshot is
built on a screen aside, which takes the old one's place at the commit that carries its `seq`; until then the old
one shows. Inputs that have not been acknowledged are kept, with their ids, for the next connection.
"""

from __future__ import annotations

import msgspec

from arp.protocol.codec import Encoding, agent_decoder, encode_json, recode
from arp.protocol.errors import ErrorPayload, InvalidMessage
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import (
    AgentHello,
    AgentMessage,
    Commit,
    ErrorMessage,
    Input,
    InputAck,
    InputType,
    Patch,
    Render,
    RendererAck,
    RendererHello,
    Resume,
    SessionReady,
)
from arp.protocol.screen import Screen


class RendererConnection:
    """Speaks the session dialect for one renderer on one session."""

    def __init__(self, hello: RendererHello, encoding: Encoding = "json") -> None:
        self.screen = Screen()
        self.epoch: str | None = None
        self.seq = 0
        """The last place applied."""
        self.agent: AgentHello | None = None
        self.unacknowledged: dict[str, Input] = {}
        self.encoding = encoding
        self._hello = hello
        self._decoder = agent_decoder(encoding)
        self._aside: Screen | None = None

    @property
    def session_id(self) -> str | None:
        """The session, once it is known."""
        return self._hello.session_id

    # -- out -------------------------------------------------------------------------------------

    def hello(self) -> bytes:
        """Gives the first frame of a connection; everything pending of the one before is dropped."""
        self._aside = None
        self.screen.drop_pending()
        resume = Resume(self.epoch, self.seq) if self.epoch is not None else None
        return self._encode(msgspec.structs.replace(self._hello, resume=resume))

    def input(
        self,
        input_type: InputType,
        data: JsonObject,
        *,
        input_id: str,
        source: str | None = None,
        surface: str = "main",
    ) -> bytes:
        """Gives the frame of an input, and keeps it until it is acknowledged or refused."""
        message = Input(
            input_type=input_type,
            data=data,
            session_id=self.session_id,
            source_component=source,
            surface=surface,
            id=input_id,
        )
        self.unacknowledged[input_id] = message
        return self._encode(message)

    def resend(self) -> list[bytes]:
        """Gives the frames of every input that is not acknowledged, oldest first."""
        return [
            self._encode(msgspec.structs.replace(message, session_id=self.session_id))
            for message in self.unacknowledged.values()
        ]

    def ack(self, seq: int, presented: dict[str, str] | None = None) -> bytes:
        """Gives the frame that says how far this renderer has displayed."""
        return self._encode(msgspec.convert({"type": "ack", "seq": seq, "presented": presented or {}}, RendererAck))

    def _encode(self, message: object) -> bytes:
        return recode(encode_json(message), self.encoding)

    # -- in --------------------------------------------------------------------------------------

    def receive(self, frame: bytes | str) -> list[AgentMessage]:
        """Takes one frame, applies it to the screen, and gives its messages in order.

        A frame that cannot be read becomes an `ErrorMessage`; a message of an unknown type is passed over.
        Never raises.
        """
        data = frame.encode() if isinstance(frame, str) else frame
        try:
            messages = self._decoder.decode(data)
        except InvalidMessage as error:
            if error.message.startswith("message.type: invalid value"):
                return []
            return [ErrorMessage(payload=ErrorPayload(error.message, int(error.code)))]
        for message in messages:
            self._apply(message)
        return messages

    def _apply(self, message: AgentMessage) -> None:
        match message:
            case AgentHello():
                self.agent = message
            case SessionReady():
                self._session(message)
            case InputAck():
                self.unacknowledged.pop(message.id, None)
            case _:
                if isinstance(message, ErrorMessage) and message.payload.id is not None:
                    self.unacknowledged.pop(message.payload.id, None)
                self._show(message)

    def _session(self, message: SessionReady) -> None:
        self._hello = msgspec.structs.replace(self._hello, session_id=message.session_id)
        if message.resume == "replay":
            return
        self._aside = Screen()
        self.epoch = None
        if message.resume == "new":
            self._finish(message.epoch, message.seq)
        else:
            self._next = (message.epoch, message.seq)

    def _show(self, message: AgentMessage) -> None:
        screen = self._aside or self.screen
        screen.apply(message)
        seq = getattr(message, "seq", None)
        if seq is None or isinstance(message, Render | Patch):
            return
        if self._aside is not None:
            if isinstance(message, Commit):
                self._finish(self._next[0], seq)
        else:
            self.seq = max(self.seq, seq)

    def _finish(self, epoch: str, seq: int) -> None:
        assert self._aside is not None
        self.screen, self._aside = self._aside, None
        self.epoch, self.seq = epoch, seq
