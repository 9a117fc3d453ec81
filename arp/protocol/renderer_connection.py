"""A renderer's end of one session, without I/O: frames in, messages out, and the screen kept.

Theory of operation. One object outlives many connections. `hello` gives the first frame of each: it
names the last `seq` that was applied, so that the agent side sends what was missed, or a snapshot.
A snapshot is built on a second screen, which replaces the first at the commit that carries its
`seq`; until then the first one shows. The messages of a catch-up have no `seq` until its last
commit: in between, no cursor says where this renderer is (`epoch` is `None`), so that a connection
that is lost just then is followed by a snapshot, and nothing is applied twice. The same holds after
something that cannot be applied. A message whose `seq` was applied before is passed over. Inputs
that have not been acknowledged are kept, with their ids, for the next connection.

An agent side that knows the v0.1 draft alone answers our `hello` with an error, or not at all. Then
this side makes what is missing: the `session`, the turns, and for each input its echo and its `ack`
(`DraftTurns`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arp.protocol.codec import Encoding, agent_decoder, encode, recode
from arp.protocol.draft_agent import DraftTurns, may_be_draft, shows_draft
from arp.protocol.errors import ArpError, ErrorPayload, InvalidMessage
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import (
    AgentCapabilities,
    AgentHello,
    AgentMessage,
    Command,
    Commit,
    ErrorMessage,
    Input,
    InputAck,
    InputType,
    Patch,
    Ping,
    Pong,
    Presented,
    Render,
    RendererAck,
    RendererHello,
    Resume,
    SessionReady,
    is_unrepeatable,
)
from arp.protocol.screen import Screen

DRAFT_EPOCH = "draft"
"""Of a session on an agent side without a log."""


class RendererConnection:
    """Speaks the session dialect for one renderer on one session.

    Args:
        hello: What the renderer says of itself.
        encoding: Of all frames.
        spare_id: Of the session, where neither the `hello` nor the agent side names one.
    """

    def __init__(
        self, hello: RendererHello, encoding: Encoding = "json", spare_id: str = "draft"
    ) -> None:
        self.screen = Screen()
        self.epoch: str | None = None
        """Of the session's log; `None` while no cursor says where this screen is in it."""
        self.seq = 0
        """The last one applied."""
        self.agent: AgentHello | None = None
        self.workflow: str | None = None
        """The name of the session's agent, once it is known."""
        self.unacknowledged: dict[str, Input] = {}
        self.encoding: Encoding = encoding
        self._hello = hello
        self._decoder = agent_decoder(encoding)
        self._aside: Screen | None = None
        self._next_epoch: str | None = None
        """While `epoch` is `None`: the one that holds from the next `seq` on."""
        self._spare_id = spare_id
        self.is_undecided = True
        """Nothing on this connection has shown yet whether the agent side knows our `hello`."""
        self._is_draft = False
        """It was shown on this connection that it knows the draft alone."""
        self._draft: DraftTurns | None = None
        """The turns of the session, if it is one of the draft."""
        self._made: list[AgentMessage] = []
        """What this side has made of its inputs, for `echoes`."""

    @property
    def session_id(self) -> str | None:
        """The session, once it is known."""
        return self._hello.session_id

    @property
    def commands(self) -> tuple[Command, ...]:
        """The slash commands of the app and of the session, which has one of each name."""
        offered = self.agent.capabilities.commands if self.agent is not None else ()
        return tuple({one.name: one for one in (*offered, *self.screen.commands)}.values())

    @property
    def is_desynchronised(self) -> bool:
        """Whether only another connection can make the screen equal to the agent side's."""
        return self.epoch is None and self._next_epoch is None

    # -- out -------------------------------------------------------------------------------------

    def hello(self) -> bytes:
        """Return the first frame of a connection; what is pending of the one before is dropped.

        It is empty where the agent side speaks first: then there is nothing to send.
        """
        self._aside, self._next_epoch = None, self.epoch
        self.is_undecided, self._is_draft = True, False
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
        edits: str | None = None,
    ) -> bytes:
        """Return the frame of an input, and keep it until it is acknowledged or refused.

        Raises:
            InvalidMessage: It holds half a surrogate pair, which no encoding has. It is not kept.
        """
        message = Input(
            input_type=input_type,
            data=data,
            session_id=self.session_id,
            source_component=source,
            surface=surface,
            id=input_id,
            edits=edits,
        )
        try:
            frame = self._encode(message)
        except UnicodeEncodeError:
            wrong = "input: half a surrogate pair is no text; replace it"
            raise InvalidMessage(wrong, detail="data") from None
        self.unacknowledged[input_id] = message
        self._made_of(message, input_id)
        return frame

    def input_with_files(self, message: Input) -> bytes:
        """Return the frame of an input that goes with files; whoever sends it keeps it."""
        return self._encode(message)

    def resend(self) -> list[bytes]:
        """Return the frames of every input that is not acknowledged, oldest first."""
        waiting = dict(self.unacknowledged)
        for input_id, message in waiting.items():
            self._made_of(message, input_id)
        return [
            self._encode(msgspec.structs.replace(message, session_id=self.session_id))
            for message in waiting.values()
        ]

    def echoes(self) -> list[AgentMessage]:
        """Return what shows inputs that no agent side echoes; it is applied already."""
        made, self._made = self._made, []
        return made

    def _made_of(self, message: Input, input_id: str) -> None:
        if self._is_draft and self._draft is not None:
            self._made += self._applied(self._draft.begin(message, input_id))

    def ack(self, seq: int, presented: dict[str, Presented] | None = None) -> bytes:
        """Return the frame that says how far this renderer has displayed."""
        return self._encode(RendererAck(seq=seq, presented=presented or {}))

    def _encode(self, message: object) -> bytes:
        return encode(message, self.encoding)

    def ping(self, ping_id: str) -> bytes:
        """Return the frame that asks the agent side for a sign of life."""
        return self._encode(Ping(id=ping_id))

    def pong(self, ping: Ping) -> bytes:
        """Return the frame that answers a ping of the agent side."""
        return self._encode(Pong(id=ping.id))

    # -- in --------------------------------------------------------------------------------------

    def receive(self, frame: bytes | str) -> list[AgentMessage]:
        """Take one frame, apply it to the screen, and return its messages in order.

        A message of an unknown type is passed over. A frame that cannot be read becomes an
        `ErrorMessage`, and so does, behind it, a commit that cannot be applied. Never raises.

        Returns:
            What was applied. It stays as it is, though the screen goes on changing.
        """
        data = frame.encode("utf-8", "replace") if isinstance(frame, str) else frame
        try:
            messages = self._decoder.decode(data)
        except InvalidMessage as error:
            self._desynchronise()
            self._miss(error.detail)
            return [_shown(error)]
        return self._apply_all(messages, len(data))

    def receive_json(self, frame: bytes) -> list[AgentMessage]:
        """Take a frame that came beside the connection, in JSON; as `receive`.

        Raises:
            msgspec.DecodeError: It is no JSON.
        """
        return self.receive(recode(frame, self.encoding))

    def replies(self) -> list[bytes]:
        """Return the frames that answer what was received; none in this dialect."""
        return []

    def _apply_all(self, messages: Sequence[AgentMessage], size: int) -> list[AgentMessage]:
        """Apply messages that came in a frame of a size; return what was applied."""
        out: list[AgentMessage] = []
        for message in messages:
            out += self._applied(self._completed(message))
        too_much = (self._aside or self.screen).weigh_pending(size)
        if too_much is not None:
            self._desynchronise()
            out.append(_shown(too_much))
        return out

    def _applied(self, messages: Sequence[AgentMessage]) -> list[AgentMessage]:
        out: list[AgentMessage] = []
        for message in messages:
            if self._came_before(message):
                continue
            out.append(message)
            refused = self._apply(message)
            if refused is not None:
                self._desynchronise()
                out.append(_shown(refused))
        return out

    def _completed(self, message: AgentMessage) -> list[AgentMessage]:
        """Return a message with those that an agent side of the draft does not send."""
        if isinstance(message, SessionReady):
            self.is_undecided = self._is_draft = False
            self._draft = None
        elif isinstance(message, AgentHello):
            self.is_undecided = self.is_undecided and may_be_draft(message)
        elif self.is_undecided and shows_draft(message):
            begun = self._begin_draft()
            is_answer = isinstance(message, ErrorMessage)  # no input was sent before
            return begun if is_answer else [*begun, *self._placed(message)]
        return self._placed(message)

    def _placed(self, message: AgentMessage) -> list[AgentMessage]:
        return [message] if self._draft is None else self._draft.placed(message)

    def assume_draft(self) -> list[AgentMessage]:
        """Begin the session, if the agent side has said `hello` and leaves ours without an answer.

        Returns:
            What was applied; nothing, if the agent side knows our `hello`.
        """
        if not self.is_undecided or self.agent is None:
            return []
        return self._applied(self._begin_draft())

    def _begin_draft(self) -> list[AgentMessage]:
        """Return what begins the session on a connection to an agent side of the draft."""
        self.is_undecided, self._is_draft = False, True
        is_new = self._draft is None
        self._draft = self._draft or DraftTurns()
        ready = SessionReady(
            session_id=self.session_id or self._spare_id,
            epoch=DRAFT_EPOCH,
            seq=0,
            resume="new" if is_new else "replay",
        )
        hello = [] if self.agent else [AgentHello(capabilities=AgentCapabilities([]))]
        return [*hello, ready, *self._draft.connected()]

    def _came_before(self, message: AgentMessage) -> bool:
        """Return whether the `seq` of a message was applied before (protocol.md 2.3)."""
        seq = None if isinstance(message, SessionReady) else getattr(message, "seq", None)
        return seq is not None and self._aside is None and seq <= self.seq

    def _desynchronise(self) -> None:
        """Record that the screen is not what the agent side takes it for."""
        self.epoch = self._next_epoch = None

    def _miss(self, type_name: str | None) -> None:
        """Drop what waits for a commit of which a part could not be read."""
        screen = self._aside or self.screen
        if type_name == "commit":
            screen.drop_pending()
        elif type_name in (None, "render", "patch"):
            screen.spoil_pending()

    def _apply(self, message: AgentMessage) -> ArpError | None:
        match message:
            case AgentHello():
                self.agent = message
            case SessionReady():
                self._session(message)
            case InputAck():
                self.unacknowledged.pop(message.id, None)
            case Ping() | Pong():
                pass  # signs of life show nothing and stand nowhere
            case _:
                if isinstance(message, ErrorMessage) and message.payload.id is not None:
                    self.unacknowledged.pop(message.payload.id, None)
                return self._show(message)
        return None

    def _session(self, message: SessionReady) -> None:
        self._hello = msgspec.structs.replace(self._hello, session_id=message.session_id)
        self.workflow = message.workflow
        if message.resume == "replay" and message.epoch == self.epoch:
            return
        if message.resume == "replay" and self._is_draft:
            self._next_epoch = DRAFT_EPOCH  # there is no log: what shows is all there is
            return
        self._aside = Screen()
        if isinstance(message.state, dict):
            self._aside.shared_state = message.state
        self.epoch = None
        self._next_epoch = message.epoch
        if message.resume == "new":
            self._swap(self._aside, message.seq)
        elif message.resume == "replay":  # of all that there is: no place of it was named
            self._swap(self._aside, 0)

    def _show(self, message: AgentMessage) -> ArpError | None:
        aside = self._aside
        refused = (aside or self.screen).apply(message)
        seq = getattr(message, "seq", None)
        if isinstance(message, Render | Patch):
            return refused
        if aside is not None:
            if seq is not None and isinstance(message, Commit):
                self._swap(aside, seq)
        elif seq is not None:
            self._place(seq)
        elif isinstance(message, ErrorMessage) and message.payload.debug is not None:
            pass  # it belongs to no place of the log
        elif is_unrepeatable(_type_of(message), getattr(message, "turn_id", None)):
            self._leave_place()
        return refused

    def _place(self, seq: int) -> None:
        self.seq = max(self.seq, seq)
        if self.epoch is None:
            self.epoch = self._next_epoch

    def _leave_place(self) -> None:
        if self.epoch is not None and not self._is_draft:  # else there is no log
            self.epoch, self._next_epoch = None, self.epoch

    def _swap(self, screen: Screen, seq: int) -> None:
        self.screen, self._aside = screen, None
        self.epoch, self.seq = self._next_epoch, seq


def _type_of(message: AgentMessage) -> str:
    return str(message.__struct_config__.tag)


def _shown(error: ArpError) -> ErrorMessage:
    return ErrorMessage(payload=ErrorPayload(error.message, int(error.code), error.detail))
