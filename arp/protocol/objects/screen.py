"""A renderer of the object dialect that shows a conversation.

Theory of operation. For its caller this is a `RendererConnection`: one object that outlives many
connections and keeps the screen, the cursor and the unanswered inputs. Each connection has an
`ObjectRendererConnection` of its own; its requests are translated into messages of the session
dialect (`conversation`). This object also produces the answers that the protocol requires: the
`configure` of a new role, the `frame_ack` of each displayed commit, and `resumed`. `replies`
returns these frames, which must be sent before any other frame.

An agent is a plain agent if it has not bound `ArpConversation` when it names the session or creates
its first surface. `PlainAgent` translates its output into a conversation until it sends `opened`.
Each input is sent to a plain agent at most once.

In this dialect the renderer does not speak first: there is no first frame.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from arp.protocol.codec import Encoding, agent_decoder, join_frames
from arp.protocol.connection.agent_connection import ConnectionFailure
from arp.protocol.connection.renderer_connection import DRAFT_EPOCH, RendererConnection
from arp.protocol.draft_agent import CUT_OFF
from arp.protocol.errors import (
    NO_CODE,
    ArpError,
    ErrorPayload,
    InvalidMessage,
    InvalidMethod,
    InvalidPatch,
)
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
    SessionReady,
    StateMessage,
)
from arp.protocol.objects.connection import ObjectEvent, RefusedMessage
from arp.protocol.objects.conversation import MAIN, as_message
from arp.protocol.objects.messages import (
    CompositorCreateSurfaceRequest,
    DisplayErrorRequest,
    InputAckRequest,
    InputRefuseRequest,
    OverlaySetAnchorRequest,
    OverlaySetTimeoutRequest,
    SessionCreateRequest,
    SessionStateUpdateRequest,
    ShellGetOverlayRequest,
    ShellGetPopupRequest,
    ShellGetToplevelRequest,
    SurfaceCommitRequest,
    SurfaceDestroyRequest,
    SurfacePatchRequest,
    SurfaceRenderRequest,
    SurfaceSetTitleRequest,
    SurfaceTransferRequest,
    ToplevelSetFullscreenRequest,
    ToplevelSetTitleRequest,
)
from arp.protocol.objects.plain_agent import PlainAgent, moves_components
from arp.protocol.objects.renderer import ObjectRendererConnection, offers
from arp.protocol.objects.wire import ObjectMessage

TITLES = (SurfaceSetTitleRequest, ToplevelSetTitleRequest)

LIMITS = Limits(
    max_surfaces=100,
    max_components_per_commit=10_000,
    max_patch_ops=10_000,
    max_message_bytes=16 << 20,
)
"""Limits that this renderer announces. The snapshot of a long session is a single commit."""

NOT_HERE = frozenset(("ping", "frame-ack"))
"""Features of the session dialect that this dialect does not need.

