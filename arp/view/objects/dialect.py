"""A renderer of the object dialect, presented to the hub as a renderer of the session dialect.

Theory of operation. The hub speaks the session dialect. This object translates the messages of the
hub into requests on the objects of one connection, and the events of the renderer into messages of
the session dialect.

Handshake: get the registry; `sync`, to know that every global was announced; bind the interfaces;
`ArpSession.create`; a second `sync`. Until the renderer answers the second `sync`, it may choose
another session with `resumed`. Then this object sends `hello` to the hub on behalf of the renderer.

Content: a renderer that offers `ArpConversation` receives turns, tools and text through it, and the
components of surfaces unchanged. For other renderers everything becomes components (`flat`).

Pacing: a surface with the maximum of pending commits gets no further commit; messages are queued
here in order. If more than `MAX_WAITING_COMMITS` commits are queued, the renderer counts as
lagging: the hub merges what follows into a catch-up when the renderer has displayed the queue.

Suspended surfaces: nothing is sent until a turn ends or the surface becomes visible again.
`FlatContent` merges changes by itself. A suspended conversation counts as lagging; the hub sends
one catch-up at the end of a turn (`let_through`).

Changed offer: if the renderer adds or withdraws globals later, this object sends `hello` to the hub
again and discards its queue, because the hub answers with a snapshot.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from arp.protocol.codec import Encoding, agent_decoder
from arp.protocol.connection.agent_connection import AgentEvent, ConnectionFailure
from arp.protocol.errors import ArpError, ErrorCode, ErrorPayload, TransferDenied
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.limits import Limits, RendererLimits
from arp.protocol.messages import (
    AgentHello,
    AgentMessage,
    Commit,
    ErrorMessage,
    Input,
    InputAck,
    InputType,
    Patch,
    Ping,
    Pong,
    Render,
    RendererCapabilities,
    RendererHello,
    Resume,
    SessionReady,
    StateMessage,
    SurfaceInfo,
    SurfaceMessage,
)
from arp.protocol.objects.agent import ObjectAgentConnection
from arp.protocol.objects.connection import ObjectEvent
from arp.protocol.objects.conversation import MAIN, as_request
from arp.protocol.objects.messages import (
    CallbackDoneEvent,
    DisplayErrorEvent,
    DisplayErrorRequest,
    InputAckRequest,
    InputFocusEvent,
    InputInputEvent,
    InputRefuseRequest,
    InputUnfocusEvent,
    OverlayConfigureEvent,
    OverlayDismissedEvent,
    OverlaySetAnchorRequest,
    OverlaySetTimeoutRequest,
    PopupConfigureEvent,
    PopupPopupDoneEvent,
    RegistryGlobalEvent,
    RegistryGlobalRemoveEvent,
    SessionResumedEvent,
    SessionStateUpdateRequest,
    SurfaceClosedEvent,
    SurfaceCommitRequest,
    SurfaceConfigureEvent,
    SurfaceFrameAckEvent,
    SurfacePatchRequest,
    SurfaceRenderRequest,
    SurfaceSetTitleRequest,
    SurfaceSurfaceAcquiredEvent,
    SurfaceTransferredEvent,
    SurfaceTransferRequest,
    ToplevelCloseEvent,
    ToplevelConfigureEvent,
)
from arp.protocol.objects.model import SERIAL_AGE_S, component_count
from arp.protocol.objects.states import SUSPENDED, CommitFlow, RoleState, SurfaceLife
from arp.protocol.objects.wire import DISPLAY, ObjectEnvelope, ObjectMessage, RefusedEnvelope
from arp.view.frames import pack
from arp.view.objects.flat import FlatContent

NEEDED: Final = ("ArpCompositor", "ArpShell", "ArpInput", "ArpSession")
"""Interfaces that a renderer must offer."""

IMPLIED: Final = frozenset(("input", "streaming", "resume"))
"""Features of every renderer that speaks this dialect."""

FOREIGN: Final = frozenset(("batch", "ping", "frame-ack"))
"""Features of the connection, which the hub must not use: arrays consist of requests here, `sync`
replaces `ping`, and every commit is acknowledged."""

MAX_WAITING_COMMITS: Final = 32
"""Queued commits after which a renderer counts as lagging: half a second of a busy agent."""

MAX_KNOWN_SERIALS: Final = 256
"""Accepted inputs that are remembered, because a popup may name their serial."""

SERIAL_MARGIN_S: Final = 1.0
"""Safety margin below `SERIAL_AGE_S`, because the request needs time to reach the renderer."""

ENVELOPE_BYTES: Final = 512
"""Bytes that the envelope and the optional fields of a request add to a message."""

CLOSE: Final = "arp.close"
"""Action that closes a surface in the session dialect."""

_AGENT_MESSAGES = agent_decoder("json")


class _KnownInput(NamedTuple):
    serial: int
    at_s: float
    number: int
    """Number of its message."""


class SurfaceOwner(Protocol):
    """The session that owns the surfaces; it receives the outcome of transfers."""

    def acquired(self, surface_id: int, given: SurfaceSurfaceAcquiredEvent) -> str | None:
        """Accept a surface of another agent; return its name in the session.

        When the surface is durable in the session, call `ObjectDialect.accept` with the id. `None`
        means that the session accepted the surface on an earlier connection.

        Raises:
            ArpError: The session does not accept it.
        """
        ...

    def transferred(self, name: str) -> None:
        """Record that another agent has accepted a surface of this session."""

    def denied(self, name: str, error: TransferDenied) -> None:
        """Record that the transfer of a surface was denied."""

    def unanswered(self, name: str) -> None:
        """Record that the outcome of a transfer is unknown."""

    def desynchronised(self) -> None:
        """Send a snapshot, because the renderer's content differs from that of the session."""


