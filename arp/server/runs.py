"""Runs: each turn by its own id, to look at and to follow again after a lost stream.

A run's id is `{session_id}.{turn_id}`.
"""

from __future__ import annotations

import logging
import secrets

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from arp.hub.live import LiveSession
from arp.hub.trace import traced
from arp.hub.viewer import Viewer
from arp.protocol.capabilities import AGENT_FEATURES, LEVELS
from arp.protocol.errors import SessionNotFound
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import RendererCapabilities, RendererHello, Resume
from arp.protocol.screen import TurnScreen
from arp.server.answers import json_response
from arp.server.chats import bounded, tool_object
from arp.server.state import ServerState, log_arrival
from arp.server.workflow_events import WorkflowWriter
from arp.session.window import PastTurn
from arp.transport.event_stream import stream
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Scope, Send
from arp.view.snapshot import snapshot

logger = logging.getLogger(__name__)

RECENT_SESSIONS = 20
"""Sessions whose runs a list shows when none is named."""

_NOT_OF_THE_DRAFT = ("batch", "frame-ack", "thinking", "tool-detail")
_FEATURES = [name for name in AGENT_FEATURES if name not in _NOT_OF_THE_DRAFT]


def run_routes(state: ServerState) -> list[BaseRoute]:
    """Gives the routes of this file."""
    runs = _Runs(state)
    return [
        Route("/_api/runs", runs.list),
        Route("/_api/runs/stream/{run_id:path}", _RunStream(state), methods=["GET"]),
        Route("/_api/runs/{run_id:path}", runs.get),
    ]


def split_run(run_id: str) -> tuple[str, str]:
    """Takes a run's id apart into session and turn."""
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
    """Gives a run's session and turn.

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
    """Gives what a turn has shown so far."""
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
    """Streams a turn from its beginning as the draft's events; it needs no reader to go on."""
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
    state.streams.add(outbox)
    try:
        hub.attach(viewer, live, hello)
        log_arrival(viewer, "workflow stream")
        writer = WorkflowWriter(f"{head.session_id}.{turn.id}", turn.id)
        writer.prime(snapshot(live.session.screen, live.session.name, viewer.profile))
        await stream(receive, send, outbox, writer)
    finally:
        state.streams.discard(outbox)
        hub.detach(viewer)
        logger.info("renderer %s is gone", viewer.id)
