"""A renderer of the object dialect that shows a conversation: objects below, a screen above.

Theory of operation. To its user this is a `RendererConnection`: one object that outlives many
connections and keeps the screen, the cursor and the inputs without an answer. Each connection has
an `ObjectRendererConnection` of its own, whose requests are read as the messages of the session
dialect (`object_conversation`). What the protocol wants answered (`configure` of a new role,
`frame_ack` of each commit, `resumed`) is answered here; `replies` returns those frames, which must
be sent before any other.

Renderers say nothing first in this dialect: the first frame is an array without a message.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from arp.protocol.agent_connection import Failed
from arp.protocol.codec import Encoding, agent_decoder, encode, join_frames
from arp.protocol.errors import ArpError, ErrorPayload, InvalidMessage
from arp.protocol.json_value import JsonObject
from arp.protocol.limits import Limits
from arp.protocol.messages import (
    AgentCapabilities,
    AgentHello,
    AgentMessage,
    Commit,
    ErrorMessage,
    Input,
    InputAck,
    InputType,
    Patch,
    Ping,
    Presented,
    Render,
    RendererHello,
    StateMessage,
)
from arp.protocol.object_connection import ObjectEvent, RefusedMessage
from arp.protocol.object_conversation import MAIN, as_message
from arp.protocol.object_messages import (
    CompositorCreateSurfaceRequest,
    DisplayErrorRequest,
    InputAckRequest,
    InputRefuseRequest,
    SessionCreateRequest,
    SessionStateUpdateRequest,
    ShellGetOverlayRequest,
    ShellGetPopupRequest,
    ShellGetToplevelRequest,
    SurfaceCommitRequest,
    SurfaceDestroyRequest,
    SurfacePatchRequest,
    SurfaceRenderRequest,
    SurfaceTransferRequest,
)
from arp.protocol.object_renderer import ObjectRendererConnection, offers
from arp.protocol.object_wire import ObjectMessage
from arp.protocol.renderer_connection import RendererConnection

LIMITS = Limits(
    max_surfaces=100,
    max_components_per_commit=10_000,
    max_patch_ops=10_000,
    max_message_bytes=16 << 20,
)
"""What a screen takes: a snapshot of a long session is one commit."""

NOT_HERE = frozenset(("ping", "frame-ack"))
"""Features of the session dialect that mean nothing in this one: `sync` asks for a sign of life,
and every commit is acknowledged."""


class ObjectScreenConnection(RendererConnection):
    """Speaks the object dialect for one renderer on one session.

    Args:
        hello: What the renderer says of itself.
        encoding: Of all frames.
        now: Returns the time, in seconds of a clock that does not go back.
    """

    def __init__(self, hello: RendererHello, encoding: Encoding, now: Callable[[], float]) -> None:
        super().__init__(hello, encoding)
        self._now = now
        self._objects = self._new_objects()
        self._names: dict[int, str] = {}
        self._pending: set[str] = set()
        """Surfaces that were changed since their last commit."""
        self._serials: dict[int, str] = {}
        """The ids of inputs under way on this connection, by serial."""
        self._numbers: dict[int, str | None] = {}
        """The same by the number of their message."""

    def _new_objects(self) -> ObjectRendererConnection:
        capabilities = self._hello.capabilities
        features = [name for name in capabilities.features if name not in NOT_HERE]
        limits = {**msgspec.to_builtins(LIMITS), **msgspec.to_builtins(capabilities.limits)}
        offered = offers(capabilities.versions(), features, limits, has_conversation=True)
        return ObjectRendererConnection(self.encoding, LIMITS, offered, keeps_content=False)

    # -- out -------------------------------------------------------------------------------------

    def hello(self) -> bytes:
        """Return the first frame of a connection; what is pending of the one before is dropped."""
        super().hello()
        self._objects = self._new_objects()
        self._names.clear()
        self._pending.clear()
        self._serials.clear()
        self._numbers.clear()
        return encode([], self.encoding)

    def _completed(self, message: AgentMessage) -> list[AgentMessage]:
        """Return the message alone: in this dialect `create` of the draft names a session too."""
        return [message]

    def replies(self) -> list[bytes]:
        """Return the frames that answer what was received, to be sent before any other."""
        return self._objects.data_to_send()

    def input(
        self,
        input_type: InputType,
        data: JsonObject,
        *,
        input_id: str,
        source: str | None = None,
        surface: str = MAIN,
        edits: str | None = None,
    ) -> bytes:
        """As `RendererConnection.input`; an empty frame while there is no session."""
        super().input(
            input_type, data, input_id=input_id, source=source, surface=surface, edits=edits
        )
        return self._written(self.unacknowledged[input_id])

    def input_with_files(self, message: Input) -> bytes:
        """As `RendererConnection.input_with_files`; an empty frame while there is no surface."""
        return self._written(message)

    def resend(self) -> list[bytes]:
        """Return the frames of inputs without an answer that this connection has not sent yet."""
        sent = set(self._serials.values())
        waiting = [one for key, one in self.unacknowledged.items() if key not in sent]
        return [frame for one in waiting if (frame := self._written(one))]

    def _written(self, message: Input) -> bytes:
        surface_id = self._id_of(message.surface)
        if surface_id is None:
            return b""
        try:
            serial = self._objects.send_input(surface_id, message, self._now())
        except ArpError:
            return b""  # its surface is closed: the next connection sends it, and is told so
        self._serials[serial] = message.id or ""
        self._numbers[self._objects.objects.waiting_inputs[serial].serial_no] = message.id
        return join_frames(self._objects.data_to_send(), self.encoding)

    def _id_of(self, surface: str) -> int | None:
        found = (number for number, name in self._names.items() if name == surface)
        return next(found, next(iter(self._names), None))

    def ack(self, seq: int, presented: dict[str, Presented] | None = None) -> bytes:
        """Return nothing to send: each commit is acknowledged when it is applied."""
        return encode([], self.encoding)

    def pong(self, ping: Ping) -> bytes:
        """Return nothing to send: there are no pings in this dialect."""
        return encode([], self.encoding)

    # -- in --------------------------------------------------------------------------------------

    def receive(self, frame: bytes | str) -> list[AgentMessage]:
        """As `RendererConnection.receive`; `replies` has what is to be answered."""
        out: list[AgentMessage] = []
        for event in self._objects.each(frame, self._now()):
            out += self._event(event)
        return out

    def receive_json(self, frame: bytes) -> list[AgentMessage]:
        """Take a frame that came beside the connection, in the session dialect."""
        return self._apply_all(_BESIDE.decode(frame), len(frame))

    def _event(self, event: ObjectEvent) -> list[AgentMessage]:
        if isinstance(event, Failed):
            return [ErrorMessage(payload=ErrorPayload(event.reason, InvalidMessage.code))]
        if isinstance(event, RefusedMessage):
            self._desynchronise()
            error = event.error
            payload = ErrorPayload(error.message, int(error.code), error.detail)
            return [ErrorMessage(payload=payload)]
        shown = self._meant(event)
        out = self._apply_all([] if shown is None else [shown], 0)
        self._answer(event)
        return out

    def _meant(self, event: ObjectMessage) -> AgentMessage | None:
        """Return what a request means in the session dialect."""
        session_id, surface = self.session_id or "", self._names.get(event.object_id, MAIN)
        match event.payload:
            case SessionCreateRequest(metadata=metadata):
                return _agent_hello(metadata)
            case SessionStateUpdateRequest(state, seq):
                known = state if isinstance(state, dict) else {}
                return StateMessage(session_id=session_id, seq=seq, state=known)
            case InputAckRequest(serial, turn_id):
                input_id = self._serials.pop(serial, "")
                return InputAck(id=input_id, session_id=session_id, turn_id=turn_id)
            case InputRefuseRequest() as refused:
                payload = ErrorPayload(
                    refused.message,
                    refused.code,
                    refused.detail,
                    self._serials.pop(refused.serial, None),
                    refused.retryable,
                )
                return ErrorMessage(payload=payload, session_id=self.session_id)
            case DisplayErrorRequest(code=code, message=message, refused_seq=number):
                payload = ErrorPayload(message, code, None, self._numbers.pop(number or 0, None))
                return ErrorMessage(payload=payload, session_id=self.session_id)
            case SurfaceRenderRequest() as request:
                self._pending.add(surface)
                return Render(
                    session_id=session_id,
                    turn_id=request.turn_id,
                    surface=surface,
                    components=request.components,
                    tool_name=request.tool_name,
                    replace=request.replace,
                )
            case SurfacePatchRequest() as request:
                self._pending.add(surface)
                return Patch(
                    session_id=session_id,
                    turn_id=request.turn_id,
                    surface=surface,
                    ops=request.ops,
                )
            case SurfaceCommitRequest() as request:
                return self._commit(request, session_id, surface)
            case _ as request:
                return as_message(request, session_id, self._name_of)

    def _commit(
        self, request: SurfaceCommitRequest, session_id: str, surface: str
    ) -> Commit | None:
        is_answer = request.session_seq is None and not request.final
        if is_answer and surface not in self._pending:
            return None  # it only answers a `configure`
        self._pending.discard(surface)
        return Commit(
            session_id=session_id,
            seq=request.session_seq,
            turn_id=request.turn_id,
            surface=surface,
            final=request.final,
            usage=request.usage,
            at=request.at,
        )

    def _name_of(self, surface_id: int | None) -> str:
        return MAIN if surface_id is None else self._names.get(surface_id, MAIN)

    def _answer(self, event: ObjectMessage) -> None:
        """Answer a request that was applied."""
        match event.payload:
            case SessionCreateRequest(session_id):
                self._choose(session_id)
            case CompositorCreateSurfaceRequest(new_id, name):
                self._names[new_id] = name or str(new_id)
            case (
                ShellGetToplevelRequest(surface_id)
                | ShellGetPopupRequest(surface_id)
                | ShellGetOverlayRequest(surface_id)
            ):
                size = self._hello.viewport
                width, height = (size.width, size.height) if size is not None else (0, 0)
                self._objects.configure(surface_id, width, height, ["activated"])
            case SurfaceCommitRequest():
                self._objects.displayed(event.object_id)
            case SurfaceTransferRequest():
                self._objects.deny_transfer(event)
            case SurfaceDestroyRequest():
                self._pending.discard(self._names.pop(event.object_id, ""))
            case _:
                pass

    def _choose(self, proposed: str) -> None:
        """Name the session that this renderer was on, or take the one that is proposed."""
        hello, is_known = self._hello, self._next_epoch is not None
        state = {
            "epoch": self._next_epoch,
            "workflow": hello.workflow,
            "locale": hello.locale,
            "time_zone": hello.time_zone,
            "theme": hello.theme,
        }
        known = {name: value for name, value in state.items() if value is not None}
        if hello.session_id is None and not known and hello.token is None:
            return
        self._objects.resume(
            hello.session_id or proposed, self.seq if is_known else 0, known, hello.token
        )


_BESIDE = agent_decoder("json")


def _agent_hello(metadata: JsonObject) -> AgentHello | None:
    """Return what the agent side can do, as the metadata of a session say, if they do."""
    try:
        offered = msgspec.convert(metadata.get("capabilities"), AgentCapabilities)
    except msgspec.ValidationError:
        return None
    features = [name for name in offered.features if name not in NOT_HERE]
    return AgentHello(capabilities=msgspec.structs.replace(offered, features=features))