class _NoOwner:
    """Placeholder while there is no session. It accepts no surfaces."""

    def acquired(self, surface_id: int, given: SurfaceSurfaceAcquiredEvent) -> str | None:
        raise TransferDenied("there is no session yet")

    def transferred(self, name: str) -> None: ...

    def denied(self, name: str, error: TransferDenied) -> None: ...

    def unanswered(self, name: str) -> None: ...

    def desynchronised(self) -> None: ...


class ObjectDialect:
    """The translation between the hub and one renderer of the object dialect.

    Args:
        encoding: Encoding of the frames.
        limits: Limits of the agent side.
        session_id: Id to propose for a new session.
        about: The `hello` of the agent side, for the metadata of the session.
        key: Prefix of generated input ids; unique among connections.
    """

    def __init__(
        self, encoding: Encoding, limits: Limits, session_id: str, about: AgentHello, key: str
    ) -> None:
        self.connection = ObjectAgentConnection(encoding, limits)
        self.proposed = session_id
        self.is_open = False
        """Whether `hello` was sent to the hub."""
        self.owner: SurfaceOwner = _NoOwner()
        self._leaving: dict[str, SurfaceTransferRequest] = {}
        """Transfer requests that wait for the queued messages of their surface, by surface."""
        self._transfers: dict[str, int] = {}
        """Message number of the open transfer request, by surface."""
        self._arrived: dict[int, str | None] = {}
        """Acquired surfaces that are not durable in the session yet: id → name. `None` means that
        the session accepted the surface on an earlier connection."""
        self._gone: set[str] = set()
        """Surfaces transferred away or refused by the renderer, until the session closes them."""
        self._about = about
        self._key = key
        self._handshake: int | None = None
        """Id of the callback that the handshake waits for."""
        self._sent_hello: RendererHello | None = None
        """The last `hello` sent to the hub."""
        self._awaits_snapshot = False
        """Whether messages before the next `session` are for an outdated offer."""
        self._has_ended = False
        """Whether the user has closed the conversation."""
        self._lets_through = False
        """Whether the next commit is sent to a suspended conversation, because a turn has ended."""
        self._unseen: set[str] = set()
        """Surfaces of the renderer that the current snapshot has not named yet."""
        self._due: set[str] = set()
        """Suspended surfaces that get a commit, because a turn has ended."""
        self._resumed: SessionResumedEvent | None = None
        self._flat: FlatContent | None = None
        """Content as components; `None` for a renderer with `ArpConversation`."""
        self._takes_arrays = False
        self._queue: deque[tuple[AgentMessage, int]] = deque()
        """Messages to send, with their sizes."""
        self._queued_bytes = 0
        self._queued_commits = 0
        self._pending: dict[str, list[Render | Patch]] = {}
        """Changes for the next commit, by surface."""
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._infos: dict[str, SurfaceInfo] = {}
        self._inputs: OrderedDict[str, _KnownInput] = OrderedDict()
        """Unanswered inputs, by id."""
        self._serials: OrderedDict[int, _KnownInput] = OrderedDict()
        """Accepted inputs, by their position in the log."""
        self._now_s = 0.0

    # -- for the outbox ----------------------------------------------------------------------------

    @property
    def waiting_bytes(self) -> int:
        """Bytes of queued messages."""
        return self._queued_bytes

    @property
    def is_behind(self) -> bool:
        """Whether the renderer is lagging, so that further messages should be merged."""
        if self._flat is None and self._is_suspended(MAIN) and not self._lets_through:
            return True
        return self._queued_commits > MAX_WAITING_COMMITS

    def let_through(self) -> bool:
        """Allow one catch-up for a suspended conversation; return whether there is one."""
        self._lets_through = self._flat is None and self._is_suspended(MAIN)
        return self._lets_through

    def _is_suspended(self, name: str) -> bool:
        """Return whether a surface is invisible now (docs/protocol.md, O16)."""
        entry = self.connection.objects.entries.get(self._ids.get(name, -1))
        return entry is not None and entry.surface is not None and SUSPENDED in entry.surface.states

    def data_to_send(self) -> list[bytes]:
        """Dequeue the frames to send, packed into arrays if the renderer accepts them."""
        frames = self.connection.data_to_send()
        if len(frames) < 2 or not self._takes_arrays:
            return frames
        most = self.connection.objects.limits.max_message_bytes
        return pack(frames, self.connection.encoding, most)

    # -- handshake ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin the handshake."""
        self.connection.get_registry()
        self._handshake = self.connection.sync()

    def _advance_handshake(self, callback: int) -> list[AgentEvent]:
        """Continue the handshake after a `sync`: bind, or send `hello` to the hub."""
        if callback != self._handshake:
            return []
        self._handshake = None
        if self.connection.bound:  # after the second `sync`
            self.is_open = True
            self._sent_hello = self._hello()
            return [self._sent_hello]
        missing = [one for one in NEEDED if self.connection.objects.offered(one) is None]
        if missing:
            problem = f"the renderer does not offer {', '.join(missing)}"
            payload = DisplayErrorRequest(DISPLAY, int(ErrorCode.INVALID_OBJECT), problem)
            self.connection.send(DISPLAY, payload)
            return [ConnectionFailure(1002, problem)]
        self._takes_arrays = self.connection.objects.offered("feature:batch") is not None
        for interface in NEEDED:
            self.connection.bind(interface)
        if self.connection.objects.offered("ArpConversation") is not None:
            self.connection.bind("ArpConversation")
        else:
            self._flat = FlatContent(self.connection, self._features())
        metadata = {"capabilities": msgspec.to_builtins(self._about.capabilities)}
        self.connection.create_session(self.proposed, metadata)
        self._handshake = self.connection.sync()
        return []

    def _features(self) -> frozenset[str]:
        found = (one.interface for one in self.connection.objects.globals.values())
        named = {name.removeprefix("feature:") for name in found if name.startswith("feature:")}
        return frozenset((named | IMPLIED) - FOREIGN)

    def _hello(self) -> RendererHello:
        """Return the `hello` that the renderer would send in the session dialect."""
        offered = self.connection.objects.globals.values()
        components = {
            one.interface.removeprefix("component:"): one.version
            for one in offered
            if one.interface.startswith("component:")
        }
        values = {
            one.interface.removeprefix("limit:"): one.value
            for one in offered
            if one.interface.startswith("limit:")
        }
        chosen = self._resumed
        state = chosen.state if chosen is not None and isinstance(chosen.state, dict) else {}
        return RendererHello(
            capabilities=RendererCapabilities(
                components, sorted(self._features()), _renderer_limits(values)
            ),
            session_id=chosen.session_id if chosen is not None else self.proposed,
            resume=self._resume(state),
            token=chosen.token if chosen is not None else None,
            workflow=_text(state.get("workflow"), 256),
            locale=_text(state.get("locale"), 64),
            time_zone=_text(state.get("time_zone"), 64),
            theme=_text(state.get("theme"), 64),
        )

    def _resume(self, state: JsonObject) -> Resume | None:
        epoch, chosen = state.get("epoch"), self._resumed
        # Without `ArpConversation` all content is in surfaces, and these ended with the connection.
        if chosen is None or not isinstance(epoch, str) or self._flat is not None:
            return None
        return Resume(epoch, chosen.last_commit_seq)

    # -- in ----------------------------------------------------------------------------------------

    def receive(
        self, frame: bytes | str | Sequence[ObjectEnvelope | RefusedEnvelope], now_s: float
    ) -> list[AgentEvent]:
        """Apply one frame of the renderer; return its events for the hub. Never raises."""
        self._now_s = now_s
        if isinstance(frame, bytes | str):
            events = self.connection.receive(frame, now_s)
        else:
            events = self.connection.receive_parsed(frame, now_s)
        out = [for_hub for event in events for for_hub in self._apply_event(event)]
        changed = any(isinstance(one, ObjectMessage) and _changes_offer(one) for one in events)
        return [*out, *self._update_offer()] if changed and self.is_open else out

    def _update_offer(self) -> list[AgentEvent]:
        """Send `hello` to the hub again if the offer of the renderer has changed."""
        hello = msgspec.structs.replace(self._hello(), resume=None)
        known = self._sent_hello
        self._takes_arrays = self.connection.objects.offered("feature:batch") is not None
        if known is None or hello.capabilities == known.capabilities:
            return []
        self._sent_hello = hello
        if self._flat is not None:
            self._flat.appends = "patch-append" in self._features()
        self._awaits_snapshot = True
        # The queue was made for the old offer. The snapshot that follows replaces it, except for
        # messages that no snapshot repeats.
        waiting, self._queue = self._queue, deque()
        self._queued_bytes = self._queued_commits = 0
        for message, size in waiting:
            if _is_kept(message):
                self._queue.append((message, size))
                self._queued_bytes += size
        self._pending.clear()
        return [hello]

    def _apply_event(self, event: ObjectEvent) -> list[AgentEvent]:
        if isinstance(event, ConnectionFailure):
            return [event]
        if not isinstance(event, ObjectMessage):
            return []  # refused; the connection has answered with the error
        object_id = event.object_id
        match event.payload:
            case CallbackDoneEvent():
                return self._advance_handshake(object_id)
            case SessionResumedEvent() as chosen:
                self._resumed = chosen
            case InputInputEvent() as given:
                return [self._input(given, event.serial_no)]
            case InputFocusEvent(surface_id):
                return self._silent_input("focus", {}, surface_id)
            case InputUnfocusEvent(surface_id):
                return self._silent_input("unfocus", {}, surface_id)
            case _:
                return self._surface_event(object_id, event)
        return []

    def _surface_event(self, object_id: int, event: ObjectMessage) -> list[AgentEvent]:
        match event.payload:
            case SurfaceFrameAckEvent():
                self._send_queued()  # there may be room for a commit now
            case DisplayErrorEvent() as error:
                failed = self._drop_refused()
                self._send_queued()
                self._deny_transfer(error)
                return failed
            case SurfaceTransferredEvent():
                self._complete_transfer(object_id)
            case SurfaceSurfaceAcquiredEvent() as acquired:
                self._acquire(object_id, acquired, event.serial_no)
            case (
                SurfaceConfigureEvent()
                | ToplevelConfigureEvent()
                | PopupConfigureEvent()
                | OverlayConfigureEvent()
            ) as size:
                return self._resize(self.connection.objects.surface_of(object_id), size)
            case (
                SurfaceClosedEvent()
                | ToplevelCloseEvent()
                | PopupPopupDoneEvent()
                | OverlayDismissedEvent()
            ):
                return self._close(self.connection.objects.surface_of(object_id))
            case _:
                pass
        return []

    def _input(self, given: InputInputEvent, number: int) -> Input:
        input_id = given.input_id or f"{self._key}.{given.serial}"
        self._inputs[input_id] = _KnownInput(given.serial, self._now_s, number)
        return Input(
            input_type=given.type,
            data=given.data,
            source_component=given.source_component,
            surface=self._names.get(given.surface_id, MAIN),
            id=input_id,
            edits=given.edits,
        )

    def _silent_input(
        self, input_type: InputType, data: JsonObject, surface_id: int
    ) -> list[AgentEvent]:
        """Return an input without id, which is not acknowledged."""
        return [Input(input_type=input_type, data=data, surface=self._names[surface_id])]

    def _resize(
        self,
        surface_id: int,
        size: (
            SurfaceConfigureEvent
            | ToplevelConfigureEvent
            | PopupConfigureEvent
            | OverlayConfigureEvent
        ),
    ) -> list[AgentEvent]:
        self._send_queued()  # a surface that is visible again may get its commits now
        bounds = size.bounds if isinstance(size, OverlayConfigureEvent) else size
        data: JsonObject = {
            "width": min(bounds.width, MAX_LENGTH),
            "height": min(bounds.height, MAX_LENGTH),
        }
        if isinstance(size, SurfaceConfigureEvent | ToplevelConfigureEvent) and size.states:
            data["states"] = list(size.states)
        return self._silent_input("resize", data, surface_id)

    def _answer_configures(self) -> None:
        """Answer each unanswered `configure` with an empty commit, if one may be sent now."""
        for surface_id, surface in self.connection.objects.surfaces.items():
            owes = surface.life in (SurfaceLife.CONFIGURED, SurfaceLife.RECONFIGURED)
            if owes and surface.flow != CommitFlow.FULL:
                self.connection.send(surface_id, SurfaceCommitRequest())

    def _close(self, surface_id: int) -> list[AgentEvent]:
        name = self._names.get(surface_id)
        if name == MAIN:
            self._destroy_all()
            return [ConnectionFailure(1000, "the user closed the surface")]
        return self._silent_input("action", {"action": CLOSE}, surface_id)

    def _destroy_all(self) -> None:
        """Destroy all surfaces, newest first, because the user has closed the conversation."""
        self._has_ended = True
        self._queue.clear()
        self._queued_bytes = self._queued_commits = 0
        for name in list(reversed(self._ids)):
            self._remove(name)

    def _drop_refused(self) -> list[AgentEvent]:
        """Forget refused surfaces; make a surface with a refused role a toplevel.

        A renderer refuses a popup or an overlay if the input that it answers is too old. Shown as a
        toplevel, its content is not lost.
        """
        for name, surface_id in list(self._ids.items()):
            if surface_id in self.connection.objects.entries:
                has_role = self.connection.objects.surface(surface_id).role != RoleState.NONE
                # An acquired surface has no role before `accept`, so none was refused.
                if not has_role and surface_id not in self._arrived:
                    with suppress(ArpError):  # the user has closed it
                        self.connection.get_toplevel(surface_id)
                continue
            if name == MAIN:
                return [
                    ConnectionFailure(1002, "the renderer refused the surface of the conversation")
                ]
            del self._names[surface_id]
            self._forget(name)
            self._gone.add(name)
        return []

    # -- transfers of surfaces to and from other agents --------------------------------------------

    def hand_over(self, name: str, request: SurfaceTransferRequest) -> None:
        """Ask the renderer to transfer a surface to the agent of another session.

        The request is sent after all queued messages of the surface; `owner` gets the outcome.

        Raises:
            TransferDenied: The renderer does not show the surface, or a transfer is open already.
        """
        if name == MAIN or name not in self._ids:
            raise TransferDenied(f"this renderer does not show {name!r:.80}", detail=name)
        if name in self._leaving or name in self._transfers:
            raise TransferDenied(f"surface {name!r:.80} is being transferred already", detail=name)
        self._leaving[name] = request
        self._send_queued()

    def _send_transfers(self) -> None:
        """Send the transfer requests of surfaces without queued messages.

        The new owner gets the content that the renderer shows, so it must be complete.
        """
        for name in [name for name in self._leaving if not self._has_queued(name)]:
            request = self._leaving.pop(name)
            surface_id = self._ids[name]
            try:
                self.connection.send(surface_id, request)
            except ArpError as error:
                self.owner.denied(name, TransferDenied(error.message, detail=name))
                continue
            number = self.connection.objects.surface(surface_id).transfer
            assert number is not None  # the request was just applied
            self._transfers[name] = number

    def _has_queued(self, name: str) -> bool:
        is_dirty = self._flat is not None and name in self._flat.changed()
        return is_dirty or any(
            getattr(message, "surface", None) == name for message, _ in self._queue
        )

    def _deny_transfer(self, error: DisplayErrorEvent) -> None:
        """Report an error to the owner if it answers a transfer request."""
        for name, number in self._transfers.items():
            if error.refused_seq == number:
                del self._transfers[name]
                # The connection to the other agent ended before its answer, so the surface may be
                # there.
                if error.code == ErrorCode.BUSY:
                    self.owner.unanswered(name)
                else:
                    self.owner.denied(name, TransferDenied(error.message, detail=name))
                break

    def _complete_transfer(self, surface_id: int) -> None:
        name = self._names.pop(surface_id)
        self._transfers.pop(name, None)
        self._forget(name)
        self._gone.add(name)
        self.owner.transferred(name)

    def _acquire(
        self, surface_id: int, given: SurfaceSurfaceAcquiredEvent, number: int | None
    ) -> None:
        try:
            if not self.is_open:
                raise TransferDenied("there is no session yet")
            name = self.owner.acquired(surface_id, given)
        except ArpError as error:
            refusal = DisplayErrorRequest(surface_id, int(error.code), error.message, number)
            self.connection.send(DISPLAY, refusal)  # the error ends the surface
            return
        self._arrived[surface_id] = name
        if name is not None:
            self._ids[name], self._names[surface_id] = surface_id, name
            self._infos[name] = SurfaceInfo(title=given.title or "")

    def accept(self, surface_id: int) -> None:
        """Confirm an acquired surface to the renderer, after the session has stored it durably.

        The surface is confirmed by giving it a role (docs/protocol.md, O27). A second call does
        nothing.
        """
        if surface_id not in self._arrived:
            return
        name = self._arrived.pop(surface_id)
        try:
            self.connection.get_toplevel(surface_id)
        except ArpError:
            return  # the user has closed it meanwhile; the session gets that as an input
        if name is None:
            # The session accepted it on an earlier connection. It is shown under another id, or was
            # closed since: this copy is not needed.
            self.connection.destroy(surface_id)
        elif self._flat is None:
            # The session sends its own copy of the content, with new component ids.
            self.connection.send(surface_id, SurfaceRenderRequest([], replace=True))

    # -- out ---------------------------------------------------------------------------------------

    def show(self, frames: Iterable[bytes], now_s: float) -> None:
        """Queue frames of the hub for this renderer, and send what may be sent now.

        Args:
            frames: JSON frames of the session dialect.
            now_s: The time.
        """
        self._now_s = now_s
        if self._has_ended:
            return
        for frame in frames:
            for message in _AGENT_MESSAGES.decode(frame):
                # Until the next `session`, the hub's messages are made for the old offer.
                self._awaits_snapshot &= not isinstance(message, SessionReady)
                if self._awaits_snapshot and not _is_kept(message):
                    continue
                self._lets_through &= not isinstance(message, Commit)
                self._queue.append((message, len(frame)))
                self._queued_commits += isinstance(message, Commit)
                self._queued_bytes += len(frame)
        self._send_queued()

    def _send_queued(self) -> None:
        """Send queued messages until a commit has to wait.

        Then send flat content, answers to `configure` events, and transfer requests.
        """
        while self._queue and self._try_send(self._queue[0][0]):
            message, size = self._queue.popleft()
            self._queued_bytes -= size
            self._queued_commits -= isinstance(message, Commit)
        if self._flat is not None and not self._awaits_snapshot:
            self._flush()
        self._answer_configures()
        if self._leaving:
            self._send_transfers()

    def _try_send(self, message: AgentMessage) -> bool:
        """Send a message; return whether it may be removed from the queue.

        A message that does not fit the renderer is reported to it and removed: it would block the
        queue for ever.
        """
        try:
            return self._send(message)
        except ArpError as error:
            self._report(error)
            return True

    def _send(self, message: AgentMessage) -> bool:
        """Send a message as requests; return `False` if a commit has to wait."""
        if (self._arrived or self._gone) and self._is_late(message):
            return True
        self._unseen.discard(getattr(message, "surface", None) or MAIN)
        # The commit with a `seq` ends a snapshot. Surfaces that it has not named are closed.
        if self._unseen and isinstance(message, Commit) and message.seq is not None:
            self._remove_unseen()
        match message:
            case Commit() if self._flat is None:
                return self._commit(message)
            case Render() | Patch() if self._flat is None:
                self._pending.setdefault(message.surface, []).append(message)
            case AgentHello() | Ping() | Pong():
                pass
            case InputAck():
                self._acknowledge(message)
            case ErrorMessage(payload=payload) if payload.id is not None:
                self._refuse(payload)
            case StateMessage():
                request = SessionStateUpdateRequest(message.state, message.seq)
                self.connection.send(self.connection.bound["ArpSession"], request)
            case SurfaceMessage():
                self._surface(message)
            # There is no conversation yet that could show the error.
            case ErrorMessage() if not self.is_open or not self._ids:
                self._send_error(message.payload)
            case _:
                if isinstance(message, SessionReady):
                    self._open_session(message)
                self._send_conversation(message)
        return True

    def _is_late(self, message: AgentMessage) -> bool:
        """Return whether a message is for a surface that is gone.

        A message for an acquired surface shows that the surface is durable in the session, so the
        surface is confirmed first.
        """
        name: str | None = getattr(message, "surface", None)
        if name is not None and name in self._arrived.values():
            self.accept(self._ids[name])
        if name not in self._gone:
            return False
        # The session may use the name again after it has closed the surface.
        if not (isinstance(message, SurfaceMessage) and message.closed is not None):
            return True
        self._gone.discard(name)
        return False

    def _open_session(self, ready: SessionReady) -> None:
        self._pending.clear()
        self._gone.clear()
        # A replay continues from what the renderer shows, and need not name every surface.
        if ready.resume != "replay":
            self._unseen = self._ids.keys() - {MAIN, *self._arrived.values()}
        # For a new session no snapshot follows, so no later commit would remove the old surfaces.
        if ready.resume == "new":
            self._remove_unseen()
        if MAIN not in self._ids:
            title = self._about.capabilities.title
            self._make_surface(MAIN, SurfaceInfo(title=title))
        if isinstance(ready.state, dict) and ready.state:
            request = SessionStateUpdateRequest(ready.state, ready.seq)
            self.connection.send(self.connection.bound["ArpSession"], request)

    def _remove_unseen(self) -> None:
        """Remove surfaces that are not in a snapshot, as a snapshot does not repeat closings."""
        unseen, self._unseen = self._unseen, set()
        for name in unseen:
            self._remove(name)

    def _send_conversation(self, message: AgentMessage) -> None:
        """Send a message through `ArpConversation`, or apply it to the flat content."""
        if isinstance(message, Commit) and message.final:
            self._due.update(name for name in self._ids if self._is_suspended(name))
        if self._flat is not None:
            was_desynchronised = self._flat.is_desynchronised
            self._flat.apply(message)
            if self._flat.is_desynchronised and not was_desynchronised:
                self.owner.desynchronised()
            return
        request = as_request(message, self._id_of)
        assert request is not None  # `_send` handles all other messages
        self.connection.send(self.connection.bound["ArpConversation"], request)

    def _id_of(self, name: str) -> int | None:
        return None if name == MAIN else self._surface_id(name)

    def _acknowledge(self, ack: InputAck) -> None:
        known = self._inputs.pop(ack.id, None)
        if known is None:
            return
        if ack.serial is not None:
            self._serials[ack.serial] = known
            while len(self._serials) > MAX_KNOWN_SERIALS:
                self._serials.popitem(last=False)
        request = InputAckRequest(known.serial, ack.turn_id)
        self.connection.send(self.connection.bound["ArpInput"], request)

    def _refuse(self, error: ErrorPayload) -> None:
        known = self._inputs.pop(error.id or "", None)
        if known is None:
            return
        input_object = self.connection.bound["ArpInput"]
        if self.connection.objects.entries[input_object].version > 1:
            refusal = InputRefuseRequest(
                known.serial, error.code, error.error, error.retryable, error.detail
            )
            self.connection.send(input_object, refusal)
            return
        # Version 1 of the interface has no `refuse`: an error and an `ack` (protocol.md, O8, O21).
        refusal_error = DisplayErrorRequest(input_object, error.code, error.error, known.number)
        self.connection.send(DISPLAY, refusal_error)
        self.connection.send(input_object, InputAckRequest(known.serial))

    def _report(self, error: ArpError) -> None:
        """Send that a message of the session does not fit this renderer."""
        self._send_error(ErrorPayload(error.message, int(error.code), error.detail))

    def _send_error(self, error: ErrorPayload) -> None:
        about = self.connection.bound.get("ArpSession", DISPLAY)
        request = DisplayErrorRequest(about, error.code, error.error)
        self.connection.send(DISPLAY, request)

    # -- surfaces ----------------------------------------------------------------------------------

    def _surface_id(self, name: str) -> int:
        made = self._ids.get(name)
        return self._make_surface(name, SurfaceInfo()) if made is None else made

    def _make_surface(self, name: str, info: SurfaceInfo) -> int:
        surface_id = self.connection.create_surface(name)
        self._ids[name], self._names[surface_id], self._infos[name] = surface_id, name, info
        if info.title:
            self.connection.send(surface_id, SurfaceSetTitleRequest(info.title))
        parent = self._ids.get(info.parent or MAIN)
        serial = self._fresh_serial(info.serial)
        if info.role == "popup" and parent is not None and serial is not None:
            self.connection.get_popup(surface_id, parent, serial, info.component)
        elif info.role == "overlay" and serial is not None:
            overlay = self.connection.get_overlay(surface_id, serial)
            if parent is not None:
                anchor = OverlaySetAnchorRequest(parent, info.anchor or "center")
                self.connection.send(overlay, anchor)
            if info.timeout_ms:
                self.connection.send(overlay, OverlaySetTimeoutRequest(info.timeout_ms))
        else:
            # Popups and overlays too, if their input came from another renderer or is too old: this
            # renderer would refuse them without a recent serial of its own.
            self.connection.get_toplevel(surface_id)
        return surface_id

    def _fresh_serial(self, seq: int | None) -> int | None:
        """Return the serial of an input by its position in the log.

        `None` if another renderer sent it, or if it is too old to be named.
        """
        known = self._serials.get(seq) if seq is not None else None
        if known is None or self._now_s - known.at_s > SERIAL_AGE_S - SERIAL_MARGIN_S:
            return None
        return known.serial

    def _surface(self, message: SurfaceMessage) -> None:
        name, info = message.surface, message.payload
        if message.closed is not None:
            self._send_conversation(message)
            self._remove(name)
            return
        if name not in self._ids:
            self._make_surface(name, info)
        elif self._infos[name].title != info.title:
            self.connection.send(self._ids[name], SurfaceSetTitleRequest(info.title))
        self._infos[name] = info
        self._send_conversation(message)

    def _remove(self, name: str) -> None:
        surface_id = self._ids.get(name)
        self._forget(name)
        if surface_id is None:
            return
        del self._names[surface_id]
        self.connection.destroy(surface_id)

    def _forget(self, name: str) -> None:
        """Forget a surface that the renderer no longer shows; deny its open transfer."""
        for known in (self._ids, self._pending, self._infos):
            known.pop(name, None)
        was_leaving = self._leaving.pop(name, None) is not None
        if self._transfers.pop(name, None) is not None or was_leaving:
            self.owner.denied(name, TransferDenied(f"surface {name!r:.80} is closed", detail=name))
        if self._flat is not None:
            self._flat.forget(name)

    # -- commits -----------------------------------------------------------------------------------

    def _commit(self, commit: Commit) -> bool:
        """Send the changes of a commit and the commit; return `False` if it has to wait.

        A commit of the session applies the changes of all surfaces. Here each surface has commits
        of its own, and a commit above the limits of the renderer is divided. The surface of the
        commit comes last and carries `final` and the `seq`. If the connection is lost earlier, the
        renderer resumes from the commit before.
        """
        names = [*(name for name in self._pending if name != commit.surface), commit.surface]
        for name in names:
            if self._flow(name) == CommitFlow.FULL:
                return False
        *parts, rest = _parts(self._pending.get(commit.surface, ()), self.connection.objects.limits)
        while parts:
            self._commit_part(commit.surface, parts.pop(0))
            # If the commit has to wait now, the next attempt continues with the remaining parts.
            self._pending[commit.surface] = [one for part in (*parts, rest) for one in part]
            if self._flow(commit.surface) == CommitFlow.FULL:
                return False
        for name in names[:-1]:
            self._commit_part(name, self._pending.pop(name))
        for change in self._pending.pop(commit.surface, ()):
            self._change(change)
        request = SurfaceCommitRequest(
            commit.final, commit.seq, commit.turn_id, commit.usage, commit.at
        )
        self.connection.send(self._surface_id(commit.surface), request)
        return True

    def _commit_part(self, name: str, changes: Sequence[Render | Patch]) -> None:
        for change in changes:
            self._change(change)
        self.connection.send(self._surface_id(name), SurfaceCommitRequest())

    def _flow(self, name: str) -> str:
        return self.connection.objects.surface(self._surface_id(name)).flow

    def _change(self, change: Render | Patch) -> None:
        request: Struct
        if isinstance(change, Render):
            request = SurfaceRenderRequest(
                change.components, change.replace, change.turn_id, change.tool_name
            )
        else:
            request = SurfacePatchRequest(change.ops, change.turn_id)
        self.connection.send(self._surface_id(change.surface), request)

    def _flush(self) -> None:
        """Commit the changes of the flat content, for each surface with room for a commit."""
        assert self._flat is not None
        for name in self._flat.changed():
            # Otherwise a surface that was transferred away would be created again.
            if name in self._gone:
                continue
            surface_id = self._surface_id(name)
            if self._is_suspended(name) and name not in self._due:
                continue
            while self.connection.objects.surface(surface_id).flow != CommitFlow.FULL:
                request = self._flat.write(name, surface_id)
                if request is None:
                    self._due.discard(name)
                    break
                self.connection.send(surface_id, request)


