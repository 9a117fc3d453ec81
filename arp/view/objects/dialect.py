"""One renderer that speaks the object dialect, on a session as every other renderer.

Theory of operation. The hub knows renderers by the messages of the session dialect. This object
writes them as requests on the objects of one connection, and reads its events as what a renderer of
the session dialect sends. It begins with a handshake: the registry, a `sync` to know that every
global was announced, the binds, `ArpSession.create`, and a second `sync`, before which the renderer
may choose another session by `resumed`. Then it says `hello` to the hub in the renderer's name.

A renderer that offers `ArpConversation` gets turns, tools and text by it, and what surfaces show as
it is. For any other all of it becomes components (`object_flat`).

Commits are paced: a surface with as many commits under way as its renderer allows gets no other.
What comes meanwhile waits here in order. If more commits wait than `MAX_WAITING_COMMITS`, the
renderer is behind for the hub, which brings it to the newest state when it has displayed them.

A suspended surface gets nothing before a turn ends, or it shows again. Components wait by
themselves; a conversation is behind for the hub, which lets one catch-up through at the end of a
turn (`let_through`).

If the renderer offers something else than at the beginning, the dialect says `hello` to the hub
once more. What is on its way to the renderer is dropped, since the hub answers with a snapshot.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from arp.protocol.agent_connection import AgentEvent, Failed
from arp.protocol.codec import Encoding, agent_decoder
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
"""What a renderer must offer."""

IMPLIED: Final = frozenset(("input", "streaming", "resume"))
"""Features of every renderer that speaks this dialect."""

FOREIGN: Final = frozenset(("batch", "ping", "frame-ack"))
"""Features that concern the connection alone: arrays are made of requests, `sync` asks for a sign
of life, and every commit is acknowledged."""

MAX_WAITING_COMMITS: Final = 32
"""That wait for a renderer before what comes next is merged: half a second of a busy agent."""

MAX_KNOWN_SERIALS: Final = 256
"""Inputs whose serial a popup may still name."""

SERIAL_MARGIN_S: Final = 1.0
"""How much younger than it must be a serial is that we use: the request takes its time."""

ENVELOPE_BYTES: Final = 512
"""What the envelope and the optional fields of a request add to a message."""

CLOSE: Final = "arp.close"
"""The action by which a renderer of the session dialect closes a surface."""

_AGENT_MESSAGES = agent_decoder("json")


class _KnownInput(NamedTuple):
    serial: int
    at_s: float
    number: int
    """Of its message."""


class SurfaceOwner(Protocol):
    """Whose surfaces a renderer shows: hears which it hands to another agent, and gets others."""

    def acquired(self, surface_id: int, given: SurfaceSurfaceAcquiredEvent) -> str | None:
        """Take over a surface that the renderer hands over; return its name in the session.

        `None`: the session has taken it before. When that is durable, `ObjectDialect.accept` is to
        be called with the id.

        Raises:
            ArpError: The session does not take it.
        """
        ...

    def transferred(self, name: str) -> None:
        """Is called when another agent has a surface now."""

    def denied(self, name: str, error: TransferDenied) -> None:
        """Is called when the renderer does not hand a surface over."""

    def unanswered(self, name: str) -> None:
        """Is called when it is not known whether another agent has a surface now."""

    def desynchronised(self) -> None:
        """Is called when a snapshot is needed: what shows is not what the session has."""


class _NoOwner:
    """Takes no surfaces, while there is no session."""

    def acquired(self, surface_id: int, given: SurfaceSurfaceAcquiredEvent) -> str | None:
        raise TransferDenied("there is no session yet")

    def transferred(self, name: str) -> None: ...

    def denied(self, name: str, error: TransferDenied) -> None: ...

    def unanswered(self, name: str) -> None: ...

    def desynchronised(self) -> None: ...


class ObjectDialect:
    """Speaks for the hub to one renderer.

    Args:
        encoding: Of the frames.
        limits: Of the agent side.
        session_id: The id to propose for a new session.
        about: What the agent side's `hello` says, for the metadata of the session.
        key: Makes the ids of inputs that have none; unique among connections.
    """

    def __init__(
        self, encoding: Encoding, limits: Limits, session_id: str, about: AgentHello, key: str
    ) -> None:
        self.connection = ObjectAgentConnection(encoding, limits)
        self.proposed = session_id
        self.is_open = False
        """Whether it has said `hello` to the hub."""
        self.owner: SurfaceOwner = _NoOwner()
        self._leaving: dict[str, SurfaceTransferRequest] = {}
        """What is to be asked when everything before is sent, by surface."""
        self._asked: dict[str, int] = {}
        """Surfaces that the renderer was asked to hand over → the number of that message."""
        self._arrived: dict[int, str | None] = {}
        """Surfaces that the renderer hands over and the session has not durably taken, by id, with
        their names; `None`: it had taken it before."""
        self._gone: set[str] = set()
        """Surfaces that another agent has, or that the renderer has refused, of which the session
        has not said that they are closed."""
        self._about = about
        self._key = key
        self._handshake: int | None = None
        """The callback that it waits for."""
        self._said: RendererHello | None = None
        """What it has said to the hub last."""
        self._awaits_snapshot = False
        """Whether what comes before the next `session` is not for what the renderer offers now."""
        self._has_ended = False
        """Whether the user has closed the conversation."""
        self._lets_through = False
        """Whether the next commit goes to a suspended conversation: a turn has ended."""
        self._unseen: set[str] = set()
        """Surfaces that the snapshot which is coming has not named yet."""
        self._due: set[str] = set()
        """Surfaces that get what they lack also while they are suspended: a turn has ended."""
        self._resumed: SessionResumedEvent | None = None
        self._flat: FlatContent | None = None
        self._takes_arrays = False
        self._queue: deque[tuple[AgentMessage, int]] = deque()
        """What waits to be sent, with its size."""
        self._queued_bytes = 0
        self._queued_commits = 0
        self._pending: dict[str, list[Render | Patch]] = {}
        """By surface: what its next commit applies."""
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._infos: dict[str, SurfaceInfo] = {}
        self._inputs: OrderedDict[str, _KnownInput] = OrderedDict()
        self._serials: OrderedDict[int, _KnownInput] = OrderedDict()
        """The place in the log of an accepted input → what this renderer calls it."""
        self._now_s = 0.0

    # -- for the outbox ----------------------------------------------------------------------------

    @property
    def waiting_bytes(self) -> int:
        """Bytes of messages that wait for the renderer to display what it has."""
        return self._queued_bytes

    @property
    def is_behind(self) -> bool:
        """Whether so much waits that what comes next is better merged."""
        if self._flat is None and self._is_suspended(MAIN) and not self._lets_through:
            return True
        return self._queued_commits > MAX_WAITING_COMMITS

    def let_through(self) -> bool:
        """Let one catch-up through to a suspended conversation; return whether it is one."""
        self._lets_through = self._flat is None and self._is_suspended(MAIN)
        return self._lets_through

    def _is_suspended(self, name: str) -> bool:
        """Return whether the renderer shows nothing of a surface now (docs/protocol.md, O16)."""
        entry = self.connection.objects.entries.get(self._ids.get(name, -1))
        return entry is not None and entry.surface is not None and SUSPENDED in entry.surface.states

    def data_to_send(self) -> list[bytes]:
        """Return the frames that are to be sent now."""
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

    def _done(self, callback: int) -> list[AgentEvent]:
        if callback != self._handshake:
            return []
        self._handshake = None
        if self.connection.bound:
            self.is_open = True
            self._said = self._hello()
            return [self._said]
        missing = [one for one in NEEDED if self.connection.objects.offered(one) is None]
        if missing:
            problem = f"the renderer does not offer {', '.join(missing)}"
            payload = DisplayErrorRequest(DISPLAY, int(ErrorCode.INVALID_OBJECT), problem)
            self.connection.send(DISPLAY, payload)
            return [Failed(1002, problem)]
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
        """Return what the renderer would say in the session dialect."""
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
        # Without a conversation, what surfaces showed went with the last connection.
        if chosen is None or not isinstance(epoch, str) or self._flat is not None:
            return None
        return Resume(epoch, chosen.last_commit_seq)

    # -- in ----------------------------------------------------------------------------------------

    def receive(
        self, frame: bytes | str | Sequence[ObjectEnvelope | RefusedEnvelope], now_s: float
    ) -> list[AgentEvent]:
        """Take one frame of the renderer and return what it means to the hub. Never raises."""
        self._now_s = now_s
        if isinstance(frame, bytes | str):
            events = self.connection.receive(frame, now_s)
        else:
            events = self.connection.take(frame, now_s)
        out = [meant for event in events for meant in self._event(event)]
        changed = any(isinstance(one, ObjectMessage) and _changes_offer(one) for one in events)
        return [*out, *self._offer_changed()] if changed and self.is_open else out

    def _offer_changed(self) -> list[AgentEvent]:
        """Say what the renderer offers now, if the hub knows something else."""
        hello = msgspec.structs.replace(self._hello(), resume=None)
        known = self._said
        self._takes_arrays = self.connection.objects.offered("feature:batch") is not None
        if known is None or hello.capabilities == known.capabilities:
            return []
        self._said = hello
        if self._flat is not None:
            self._flat.appends = "patch-append" in self._features()
        self._awaits_snapshot = True
        waiting, self._queue = self._queue, deque()
        self._queued_bytes = self._queued_commits = 0
        for message, size in waiting:
            if _is_kept(message):
                self._queue.append((message, size))
                self._queued_bytes += size
        self._pending.clear()
        return [hello]

    def _event(self, event: ObjectEvent) -> list[AgentEvent]:
        if isinstance(event, Failed):
            return [event]
        if not isinstance(event, ObjectMessage):
            return []  # it was refused, and the renderer has the error
        object_id = event.object_id
        match event.payload:
            case CallbackDoneEvent():
                return self._done(object_id)
            case SessionResumedEvent() as chosen:
                self._resumed = chosen
            case InputInputEvent() as given:
                return [self._input(given, event.serial_no)]
            case InputFocusEvent(surface_id):
                return self._note("focus", {}, surface_id)
            case InputUnfocusEvent(surface_id):
                return self._note("unfocus", {}, surface_id)
            case _:
                return self._surface_event(object_id, event)
        return []

    def _surface_event(self, object_id: int, event: ObjectMessage) -> list[AgentEvent]:
        match event.payload:
            case SurfaceFrameAckEvent():
                self._go_on()  # there may be room for a commit now
            case DisplayErrorEvent() as error:
                failed = self._drop_refused()
                self._go_on()
                self._denied(error)
                return failed
            case SurfaceTransferredEvent():
                self._transferred(object_id)
            case SurfaceSurfaceAcquiredEvent() as acquired:
                self._acquired(object_id, acquired, event.serial_no)
            case (
                SurfaceConfigureEvent()
                | ToplevelConfigureEvent()
                | PopupConfigureEvent()
                | OverlayConfigureEvent()
            ) as size:
                return self._configured(self.connection.objects.surface_of(object_id), size)
            case (
                SurfaceClosedEvent()
                | ToplevelCloseEvent()
                | PopupPopupDoneEvent()
                | OverlayDismissedEvent()
            ):
                return self._closed(self.connection.objects.surface_of(object_id))
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

    def _note(self, input_type: InputType, data: JsonObject, surface_id: int) -> list[AgentEvent]:
        """Return an input that nobody acknowledges."""
        return [Input(input_type=input_type, data=data, surface=self._names[surface_id])]

    def _configured(
        self,
        surface_id: int,
        size: (
            SurfaceConfigureEvent
            | ToplevelConfigureEvent
            | PopupConfigureEvent
            | OverlayConfigureEvent
        ),
    ) -> list[AgentEvent]:
        self._go_on()  # what waited for a surface that shows again answers it
        bounds = size.bounds if isinstance(size, OverlayConfigureEvent) else size
        data: JsonObject = {
            "width": min(bounds.width, MAX_LENGTH),
            "height": min(bounds.height, MAX_LENGTH),
        }
        if isinstance(size, SurfaceConfigureEvent | ToplevelConfigureEvent) and size.states:
            data["states"] = list(size.states)
        return self._note("resize", data, surface_id)

    def _answer_configures(self) -> None:
        """Answer every `configure` by a commit, where one may be sent now."""
        for surface_id, surface in self.connection.objects.surfaces.items():
            owes = surface.life in (SurfaceLife.CONFIGURED, SurfaceLife.RECONFIGURED)
            if owes and surface.flow != CommitFlow.FULL:
                self.connection.send(surface_id, SurfaceCommitRequest())

    def _closed(self, surface_id: int) -> list[AgentEvent]:
        name = self._names.get(surface_id)
        if name == MAIN:
            self._destroy_all()
            return [Failed(1000, "the user closed the surface")]
        return self._note("action", {"action": CLOSE}, surface_id)

    def _destroy_all(self) -> None:
        """Destroy every surface, those over others first: the user has closed the conversation."""
        self._has_ended = True
        self._queue.clear()
        self._queued_bytes = self._queued_commits = 0
        for name in list(reversed(self._ids)):
            self._remove(name)

    def _drop_refused(self) -> list[AgentEvent]:
        """Show nothing more on a surface that the renderer has refused.

        One of which it has refused only the role (the input that it answers was too old) becomes a
        window, as where nobody here asked for it.
        """
        for name, surface_id in list(self._ids.items()):
            if surface_id in self.connection.objects.entries:
                has_role = self.connection.objects.surface(surface_id).role != RoleState.NONE
                if not has_role and surface_id not in self._arrived:
                    with suppress(ArpError):  # it is closed
                        self.connection.get_toplevel(surface_id)
                continue
            if name == MAIN:
                return [Failed(1002, "the renderer refused the surface of the conversation")]
            del self._names[surface_id]
            self._forget(name)
            self._gone.add(name)
        return []

    # -- surfaces that go to another agent, or come from one ---------------------------------------

    def hand_over(self, name: str, request: SurfaceTransferRequest) -> None:
        """Ask the renderer to give a surface to the agent that has another session on it.

        It is asked when everything that was sent before is under way; `owner` hears the outcome.

        Raises:
            TransferDenied: The renderer does not show it, or was asked already.
        """
        if name == MAIN or name not in self._ids:
            raise TransferDenied(f"this renderer does not show {name!r:.80}", detail=name)
        if name in self._leaving or name in self._asked:
            raise TransferDenied(f"surface {name!r:.80} is being handed over", detail=name)
        self._leaving[name] = request
        self._go_on()

    def _ask_to_hand_over(self) -> None:
        """Ask for what is to be handed over, once nothing of it waits to be sent."""
        for name in [name for name in self._leaving if not self._has_to_wait(name)]:
            request = self._leaving.pop(name)
            surface_id = self._ids[name]
            try:
                self.connection.send(surface_id, request)
            except ArpError as error:
                self.owner.denied(name, TransferDenied(error.message, detail=name))
                continue
            number = self.connection.objects.surface(surface_id).transfer
            assert number is not None  # it was just asked for
            self._asked[name] = number

    def _has_to_wait(self, name: str) -> bool:
        is_dirty = self._flat is not None and name in self._flat.changed()
        return is_dirty or any(
            getattr(message, "surface", None) == name for message, _ in self._queue
        )

    def _denied(self, error: DisplayErrorEvent) -> None:
        for name, number in self._asked.items():
            if error.refused_seq == number:
                del self._asked[name]
                if error.code == ErrorCode.BUSY:
                    self.owner.unanswered(name)
                else:
                    self.owner.denied(name, TransferDenied(error.message, detail=name))
                break

    def _transferred(self, surface_id: int) -> None:
        name = self._names.pop(surface_id)
        self._asked.pop(name, None)
        self._forget(name)
        self._gone.add(name)
        self.owner.transferred(name)

    def _acquired(
        self, surface_id: int, given: SurfaceSurfaceAcquiredEvent, number: int | None
    ) -> None:
        try:
            if not self.is_open:
                raise TransferDenied("there is no session yet")
            name = self.owner.acquired(surface_id, given)
        except ArpError as error:
            refusal = DisplayErrorRequest(surface_id, int(error.code), error.message, number)
            self.connection.send(DISPLAY, refusal)  # with it the surface ends
            return
        self._arrived[surface_id] = name
        if name is not None:
            self._ids[name], self._names[surface_id] = surface_id, name
            self._infos[name] = SurfaceInfo(title=given.title or "")

    def accept(self, surface_id: int) -> None:
        """Take a surface that the renderer hands over: the session has it durably.

        The role says so to the renderer (docs/protocol.md, O27). It has no effect if that was said
        before. One that the session had taken before is shown under another id, or was closed.
        """
        if surface_id not in self._arrived:
            return
        name = self._arrived.pop(surface_id)
        try:
            self.connection.get_toplevel(surface_id)
        except ArpError:
            return  # the user has closed it meanwhile, which the session hears as an input
        if name is None:
            self.connection.destroy(surface_id)
        elif self._flat is None:
            # The session sends its own copy of the content, with ids of its own.
            self.connection.send(surface_id, SurfaceRenderRequest([], replace=True))

    # -- out ---------------------------------------------------------------------------------------

    def show(self, frames: Iterable[bytes], now_s: float) -> None:
        """Send what the hub sends this renderer, in order; what must wait, waits.

        Args:
            frames: Of the session dialect, in JSON.
            now_s: The time.
        """
        self._now_s = now_s
        if self._has_ended:
            return
        for frame in frames:
            for message in _AGENT_MESSAGES.decode(frame):
                self._awaits_snapshot &= not isinstance(message, SessionReady)
                if self._awaits_snapshot and not _is_kept(message):
                    continue
                self._lets_through &= not isinstance(message, Commit)
                self._queue.append((message, len(frame)))
                self._queued_commits += isinstance(message, Commit)
                self._queued_bytes += len(frame)
        self._go_on()

    def _go_on(self) -> None:
        while self._queue and self._take(self._queue[0][0]):
            message, size = self._queue.popleft()
            self._queued_bytes -= size
            self._queued_commits -= isinstance(message, Commit)
        if self._flat is not None and not self._awaits_snapshot:
            self._flush()
        self._answer_configures()
        if self._leaving:
            self._ask_to_hand_over()

    def _take(self, message: AgentMessage) -> bool:
        """Send a message; return whether it went."""
        try:
            return self._written(message)
        except ArpError as error:
            self._tell(error)
            return True

    def _written(self, message: AgentMessage) -> bool:
        if (self._arrived or self._gone) and self._is_late(message):
            return True
        self._unseen.discard(getattr(message, "surface", None) or MAIN)
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
            case ErrorMessage() if not self.is_open or not self._ids:
                self._tell_at_once(message.payload)
            case _:
                if isinstance(message, SessionReady):
                    self._ready(message)
                self._converse(message)
        return True

    def _is_late(self, message: AgentMessage) -> bool:
        """Return whether it was on its way when its surface went to another agent.

        The first one of a surface that comes from another agent accepts it: it is durable.
        """
        name: str | None = getattr(message, "surface", None)
        if name is not None and name in self._arrived.values():
            self.accept(self._ids[name])
        if name not in self._gone:
            return False
        if not (isinstance(message, SurfaceMessage) and message.closed is not None):
            return True
        self._gone.discard(name)
        return False

    def _ready(self, ready: SessionReady) -> None:
        self._pending.clear()
        self._gone.clear()
        if ready.resume != "replay":
            self._unseen = self._ids.keys() - {MAIN, *self._arrived.values()}
        if ready.resume == "new":
            self._remove_unseen()
        if MAIN not in self._ids:
            title = self._about.capabilities.title
            self._make_surface(MAIN, SurfaceInfo(title=title))
        if isinstance(ready.state, dict) and ready.state:
            request = SessionStateUpdateRequest(ready.state, ready.seq)
            self.connection.send(self.connection.bound["ArpSession"], request)

    def _remove_unseen(self) -> None:
        """Remove surfaces that were closed while nothing was sent: a snapshot has no closings."""
        unseen, self._unseen = self._unseen, set()
        for name in unseen:
            self._remove(name)

    def _converse(self, message: AgentMessage) -> None:
        if isinstance(message, Commit) and message.final:
            self._due.update(name for name in self._ids if self._is_suspended(name))
        if self._flat is not None:
            was_desynchronised = self._flat.is_desynchronised
            self._flat.apply(message)
            if self._flat.is_desynchronised and not was_desynchronised:
                self.owner.desynchronised()
            return
        request = as_request(message, self._id_of)
        assert request is not None  # other messages are no part of the conversation
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
        # The first version of the interface has no `refuse` (protocol.md, O8, O21).
        told = DisplayErrorRequest(input_object, error.code, error.error, known.number)
        self.connection.send(DISPLAY, told)
        self.connection.send(input_object, InputAckRequest(known.serial))

    def _tell(self, error: ArpError) -> None:
        """Say that something of ours does not fit this renderer."""
        self._tell_at_once(ErrorPayload(error.message, int(error.code), error.detail))

    def _tell_at_once(self, error: ErrorPayload) -> None:
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
            # Also what was opened by an input elsewhere, or long ago: nothing here asked for it.
            self.connection.get_toplevel(surface_id)
        return surface_id

    def _fresh_serial(self, place: int | None) -> int | None:
        """Return the serial of an input that this renderer sent just now."""
        known = self._serials.get(place) if place is not None else None
        if known is None or self._now_s - known.at_s > SERIAL_AGE_S - SERIAL_MARGIN_S:
            return None
        return known.serial

    def _surface(self, message: SurfaceMessage) -> None:
        name, info = message.surface, message.payload
        if message.closed is not None:
            self._converse(message)
            self._remove(name)
            return
        if name not in self._ids:
            self._make_surface(name, info)
        elif self._infos[name].title != info.title:
            self.connection.send(self._ids[name], SurfaceSetTitleRequest(info.title))
        self._infos[name] = info
        self._converse(message)

    def _remove(self, name: str) -> None:
        surface_id = self._ids.get(name)
        self._forget(name)
        if surface_id is None:
            return
        del self._names[surface_id]
        self.connection.destroy(surface_id)

    def _forget(self, name: str) -> None:
        """Forget what is known of a surface that the renderer shows no longer."""
        for known in (self._ids, self._pending, self._infos):
            known.pop(name, None)
        was_leaving = self._leaving.pop(name, None) is not None
        if self._asked.pop(name, None) is not None or was_leaving:
            self.owner.denied(name, TransferDenied(f"surface {name!r:.80} is closed", detail=name))
        if self._flat is not None:
            self._flat.forget(name)

    # -- commits -----------------------------------------------------------------------------------

    def _commit(self, commit: Commit) -> bool:
        """Send everything that a commit applies; return whether there was room for it."""
        names = [*(name for name in self._pending if name != commit.surface), commit.surface]
        for name in names:
            if self._flow(name) == CommitFlow.FULL:
                return False
        *parts, rest = _parts(self._pending.get(commit.surface, ()), self.connection.objects.limits)
        while parts:
            self._commit_part(commit.surface, parts.pop(0))
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
        """Commit what has changed of each surface, where there is room for a commit."""
        assert self._flat is not None
        for name in self._flat.changed():
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
"""Of a width or a height, as in the session dialect."""


def _changes_offer(event: ObjectMessage) -> bool:
    return isinstance(event.payload, RegistryGlobalEvent | RegistryGlobalRemoveEvent)


def _is_kept(message: AgentMessage) -> bool:
    """Return whether a snapshot does not have what a message says."""
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
    """Return what a renderer takes at most; what is no such limit, or no number, is passed over."""
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
    """Divide changes into as few commits as the limits of the renderer allow; at least one."""
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
    """Divide one change: a patch by its ops, a `render` by its components."""
    if isinstance(change, Patch):
        most = limits.max_patch_ops
        if len(change.ops) <= most:
            return [change]
        cuts = range(0, len(change.ops), most)
        return [msgspec.structs.replace(change, ops=change.ops[at : at + most]) for at in cuts]
    if component_count(change.components) <= limits.max_components_per_commit:
        return [change]
    return [
        msgspec.structs.replace(change, components=[one], replace=change.replace and place == 0)
        for place, one in enumerate(change.components)
    ]