`sync` replaces `ping`, and every commit is acknowledged.
"""


class ObjectScreenConnection(RendererConnection):
    """The renderer side of one session in the object dialect.

    Args:
        hello: Capabilities and preferences of the renderer.
        encoding: Encoding of all frames.
        now: Function that returns the time, in seconds of a monotonic clock.
        spare_id: Session id to use if neither the `hello` nor the agent side names one.
    """

    def __init__(
        self,
        hello: RendererHello,
        encoding: Encoding,
        now: Callable[[], float],
        spare_id: str = "draft",
    ) -> None:
        super().__init__(hello, encoding, spare_id)
        self._now = now
        self._objects = self._new_objects()
        self._names: dict[int, str] = {}
        self._pending: set[str] = set()
        """Names of surfaces with changes since their last commit."""
        self._serials: dict[int, str] = {}
        """Ids of unanswered inputs of this connection, by serial."""
        self._numbers: dict[int, str | None] = {}
        """Ids of inputs of this connection, by message number."""
        self._plain: PlainAgent | None = None
        """Translation of the agent side, if it is a plain agent."""
        self._is_plain = False
        """Whether the agent side turned out to be a plain agent on this connection."""
        self._sent_once: set[str] = set()
        """Ids of unanswered inputs that were sent on an earlier connection."""
        self._late: list[bytes] = []
        """Frames for the next `replies`, among them inputs that waited for a visible surface."""

    def _new_objects(self) -> ObjectRendererConnection:
        capabilities = self._hello.capabilities
        features = [name for name in capabilities.features if name not in NOT_HERE]
        limits = {**msgspec.to_builtins(LIMITS), **msgspec.to_builtins(capabilities.limits)}
        offered = offers(capabilities.versions(), features, limits, has_conversation=True)
        return ObjectRendererConnection(self.encoding, LIMITS, offered, keeps_content=False)

    # -- out -------------------------------------------------------------------------------------

    def hello(self) -> bytes:
        """Reset the state of the previous connection; return an empty frame."""
        super().hello()
        self.is_undecided = False  # this dialect has no `hello` that an agent may not understand
        self._sent_once |= self.unacknowledged.keys() & set(self._serials.values())
        self._is_plain = False
        self._objects = self._new_objects()
        self._names.clear()
        self._pending.clear()
        self._serials.clear()
        self._numbers.clear()
        return b""

    def _complete(self, message: AgentMessage) -> list[AgentMessage]:
        """Return the message unchanged: `PlainAgent` adds what a plain agent does not send."""
        if isinstance(message, SessionReady) and message.epoch != DRAFT_EPOCH:
            self._is_draft = self._is_plain = False
            self._plain = None
        return [message]

    def _echo_draft(self, message: Input, input_id: str) -> None:
        """Do nothing, because an input is shown only when the agent side has received it."""

    def replies(self) -> list[bytes]:
        """Return the frames that answer received messages; send them before any other frame."""
        late, self._late = self._late, []
        return [*late, *self._objects.data_to_send()]

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
        """Return the frame of an input, like the base class; empty if it cannot be sent now."""
        super().input(
            input_type, data, input_id=input_id, source=source, surface=surface, edits=edits
        )
        return self._send_input(self.unacknowledged[input_id])

    def input_with_files(self, message: Input) -> bytes:
        """Return the frame of an input with files; empty if it cannot be sent now."""
        return self._send_input(message)

    def resend(self) -> list[bytes]:
        """Return the frames of unanswered inputs that were not sent on this connection."""
        sent = set(self._serials.values())
        waiting = [one for key, one in self.unacknowledged.items() if key not in sent]
        return [frame for one in waiting if (frame := self._send_input(one))]

    def _send_input(self, message: Input) -> bytes:
        """Send an input on its surface; return the frame, or nothing if it cannot be sent now."""
        surface_id = self._id_of(message.surface)
        if surface_id is None:
            return b""
        input_id = message.id or ""
        try:
            serial = self._objects.send_input(surface_id, message, self._now())
        except InvalidMethod as error:
            self._made += self._apply_new(self._refused_input(input_id, error))
            return b""
        except ArpError:
            # The surface is closed. The next connection sends the input again and gets the error.
            return b""
        self._serials[serial] = input_id
        self._numbers[self._objects.objects.waiting_inputs[serial].serial_no] = message.id
        if self._is_plain and self._plain is not None:
            self._plain.sent(message, input_id)
        return join_frames(self._objects.data_to_send(), self.encoding)

    def _refused_input(self, input_id: str, error: ArpError) -> list[AgentMessage]:
        """Return the error for an input to an agent side that has not bound `ArpInput`."""
        payload = ErrorPayload(f"The agent takes no input: {error.message}", int(error.code))
        return [ErrorMessage(payload=msgspec.structs.replace(payload, id=input_id))]

    def _id_of(self, surface: str) -> int | None:
        """Return the id of a surface, else of the first surface; `None` if none can be used."""
        found = [number for number, name in self._names.items() if name == surface]
        found += list(self._names)[:1]
        if self._is_plain and self._plain is not None:  # a surface without a role is invisible
            found = [one for one in found if self._plain.has_role(self._names[one])]
        return found[0] if found else None

    def ack(self, seq: int, presented: dict[str, Presented] | None = None) -> bytes:
        """Return an empty frame, because each commit is acknowledged when it is applied."""
        return b""

    def pong(self, ping: Ping) -> bytes:
        """Return an empty frame, because this dialect has no pings."""
        return b""

    # -- in --------------------------------------------------------------------------------------

    def receive(self, frame: bytes | str) -> list[AgentMessage]:
        """Apply one frame and return its messages; the caller must then send `replies`."""
        out: list[AgentMessage] = []
        for event in self._objects.each(frame, self._now()):
            out += self._apply_event(event)
        return out

    def receive_json(self, frame: bytes) -> list[AgentMessage]:
        """Apply a frame of the session dialect, such as the answer to an HTTP request."""
        return self._apply_all(_SESSION_DECODER.decode(frame), len(frame))

    def _apply_event(self, event: ObjectEvent) -> list[AgentMessage]:
        if isinstance(event, ConnectionFailure):
            return [ErrorMessage(payload=ErrorPayload(event.reason, InvalidMessage.code))]
        if isinstance(event, RefusedMessage):
            if self._is_plain:
                return []  # the agent gets the error, and the content is unchanged
            self._desynchronise()
            error = event.error
            payload = ErrorPayload(error.message, int(error.code), error.detail)
            return [ErrorMessage(payload=payload)]
        begun = self._apply_new(self._begin_plain(event))
        if self._is_plain and self._plain is not None:
            out = [*begun, *self._apply_new(self._plain_messages(event, self._plain))]
        else:
            shown = self._as_message(event)
            out = self._apply_all([] if shown is None else [shown], 0)
        self._answer(event)
        return [*out, *self.echoes()] if self._is_plain else out

    def _begin_plain(self, event: ObjectMessage) -> list[AgentMessage]:
        """Return the messages that open the session of a plain agent, when it is recognised."""
        if self._is_plain or not isinstance(
            event.payload, SessionCreateRequest | CompositorCreateSurfaceRequest
        ):
            return []
        bound = (one.interface for one in self._objects.objects.entries.values())
        if "ArpConversation" in bound:
            return []
        proposed = getattr(event.payload, "session_id", None)
        self._is_plain = self._is_draft = True
        self._objects.keep_content()
        is_new = self._plain is None
        self._plain = self._plain or PlainAgent()
        ready = SessionReady(
            session_id=self.session_id or proposed or self._spare_id,
            epoch=DRAFT_EPOCH,
            seq=0,
            resume="new" if is_new else "replay",
        )
        # An input that the agent may have received on an earlier connection is reported as lost.
        # Sent again, it could be carried out twice.
        lost, self._sent_once = self._sent_once & self.unacknowledged.keys(), set()
        cut_off = [ErrorMessage(payload=ErrorPayload(CUT_OFF, NO_CODE, id=one)) for one in lost]
        hello = AgentHello(capabilities=AgentCapabilities([]))
        return [hello, *cut_off, ready, *self._plain.connected()]

    def _plain_messages(self, event: ObjectMessage, plain: PlainAgent) -> list[AgentMessage]:
        """Return a request of a plain agent as messages of the session dialect."""
        match event.payload:
            case SessionCreateRequest():
                return []
            case InputAckRequest(serial):
                return plain.acknowledged(self._serials.pop(serial, ""))
            case InputRefuseRequest() | DisplayErrorRequest():
                refused = self._as_message(event)
                assert isinstance(refused, ErrorMessage)
                return plain.refused(refused.payload.id, refused.payload)
            case SurfaceRenderRequest() | SurfacePatchRequest():
                return []  # applied by its commit
            case SurfaceCommitRequest(final=final):
                name = self._names[event.object_id]
                if not plain.has_role(name):
                    return []
                changes = self._objects.applied(event.object_id)
                if moves_components(changes):
                    changes = [self._whole(event.object_id)]
                return plain.committed(name, changes, final=final)
            case SurfaceDestroyRequest():
                return plain.destroyed(self._names[event.object_id])
            case _:
                return self._described(event, plain)

    def _described(self, event: ObjectMessage, plain: PlainAgent) -> list[AgentMessage]:
        """Return the messages for the metadata of a surface.

        With a role the surface becomes visible, so its earlier commits are shown too.
        """
        request = event.payload
        match request:
            case (
                ShellGetToplevelRequest(surface_id)
                | ShellGetPopupRequest(surface_id)
                | ShellGetOverlayRequest(surface_id)
            ):
                name = self._names[surface_id]
                out = plain.described(name, request, self._name_of)
                if self._objects.content(surface_id):
                    out += plain.committed(name, [self._whole(surface_id)], final=False)
                return out
            case (
                SurfaceSetTitleRequest()
                | ToplevelSetTitleRequest()
                | OverlaySetAnchorRequest()
                | OverlaySetTimeoutRequest()
            ):
                name = self._names[self._objects.objects.surface_of(event.object_id)]
                out = plain.described(name, request, self._name_of)
                if name == MAIN and isinstance(request, TITLES):
                    about = AgentCapabilities([], title=request.title)
                    out.append(AgentHello(capabilities=about))
                return out
            case _:
                shown = self._as_message(event)
                return [] if shown is None else [shown]

    def _whole(self, surface_id: int) -> SurfaceRenderRequest:
        return SurfaceRenderRequest(self._objects.content(surface_id), replace=True)

    def _as_message(self, event: ObjectMessage) -> AgentMessage | None:
        """Return the session-dialect message for a request; `None` if there is no such message."""
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
            # This commit only answers a `configure`. A `Commit` without `seq` would invalidate the
            # cursor.
            return None
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
                self._names[new_id] = self._new_name(new_id, name)
            case (
                ShellGetToplevelRequest(surface_id)
                | ShellGetPopupRequest(surface_id)
                | ShellGetOverlayRequest(surface_id)
            ):
                self._configure(surface_id)
                if self._is_plain:
                    self._objects.displayed(surface_id)
                    # One message per frame: the v0.1 draft has no arrays.
                    self._late += self._objects.data_to_send()
                    self._late += self.resend()
            case ToplevelSetFullscreenRequest():
                # Fullscreen is not granted: the answer repeats the current size and states.
                self._configure(self._objects.objects.surface_of(event.object_id))
            case SurfaceCommitRequest():
                self._acknowledge(event)
            case SurfaceTransferRequest():
                self._objects.deny_transfer(event)
            case SurfaceDestroyRequest():
                self._pending.discard(self._names.pop(event.object_id, ""))
            case _:
                pass

    def _new_name(self, new_id: int, name: str | None) -> str:
        """Return the name of a new surface; the first surface of a plain agent is `main`."""
        if not self._is_plain:
            return name or str(new_id)
        if not self._names:
            return MAIN
        return name if name and name not in self._names.values() else str(new_id)

    def _configure(self, surface_id: int) -> None:
        size = self._hello.viewport
        width, height = (size.width, size.height) if size is not None else (0, 0)
        self._objects.configure(surface_id, width, height, ["activated"])

    def _acknowledge(self, commit: ObjectMessage) -> None:
        """Acknowledge a commit if it is displayed; refuse it if it could not be applied."""
        surface_id = commit.object_id
        if self._is_plain and self._plain is not None:
            if self._plain.has_role(self._names[surface_id]):
                self._objects.displayed(surface_id)
        elif self.is_desynchronised:
            wrong = InvalidPatch("commit: it does not fit the surface; nothing of it is shown")
            self._objects.refuse(commit, wrong)
        else:
            self._objects.displayed(surface_id)

    def _choose(self, proposed: str) -> None:
        """Resume the session of this renderer, or accept the proposed one."""
        hello, is_known = self._hello, self._next_epoch is not None
        if self._is_plain:
            if self.session_id != proposed or hello.token is not None:
                self._objects.resume(self.session_id or proposed, 0, None, hello.token)
            return
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


_SESSION_DECODER = agent_decoder("json")


def _agent_hello(metadata: JsonObject) -> AgentHello | None:
    """Return the capabilities in the metadata of a session as a `hello`, if there are any."""
    try:
        offered = msgspec.convert(metadata.get("capabilities"), AgentCapabilities)
    except msgspec.ValidationError:
        return None
    features = [name for name in offered.features if name not in NOT_HERE]
    return AgentHello(capabilities=msgspec.structs.replace(offered, features=features))