MAX_LENGTH: Final = 100_000
"""Largest width or height, as in the session dialect."""


def _changes_offer(event: ObjectMessage) -> bool:
    return isinstance(event.payload, RegistryGlobalEvent | RegistryGlobalRemoveEvent)


def _is_kept(message: AgentMessage) -> bool:
    """Return whether a message must be kept before a snapshot, because no snapshot repeats it."""
    match message:
        case InputAck() | SurfaceMessage(closed=str()):
            return True
        case ErrorMessage():
            return message.seq is None and message.turn_id is None
        case _:
            return False


def _text(value: Json, most: int) -> str | None:
    return value if isinstance(value, str) and len(value) <= most else None


def _renderer_limits(values: dict[str, Json]) -> RendererLimits:
    """Return the limits of a renderer; ignore unknown limits and invalid values."""
    known: dict[str, Any] = {}
    for name in RendererLimits.__struct_fields__:
        try:
            limits = msgspec.convert({name: values.get(name)}, RendererLimits)
        except msgspec.ValidationError:
            continue
        known[name] = getattr(limits, name)
    most = known.get("max_message_bytes")
    if most is not None:
        known["max_message_bytes"] = max(1024, most - ENVELOPE_BYTES)
    return RendererLimits(**known)


def _parts(changes: Sequence[Render | Patch], limits: Limits) -> list[list[Render | Patch]]:
    """Divide changes into commits within the limits of the renderer; return at least one part."""
    parts: list[list[Render | Patch]] = [[]]
    components = ops = 0
    for change in changes:
        for piece in _pieces(change, limits):
            shown = component_count(piece.components) if isinstance(piece, Render) else 0
            patched = len(piece.ops) if isinstance(piece, Patch) else 0
            components, ops = components + shown, ops + patched
            is_too_much = (
                components > limits.max_components_per_commit or ops > limits.max_patch_ops
            )
            if parts[-1] and is_too_much:
                parts.append([])
                components, ops = shown, patched
            parts[-1].append(piece)
    return parts


def _pieces(change: Render | Patch, limits: Limits) -> list[Render | Patch]:
    """Divide one change: a patch by operations, a `render` by components."""
    if isinstance(change, Patch):
        most = limits.max_patch_ops
        if len(change.ops) <= most:
            return [change]
        cuts = range(0, len(change.ops), most)
        return [msgspec.structs.replace(change, ops=change.ops[at : at + most]) for at in cuts]
    if component_count(change.components) <= limits.max_components_per_commit:
        return [change]
    return [
        # Only the first part may replace: a later one would remove the parts before it.
        msgspec.structs.replace(change, components=[one], replace=change.replace and index == 0)
        for index, one in enumerate(change.components)
    ]
