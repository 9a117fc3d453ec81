"""Runs: each turn under its own id, to read it or to follow it again after a lost stream.

A run's id is `{session_id}.{turn_id}`.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from arp.hub.delivery import Viewer
from arp.hub.live import LiveSession
from arp.hub.trace import traced
from arp.protocol.capabilities import AGENT_FEATURES, LEVELS
from arp.protocol.codec import agent_decoder
from arp.protocol.components import Component
from arp.protocol.errors import SessionNotFound
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import (
    AgentMessage,
    Commit,
    Delta,
    ErrorMessage,
    Patch,
    Render,
    RendererCapabilities,
    RendererHello,
    Resume,
    ToolEnd,
    ToolStart,
)
from arp.protocol.screen import Screen, TurnScreen
from arp.server.answers import json_response
from arp.server.chats import bounded, tool_object
from arp.server.state import ServerState, log_arrival
from arp.session.window import PastTurn
from arp.transport.event_stream import ReadyEvents, event, stream
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Scope, Send
from arp.view.snapshot import snapshot

logger = logging.getLogger(__name__)

RECENT_SESSIONS = 20
"""Sessions whose runs a list shows when none is named."""

_NOT_OF_THE_DRAFT = ("batch", "frame-ack", "thinking", "tool-detail")
_FEATURES = [name for name in AGENT_FEATURES if name not in _NOT_OF_THE_DRAFT]


def run_routes(state: ServerState) -> list[BaseRoute]:
    """Return the routes of this file."""
    runs = _Runs(state)
    return [
        Route("/_api/runs", runs.list),
        Route("/_api/runs/stream/{run_id:path}", _RunStream(state), methods=["GET"]),
        Route("/_api/runs/{run_id:path}", runs.get),
    ]


def split_run(run_id: str) -> tuple[str, str]:
    """Return the session and the turn that a run's id names."""
    session_id, _, turn_id = run_id.rpartition(".")
    return session_id, turn_id


class _Runs:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def list(self, request: Request) -> Response:
        hub = await self._state.hub()
        principal = request.scope["arp"].principal
        limit = bounded(request.query_params.get("limit"), 50, 200)
        named = request.query_params.get("session_id")
        if named is not None:
            sessions = [await hub.find(named, principal)]
        else:
            metas = await hub.metas(principal, limit=RECENT_SESSIONS)
            sessions = [await hub.find(meta.id, principal) for meta in metas]
        rows: list[JsonObject] = []
        for live in sessions:
            if len(rows) < limit:
                turns = await hub.history.page(live, None, limit - len(rows))
                rows += [_row(live, past.turn) for past in reversed(turns)]
        return json_response(rows)

    async def get(self, request: Request) -> Response:
        live, past = await find_run(self._state, request)
        return json_response(_row(live, past.turn) | result_of(past))


async def find_run(state: ServerState, request: Request) -> tuple[LiveSession, PastTurn]:
    """Return a run's session and turn.

    Raises:
        SessionNotFound: No such run, or somebody else's.
    """
    session_id, turn_id = split_run(request.path_params["run_id"])
    hub = await state.hub()
    live = await hub.find(session_id, request.scope["arp"].principal)
    past = await hub.history.turn(live, turn_id)
    if past is None:
        raise SessionNotFound(f"no run {request.path_params['run_id']!r}")
    return live, past


def _row(live: LiveSession, turn: TurnScreen) -> JsonObject:
    head = live.session.head
    return {
        "id": f"{head.session_id}.{turn.id}",
        "session_id": head.session_id,
        "turn_id": turn.id,
        "workflow": head.workflow,
        "status": turn.status,
        "input": turn.inputs[0].data if turn.inputs else {},
    }


def result_of(past: PastTurn) -> JsonObject:
    """Return what a turn has shown so far."""
    turn = past.turn
    return {
        "text": past.text,
        "components": [part for part in past.output if "/" not in part.id],
        "tools": [tool_object(run) for run in turn.tools],
        "errors": turn.errors,
        "usage": turn.usage,
    }


class _RunStream:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        live, past = await find_run(self._state, Request(scope))
        await follow(self._state, live, past.turn, receive, send)


async def follow(
    state: ServerState, live: LiveSession, turn: TurnScreen, receive: Receive, send: Send
) -> None:
    """Stream a turn from its beginning as the draft's events; the turn does not depend on it."""
    hub = await state.hub()
    outbox = QueueOutbox()
    viewer_id = secrets.token_hex(8)
    viewer = Viewer(viewer_id, traced(outbox, viewer_id, "json"), "json")
    outbox.viewer = viewer
    head = live.session.head
    begin = turn.inputs[0].seq if turn.inputs else None
    hello = RendererHello(
        session_id=head.session_id,
        capabilities=RendererCapabilities(dict.fromkeys(LEVELS["standard"], 1), _FEATURES),
        resume=Resume(head.epoch, (begin or 1) - 1),
    )
    try:
        hub.attach(viewer, live, hello)
        log_arrival(viewer, "workflow stream")
        writer = WorkflowWriter(f"{head.session_id}.{turn.id}", turn.id)
        writer.prime(snapshot(live.session.screen, live.session.name, viewer.profile))
        with state.streaming(outbox):
            await stream(receive, send, outbox, writer)
    finally:
        hub.detach(viewer)
        logger.info("renderer %s is gone", viewer.id)


# -- the draft's events ----------------------------------------------------------------------------


class WorkflowWriter(ReadyEvents):
    """Turns the frames of a renderer that knows only the draft into the draft's workflow events.

    The turn's end ends the stream. Source: protocol.md 6 (workflow SSE).
    """

    def __init__(self, run_id: str, turn_id: str) -> None:
        super().__init__()
        self._run_id = run_id
        self._turn_id = turn_id
        self._decoder = agent_decoder("json")
        self._screen = Screen()
        """The draft's stream has no patches: a patched component is rendered again as a whole."""
        self._pending: list[Render | Patch] = []

    def prime(self, messages: Sequence[AgentMessage]) -> None:
        """Apply what was there before: this turn may patch it."""
        for message in messages:
            if getattr(message, "turn_id", None) != self._turn_id:
                self._screen.apply(message)

    def begin(self) -> bytes:
        """Return the first event."""
        return _named("run_id", {"run_id": self._run_id})

    def event(self, frame: bytes) -> bytes:
        """Return the events of one frame."""
        return b"".join(self._one(message) for message in self._decoder.decode(frame))

    def end(self, code: int, reason: str) -> bytes:
        """Return nothing: the draft has no event for it."""
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
        return b""

    def _commit(self, commit: Commit) -> bytes:
        pending, self._pending = self._pending, []
        shown = b"".join(event for change in pending for event in self._renders(change))
        if not commit.final:
            return shown
        self.done = True
        if commit.usage:
            shown += _named("usage", commit.usage)
        return shown + event(b"[DONE]", name="done")

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
    return event(msgspec.json.encode(data), name=name)
