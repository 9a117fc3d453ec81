"""The renderer side of one session, without I/O: frames in, messages out, and a current screen.

Theory of operation. One object outlives many connections. `hello` returns the first frame of each.
It contains the cursor (`epoch` and the last applied `seq`), so that the agent side sends the missed
messages or a snapshot. A snapshot is built on a second screen, which replaces the first at the
commit that carries the `seq`; until then the first screen is shown.

The messages of a catch-up have no `seq` before its last commit. In between there is no valid cursor
(`epoch` is `None`). If the connection is lost then, the next one begins with a snapshot, so that no
message is applied twice. The same holds after a message that could not be applied. A message with a
`seq` that was applied before is ignored. Unacknowledged inputs are kept, with their ids, for the
next connection.

An agent side that only knows the v0.1 draft answers our `hello` with an error, or not at all. This
side then produces what is missing: the `session`, the turns, and the echo and `ack` of each input
(`DraftTurns`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arp.protocol.codec import Encoding, agent_decoder, encode, recode
from arp.protocol.connection.screen import Screen
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

DRAFT_EPOCH = "draft"
"""Epoch of a session on an agent side without a log."""


class RendererConnection:
    """The renderer side of one session in the session dialect.

    Args:
        hello: Capabilities and preferences of the renderer.
        encoding: Encoding of all frames.
        spare_id: Session id to use if neither the `hello` nor the agent side names one.
    """

    def __init__(
        self, hello: RendererHello, encoding: Encoding = "json", spare_id: str = "draft"
    ) -> None:
        self.screen = Screen()
        self.epoch: str | None = None
        """Epoch of the session's log; `None` while the cursor is invalid."""
        self.seq = 0
        """Last applied sequence number."""
        self.agent: AgentHello | None = None
        self.workflow: str | None = None
        """Name of the session's agent; `None` until it is known."""
        self.unacknowledged: dict[str, Input] = {}
        self.encoding: Encoding = encoding
        self._hello = hello
        self._decoder = agent_decoder(encoding)
        self._snapshot: Screen | None = None
        """Screen of a snapshot that is not complete yet."""
        self._next_epoch: str | None = None
        """Epoch that becomes valid with the next `seq`, while `epoch` is `None`."""
        self._spare_id = spare_id
        self.is_undecided = True
        """Whether it is still unknown on this connection if the agent side understands `hello`."""
        self._is_draft = False
        """Whether the agent side turned out to know only the draft on this connection."""
        self._draft: DraftTurns | None = None
        """Turns of the session, if the agent side knows only the draft."""
        self._made: list[AgentMessage] = []
        """Messages that this side has produced for its inputs; `echoes` returns them."""

    @property
    def session_id(self) -> str | None:
        """Id of the session; `None` until it is known."""
        return self._hello.session_id

    @property
    def commands(self) -> tuple[Command, ...]:
        """Slash commands of the app and of the session; the session's win if names are equal."""
        offered = self.agent.capabilities.commands if self.agent is not None else ()
        return tuple({one.name: one for one in (*offered, *self.screen.commands)}.values())

    @property
    def is_desynchronised(self) -> bool:
        """Whether the screen differs from the agent side's until the next connection."""
        return self.epoch is None and self._next_epoch is None

    # -- out -------------------------------------------------------------------------------------

    def hello(self) -> bytes:
        """Discard uncommitted changes of the previous connection; return the first frame.

        An empty frame means that the agent side speaks first and there is nothing to send.
        """
        self._snapshot, self._next_epoch = None, self.epoch
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
        """Return the frame of an input, and keep the input until it is acknowledged or refused.

        Raises:
            InvalidMessage: A string contains a lone surrogate, which no encoding can represent. The
                input is not kept.
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
        self._echo_draft(message, input_id)
        return frame

    def input_with_files(self, message: Input) -> bytes:
        """Return the frame of an input with files; the caller keeps it for a retry."""
        return self._encode(message)

    def resend(self) -> list[bytes]:
        """Return the frames of all unacknowledged inputs, oldest first."""
        waiting = dict(self.unacknowledged)
        for input_id, message in waiting.items():
            self._echo_draft(message, input_id)
        return [
            self._encode(msgspec.structs.replace(message, session_id=self.session_id))
            for message in waiting.values()
        ]

    def echoes(self) -> list[AgentMessage]:
        """Return messages that this side produced for its inputs; they are already applied."""
        made, self._made = self._made, []
        return made

    def _echo_draft(self, message: Input, input_id: str) -> None:
        """Apply the echo and `ack` of an input that an agent side of the draft does not send."""
        if self._is_draft and self._draft is not None:
            self._made += self._apply_new(self._draft.begin(message, input_id))

    def ack(self, seq: int, presented: dict[str, Presented] | None = None) -> bytes:
        """Return the frame that acknowledges everything displayed up to `seq`."""
        return self._encode(RendererAck(seq=seq, presented=presented or {}))

    def _encode(self, message: object) -> bytes:
        return encode(message, self.encoding)

    def ping(self, ping_id: str) -> bytes:
        """Return the frame that pings the agent side."""
        return self._encode(Ping(id=ping_id))

    def pong(self, ping: Ping) -> bytes:
        """Return the frame that answers a ping of the agent side."""
        return self._encode(Pong(id=ping.id))

    # -- in --------------------------------------------------------------------------------------

    def receive(self, frame: bytes | str) -> list[AgentMessage]:
        """Parse one frame, apply it to the screen, and return its messages in order.

        Messages of unknown types are ignored. An unreadable frame becomes an `ErrorMessage`. A
        commit that cannot be applied is followed by an `ErrorMessage`. Never raises.

        Returns:
            The applied messages. Later changes of the screen do not modify them.
        """
        data = frame.encode("utf-8", "replace") if isinstance(frame, str) else frame
        try:
            messages = self._decoder.decode(data)
        except InvalidMessage as error:
            self._desynchronise()
            self._discard_incomplete(error.detail)
            return [_as_message(error)]
        return self._apply_all(messages, len(data))

    def receive_json(self, frame: bytes) -> list[AgentMessage]:
        """Apply a JSON frame received outside the connection, such as an HTTP response.

        Raises:
            msgspec.DecodeError: The frame is not JSON.
        """
        return self.receive(recode(frame, self.encoding))

    def replies(self) -> list[bytes]:
        """Return the frames that answer received messages; none in this dialect."""
        return []

    def _apply_all(self, messages: Sequence[AgentMessage], size: int) -> list[AgentMessage]:
        """Apply the messages of a frame of `size` bytes; return the applied messages."""
        out: list[AgentMessage] = []
        for message in messages:
            out += self._apply_new(self._complete(message))
        too_much = (self._snapshot or self.screen).weigh_pending(size)
        if too_much is not None:
            self._desynchronise()
            out.append(_as_message(too_much))
        return out

    def _apply_new(self, messages: Sequence[AgentMessage]) -> list[AgentMessage]:
        """Apply messages that were not applied before; return them and the errors they caused."""
        out: list[AgentMessage] = []
        for message in messages:
            if self._is_duplicate(message):
                continue
            out.append(message)
            refused = self._apply(message)
            if refused is not None:
                self._desynchronise()
                out.append(_as_message(refused))
        return out

    def _complete(self, message: AgentMessage) -> list[AgentMessage]:
        """Return a message together with the messages that an agent side of the draft omits."""
        if isinstance(message, SessionReady):
            self.is_undecided = self._is_draft = False
            self._draft = None
        elif isinstance(message, AgentHello):
            self.is_undecided = self.is_undecided and may_be_draft(message)
        elif self.is_undecided and shows_draft(message):
            begun = self._begin_draft()
            # No input was sent before, so an error can only be the answer to our `hello`. An agent
            # side of the draft may answer so, and the user must not see it.
            is_answer = isinstance(message, ErrorMessage)
            return begun if is_answer else [*begun, *self._in_draft_turn(message)]
        return self._in_draft_turn(message)

    def _in_draft_turn(self, message: AgentMessage) -> list[AgentMessage]:
        return [message] if self._draft is None else self._draft.placed(message)

    def assume_draft(self) -> list[AgentMessage]:
        """Begin a draft session if the agent side has sent `hello` but has not answered ours.

        Returns:
            The applied messages; none if the agent side has understood our `hello`.
        """
        if not self.is_undecided or self.agent is None:
            return []
        return self._apply_new(self._begin_draft())

    def _begin_draft(self) -> list[AgentMessage]:
        """Return the messages that open the session with an agent side of the draft."""
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

    def _is_duplicate(self, message: AgentMessage) -> bool:
        """Return whether the `seq` of a message was applied before (protocol.md 2.3)."""
        seq = None if isinstance(message, SessionReady) else getattr(message, "seq", None)
        # A snapshot begins with an empty screen, so none of its messages was applied to it before.
        return seq is not None and self._snapshot is None and seq <= self.seq

    def _desynchronise(self) -> None:
        """Record that the screen differs from what the agent side expects. No cursor is valid."""
        self.epoch = self._next_epoch = None

    def _discard_incomplete(self, type_name: str | None) -> None:
        """Discard pending changes after an unreadable message.

        Args:
            type_name: Type of the message, if it is known. An unreadable `commit` ends its changes;
                an unreadable change makes the next commit incomplete.
        """
        screen = self._snapshot or self.screen
        if type_name == "commit":
            screen.drop_pending()
        elif type_name in (None, "render", "patch"):
            screen.spoil_pending()

    def _apply(self, message: AgentMessage) -> ArpError | None:
        match message:
            case AgentHello():
                self.agent = message
            case SessionReady():
                self._open_session(message)
            case InputAck():
                self.unacknowledged.pop(message.id, None)
            case Ping() | Pong():
                pass  # not part of the screen or the log
            case _:
                if isinstance(message, ErrorMessage) and message.payload.id is not None:
                    self.unacknowledged.pop(message.payload.id, None)
                return self._show(message)
        return None

    def _open_session(self, message: SessionReady) -> None:
        self._hello = msgspec.structs.replace(self._hello, session_id=message.session_id)
        self.workflow = message.workflow
        if message.resume == "replay" and message.epoch == self.epoch:
            return
        if message.resume == "replay" and self._is_draft:
            # A draft has no log and sends nothing again: the screen is kept as it is.
            self._next_epoch = DRAFT_EPOCH
            return
        self._snapshot = Screen()
        if isinstance(message.state, dict):
            self._snapshot.shared_state = message.state
        self.epoch = None
        self._next_epoch = message.epoch
        if message.resume == "new":
            self._swap(self._snapshot, message.seq)
        elif message.resume == "replay":  # the whole log follows, because we sent no cursor for it
            self._swap(self._snapshot, 0)

    def _show(self, message: AgentMessage) -> ArpError | None:
        """Apply a message to the screen and update the cursor; return why it was refused."""
        snapshot = self._snapshot
        refused = (snapshot or self.screen).apply(message)
        seq = getattr(message, "seq", None)
        if isinstance(message, Render | Patch):
            return refused  # pending: they count as applied with their commit
        if snapshot is not None:
            if seq is not None and isinstance(message, Commit):
                self._swap(snapshot, seq)
        elif seq is not None:
            self._advance_cursor(seq)
        elif isinstance(message, ErrorMessage) and message.payload.debug is not None:
            pass  # sent in addition to the log; it is not repeated
        elif is_unrepeatable(_type_of(message), getattr(message, "turn_id", None)):
            # Resuming from the old `seq` would send this message again and apply it twice.
            self._invalidate_cursor()
        return refused

    def _advance_cursor(self, seq: int) -> None:
        self.seq = max(self.seq, seq)
        if self.epoch is None:
            self.epoch = self._next_epoch

    def _invalidate_cursor(self) -> None:
        if self.epoch is not None and not self._is_draft:  # a draft has no log and no cursor
            self.epoch, self._next_epoch = None, self.epoch

    def _swap(self, screen: Screen, seq: int) -> None:
        """Show a new screen and set the cursor."""
        self.screen, self._snapshot = screen, None
        self.epoch, self.seq = self._next_epoch, seq


def _type_of(message: AgentMessage) -> str:
    return str(message.__struct_config__.tag)


def _as_message(error: ArpError) -> ErrorMessage:
    return ErrorMessage(payload=ErrorPayload(error.message, int(error.code), error.detail))
