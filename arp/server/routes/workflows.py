"""HTTP interface of the v0.1 draft: `POST /{workflow}` begins a turn; runs can be read again.

The body is JSON or multipart/form-data. `message` (or `text`) is the input of the user,
`session_id` names the session, and all other fields reach the agent as `data.params`. With
`Accept: text/event-stream` the response is a stream; without it, the response is sent when the turn
ends or waits for an answer.

A run is a turn with an id of its own, `{session_id}.{turn_id}`. The turn does not depend on its
stream: a client that lost the stream requests it again by this id.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from arp.hub.hub import Hub
from arp.hub.inbound import LARGE_BYTES
from arp.hub.readers.session_reader import ReadableSession
from arp.live.delivery import Viewer
from arp.live.live_session import LiveSession
from arp.live.trace import traced
from arp.protocol.capabilities import AGENT_FEATURES, LEVELS
from arp.protocol.codec import agent_decoder, encode_shown
from arp.protocol.components import Component
from arp.protocol.connection.screen import Screen, TurnScreen
from arp.protocol.errors import ArpError, ErrorCode, InvalidMessage, SessionNotFound
from arp.protocol.framing.event_stream import DONE, EVENT_STREAM, encode_event
from arp.protocol.json_value import Json, JsonObject, check_count, check_plain_json
from arp.protocol.messages import (
    FINAL_STATUSES,
    AgentMessage,
    Commit,
    Delta,
    ErrorMessage,
    Identifier,
    Input,
    InputAck,
    InputEcho,
    InputType,
    Patch,
    Render,
    RendererCapabilities,
    RendererHello,
    Resume,
    ToolEnd,
    ToolStart,
    TurnMessage,
)
from arp.server.answers import json_response, shown_response
from arp.server.routes.chats import bounded, tool_object
from arp.server.state import Requester, StreamRoute, log_arrival, requester
from arp.server.uploads import UploadedFile
from arp.session.session import Session
from arp.session.tracking.window import PastTurn
from arp.transport.event_stream import ReadyEvents, stream
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Scope, Send
from arp.view.profile import profile_of
from arp.view.snapshot import snapshot
from arp.view.stream_end import is_waiting

S = TypeVar("S", bound=ReadableSession)

logger = logging.getLogger(__name__)

RECENT_SESSIONS = 20
"""Number of recent sessions in a list of runs without `session_id`."""

_NOT_OF_THE_DRAFT = ("batch", "frame-ack", "thinking", "tool-detail")
_FEATURES = [name for name in AGENT_FEATURES if name not in _NOT_OF_THE_DRAFT]
_CAPABILITIES = RendererCapabilities(dict.fromkeys(LEVELS["standard"], 1), _FEATURES)
_PROFILE = profile_of(_CAPABILITIES)


# -- a turn by POST -------------------------------------------------------------------------------


async def _workflow(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    name, state = request.path_params["workflow"], requester(request).state
    if name not in state.served.handlers:
        await json_response({"error": f"nothing at /{name}"}, 404)(scope, receive, send)
    elif request.method != "POST":
        refused = json_response({"error": f"/{name} accepts only POST"}, 405, {"allow": "POST"})
        await refused(scope, receive, send)
    else:
        hub = await state.hub()
        run = await _submit(request, hub)
        if EVENT_STREAM in request.headers.get("accept", ""):
            await follow(requester(request), run, receive, send)
        else:
            await (await _whole(hub, run.live, run.turn.id))(scope, receive, send)


async def _submit(request: Request, hub: Hub) -> Run:
    """Begin the turn that the body describes, or answer the turn that waits."""
    intake = requester(request).state.intake
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with intake.form(request) as form:
            size = sum(map(len, form.fields.values()))
            work = partial(_request_of_fields, dict(form.fields), form.files)
            return await _read(request, hub, work, size, form.files)
    if kind != "application/json":
        raise InvalidMessage("content-type: send application/json or multipart/form-data")
    body = await intake.body(request)
    return await _read(request, hub, partial(_request_of_json, body), len(body))


async def _read(
    request: Request,
    hub: Hub,
    work: Callable[[], _TurnRequest],
    size: int,
    files: Sequence[UploadedFile] = (),
) -> Run:
    if size < LARGE_BYTES:
        return await _begin(request, hub, work(), files)
    read = await hub.inbound.read(work, _data_of)
    with hub.inbound.redactor.knowing(read.cleaned):
        return await _begin(request, hub, read.value, files)


async def _begin(
    request: Request, hub: Hub, turn: _TurnRequest, files: Sequence[UploadedFile]
) -> Run:
    workflow, principal = request.path_params["workflow"], requester(request).principal
    live = await hub.open(turn.session_id, principal, workflow)
    if live.session.workflow != workflow:
        raise InvalidMessage(
            f"session {live.id!r} is one of {live.session.workflow!r}; post it there",
            detail="session_id",
        )
    kind: InputType = "file" if files else "text"
    message = Input(input_type=kind, data=turn.data, session_id=live.id)
    traceparent = request.headers.get("traceparent")
    before, screen = live.session.sequence, live.session.screen
    shown: list[AgentMessage] | None = None
    # If the input answers a question, the turn may patch components that it rendered before this
    # stream. The stream needs to know them, because it sends a patched component as a whole.
    if any(map(is_waiting, screen.turns.values())):
        shown = snapshot(screen, live.session.name, _PROFILE)
    answer = await hub.submit(message, principal, workflow, files, traceparent)
    if isinstance(answer, InputAck) and answer.turn_id is not None:
        begun = live.session.screen.turns[answer.turn_id]
        is_answer = len(begun.inputs) > 1
        return Run(live, begun, before, shown) if is_answer else run_of(live, begun)
    assert isinstance(answer, ErrorMessage)
    raise _as_error(answer)


class Run(Struct, frozen=True):
    """A turn, and the part of it to stream."""

    live: LiveSession
    turn: TurnScreen
    since: int
    """Sequence number after which facts are streamed."""
    shown: list[AgentMessage] | None = None
    """Snapshot of the screen at `since`; `None` if the turn showed nothing before."""

    @property
    def id(self) -> str:
        """Id of the run in `/_api/runs`."""
        return f"{self.live.session.id}.{self.turn.id}"

    def is_held(self) -> bool:
        """Return whether the turn is queued behind a turn that waits for an answer."""
        turns = self.live.session.screen.turns.values()
        return self.turn.status == "queued" and any(map(is_waiting, turns))

    def waits_for(self) -> set[tuple[str, str]] | None:
        """Return surface and id of each open question; `None` if the turn does not wait."""
        if self.turn.status != "waiting":
            return None
        asked = self.live.session.questions.values()
        return {(one.surface, one.component_id) for one in asked if one.turn_id == self.turn.id}


def run_of(live: LiveSession, turn: TurnScreen) -> Run:
    """Return the run that streams a turn from its beginning."""
    begin = turn.inputs[0].seq if turn.inputs else None
    return Run(live, turn, (begin or 1) - 1)


class _TurnRequest(Struct, frozen=True):
    """Session and input of a requested turn."""

    session_id: str | None
    data: JsonObject
    """Data of the input."""


def _request_of_json(body: bytes) -> _TurnRequest:
    return _request_of_fields(_fields(body), ())


def _request_of_fields(fields: JsonObject, files: Sequence[UploadedFile]) -> _TurnRequest:
    session_id = _session_id(fields.pop("session_id", None) or None)
    text = fields.pop("message", None) or fields.pop("text", "")
    data: JsonObject = {"text": text}
    if fields:
        data["params"] = fields
    if files:
        data["files"] = [msgspec.to_builtins(file.ref) for file in files]
    check_count(data, "body", "body")
    check_plain_json(data, "body")
    return _TurnRequest(session_id, data)


def _data_of(turn: _TurnRequest) -> Iterable[Json]:
    return (turn.data,)


def _session_id(value: object) -> str | None:
    try:
        name: str | None = msgspec.convert(value, Identifier | None)
    except msgspec.ValidationError as error:
        raise InvalidMessage(f"session_id: {error}", detail="session_id") from None
    return name


def _as_error(answer: ErrorMessage) -> ArpError:
    error = InvalidMessage(answer.payload.error)
    error.code = ErrorCode(answer.payload.code)  # type: ignore[misc]  # the code of the answer
    error.retryable = answer.payload.retryable  # type: ignore[misc]
    return error


def _fields(content: bytes) -> JsonObject:
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise InvalidMessage("body: expected a JSON object")
    return body


async def _whole(hub: Hub, live: LiveSession, turn_id: str) -> Response:
    """Wait until a turn ends or waits for an answer; return its output."""
    turn = live.session.screen.turns[turn_id]
    run = run_of(live, turn)
    with live.followed():
        while turn.status not in FINAL_STATUSES and turn.status != "waiting" and not run.is_held():
            await live.beyond(live.session.sequence)
        await live.written()
    past = await hub.history.turn(live, turn_id)
    assert past is not None
    run_id = f"{live.session.id}.{turn_id}"
    return shown_response({"run_id": run_id, "status": turn.status, **result_of(past)})


# -- runs -----------------------------------------------------------------------------------------


def split_run(run_id: str) -> tuple[str, str]:
    """Return the ids of session and turn in the id of a run."""
    session_id, _, turn_id = run_id.rpartition(".")
    return session_id, turn_id


async def _list(request: Request) -> Response:
    asker = requester(request)
    hub = await asker.hub()
    limit = bounded(request.query_params.get("limit"), 50, 200)
    named = request.query_params.get("session_id")
    if named is not None:
        sessions = [named]
    else:
        sessions = [meta.id for meta in await hub.metas(asker.principal, limit=RECENT_SESSIONS)]
    rows: list[JsonObject] = []
    # One session at a time, so that a long list needs no more memory than a short one.
    for name in sessions:
        if len(rows) >= limit:
            break
        try:
            source = await asker.read(name)
        except SessionNotFound:
            if named is not None:
                raise
            continue  # deleted since the list was read
        turns = await hub.history.page(source, None, limit - len(rows))
        rows += [_row(source.session, past.turn) for past in reversed(turns)]
    return shown_response(rows)


async def _get(request: Request) -> Response:
    asker = requester(request)
    source, past = await _find_run(request, asker.read)
    # A turn that is not over needs its live session. If a failure removed the session from memory,
    # a client that repeats this request until the turn ends would otherwise wait for ever: the turn
    # ends when the session is loaded and recovered.
    if past.turn.status not in FINAL_STATUSES:
        source, past = await _find_run(request, asker.find)
    return shown_response(_row(source.session, past.turn) | result_of(past))


async def _stream(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope)
    asker = requester(request)
    live, past = await _find_run(request, asker.find)
    await follow(asker, run_of(live, past.turn), receive, send)


async def _find_run(request: Request, find: Callable[[str], Awaitable[S]]) -> tuple[S, PastTurn]:
    """Return the session and the turn of a run; `find` finds the session.

    Raises:
        SessionNotFound: The run does not exist or belongs to another user.
    """
    session_id, turn_id = split_run(request.path_params["run_id"])
    source = await find(session_id)
    past = await (await requester(request).hub()).history.turn(source, turn_id)
    if past is None:
        raise SessionNotFound(f"no run {request.path_params['run_id']!r}")
    return source, past


def _row(session: Session, turn: TurnScreen) -> JsonObject:
    head = session.head
    return {
        "id": f"{head.session_id}.{turn.id}",
        "session_id": head.session_id,
        "turn_id": turn.id,
        "workflow": head.workflow,
        "status": turn.status,
        "input": turn.inputs[0].data if turn.inputs else {},
    }


def result_of(past: PastTurn) -> JsonObject:
    """Return the output of a turn up to now."""
    turn = past.turn
    return {
        "text": past.text,
        "components": [part for part in past.output if "/" not in part.id],
        "tools": [tool_object(run) for run in turn.tools],
        "errors": turn.errors,
        "usage": turn.usage,
    }


async def follow(asker: Requester, run: Run, receive: Receive, send: Send) -> None:
    """Stream a turn as events of the draft, until it ends or waits for an answer."""
    hub, live = await asker.hub(), run.live
    outbox = QueueOutbox()
    viewer_id = secrets.token_hex(8)
    viewer = Viewer(viewer_id, traced(outbox, viewer_id, "json"), "json")
    outbox.viewer = viewer
    head = live.session.head
    hello = RendererHello(
        session_id=head.session_id,
        capabilities=_CAPABILITIES,
        resume=Resume(head.epoch, run.since),
    )
    try:
        hub.attach(viewer, live, hello)
        log_arrival(viewer, "workflow stream")
        writer = WorkflowWriter(run)
        with asker.streaming(outbox):
            await stream(receive, send, outbox, writer)
    finally:
        hub.detach(viewer)
        logger.info("renderer %s is gone", viewer.id)


# -- the draft's events ---------------------------------------------------------------------------


class WorkflowWriter(ReadyEvents):
    """Converts frames for a renderer of the draft into the workflow events of the draft.

    The stream ends with the turn or with a question. The answer to a question begins a new stream.

    Source: protocol.md 6 (workflow SSE).
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run
        self._turn_id = run.turn.id
        self._decoder = agent_decoder("json")
        self._screen = Screen()
        """Screen after all messages. The draft has no patches, so a patched component is sent
        again as a whole."""
        self._pending: list[Render | Patch] = []
        self._prime()

    def _prime(self) -> None:
        """Apply what the screen showed before the stream, because the turn may patch it."""
        if self._run.shown is not None:
            for message in self._run.shown:
                self._screen.apply(message)
            return
        session = self._run.live.session
        for message in snapshot(session.screen, session.name, _PROFILE):
            if getattr(message, "turn_id", None) != self._turn_id:
                self._screen.apply(message)

    def begin(self) -> bytes:
        """Return the first event."""
        return _named("run_id", {"run_id": self._run.id})

    def event(self, frame: bytes) -> bytes:
        """Return the events of one frame."""
        return b"".join(self._one(message) for message in self._decoder.decode(frame))

    def end(self, code: int, reason: str) -> bytes:
        """Return no bytes, because the draft has no event for the end of a connection."""
        return b""

    def _one(self, message: object) -> bytes:
        if getattr(message, "turn_id", None) not in (self._turn_id, None):
            return b""
        self._screen.apply(message)
        match message:
            case Delta(payload=payload):
                return _named("delta", {"delta": payload.delta})
            case ToolStart(payload=start):
                return _named("tool_start", {"tool": start.tool, "args": start.args})
            case ToolEnd(payload=end):
                return _named("tool_end", {"tool": end.tool, "ok": end.ok})
            case ErrorMessage(payload=error):
                return _named("error", {"error": error.error, "code": error.code})
            case Render() | Patch():
                self._pending.append(message)
            case Commit():
                return self._commit(message)
            case TurnMessage() | InputEcho() if self._awaits_answer():
                return self._end()
        return b""

    def _awaits_answer(self) -> bool:
        """Return whether the stream can end because the turn waits for a user's answer.

        The turn is queued behind a turn that waits for an answer, or it waits itself and all its
        open questions were sent.
        """
        if self._run.is_held():
            return True
        asked = self._run.waits_for()
        return bool(asked) and all(self._shows(surface, name) for surface, name in asked or ())

    def _shows(self, surface: str, component_id: str) -> bool:
        tree = self._screen.surfaces.get(surface)
        return tree is not None and component_id in tree.nodes

    def _end(self) -> bytes:
        self.done = True
        return encode_event(DONE.encode(), name="done")

    def _commit(self, commit: Commit) -> bytes:
        pending, self._pending = self._pending, []
        shown = b"".join(event for change in pending for event in self._renders(change))
        if not commit.final:
            return shown
        if commit.usage:
            shown += _named("usage", commit.usage)
        return shown + self._end()

    def _renders(self, change: Render | Patch) -> list[bytes]:
        tree = self._screen.surfaces[change.surface]
        if isinstance(change, Render):
            tool, ids = change.tool_name or "", [component.id for component in change.components]
        else:
            tool, ids = "", [_target(op) for op in change.ops]
        roots: dict[str, None] = {}
        out: list[bytes] = []
        for name in ids:
            node = tree.nodes.get(name) or tree.gone.get(name)
            while node is not None and node.parent is not None:
                node = node.parent
            if node is not None and node.id in tree.nodes:
                roots[node.id] = None
            elif node is not None:
                # The draft has no event for a deletion. Its clients ignore this additional event.
                out.append(_named("tool_remove", {"id": node.id}))
        return out + [_shown(tree.component(root), tool) for root in roots]


def _shown(component: Component, tool: str) -> bytes:
    props = component.props
    data = {"tool": tool, "component": component.type, "props": props, "id": component.id}
    return _named("tool_render", data)


def _target(op: object) -> str:
    component = getattr(op, "component", None)
    return component.id if component is not None else getattr(op, "target", "")


def _named(name: str, data: JsonObject) -> bytes:
    return encode_event(encode_shown(data), name=name)


WORKFLOW_ROUTES = [
    Route("/_api/runs", _list),
    StreamRoute("/_api/runs/stream/{run_id:path}", _stream),
    Route("/_api/runs/{run_id:path}", _get),
    StreamRoute("/{workflow:path}", _workflow, None),
]
"""The last route matches every path that no other route has; it looks up the workflow."""
