"""Lists over HTTP: the hello, the workflows, the chats and their history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from arp.hub.hub import Hub
from arp.hub.live import LiveSession
from arp.ledger.fact import decode
from arp.protocol.capabilities import agent_hello
from arp.protocol.json_value import JsonObject
from arp.server.answers import json_response
from arp.store.store import SessionMeta

if TYPE_CHECKING:
    from arp.server.application import Application

MAX_TURNS = 200
"""Turns in one page of a chat's history."""

DEFAULT_TURNS = 50


def chat_routes(application: Application) -> list[BaseRoute]:
    """Gives the routes of this file."""
    chats = _Chats(application)
    return [
        Route("/_api/arp", chats.hello),
        Route("/_api/workflows", chats.workflows),
        Route("/_api/chats", chats.list),
        Route("/_api/chats/{session_id:path}", chats.get, methods=["GET"]),
        Route("/_api/chats/{session_id:path}", chats.delete, methods=["DELETE"]),
    ]


class _Chats:
    def __init__(self, application: Application) -> None:
        self._application = application

    async def hello(self, _: Request) -> Response:
        return json_response(agent_hello(self._application.served.settings.limits))

    async def workflows(self, _: Request) -> Response:
        return json_response(
            [
                {
                    "name": workflow.name,
                    "path": f"/{workflow.name}",
                    "method": "POST",
                    "is_stream": True,
                    "chat_param": "message",
                    "title": workflow.title,
                    "description": workflow.description,
                    "params": [{"Name": "message", "Type": "string"}],
                    "suggestions": list(workflow.suggestions),
                }
                for workflow in self._application.served.workflows()
            ]
        )

    async def list(self, request: Request) -> Response:
        query = request.query_params
        principal = request.scope["arp"].principal
        if query.get("owner", principal.name) != principal.name:
            return json_response([])
        workflow = query.get("workflow", "").lstrip("/") or None
        limit = bounded(query.get("limit"), 50, 200)
        hub = await self._application.hub()
        metas = await hub.metas(
            principal, workflow=workflow, before=query.get("before"), limit=limit
        )
        more = {"x-arp-next": metas[-1].cursor} if len(metas) == limit else {}
        return json_response([_row(meta) for meta in metas], headers=more)

    async def get(self, request: Request) -> Response:
        hub = await self._application.hub()
        live = await hub.find(request.path_params["session_id"], request.scope["arp"].principal)
        meta = await hub.store.session(live.session.head.session_id)
        row = _row(meta) if meta is not None else {"id": live.session.head.session_id}
        before = request.query_params.get("before")
        limit = bounded(request.query_params.get("limit"), DEFAULT_TURNS, MAX_TURNS)
        return json_response({**row, "messages": await _messages(hub, live, before, limit)})

    async def delete(self, request: Request) -> Response:
        hub = await self._application.hub()
        await hub.delete(request.path_params["session_id"], request.scope["arp"].principal)
        return json_response({"deleted": request.path_params["session_id"]})


def bounded(text: str | None, default: int, most: int) -> int:
    """Reads a count from a query; what is no count is the default."""
    if text is None or not (text.isascii() and text.isdigit()):
        return default
    return max(1, min(int(text[:9]), most))


def _row(meta: SessionMeta) -> JsonObject:
    return {
        "id": meta.id,
        "workflow_name": meta.workflow,
        "workflow_path": f"/{meta.workflow}",
        "title": meta.title,
        "owner": meta.owner,
        "created_at": meta.created_at,
        "updated_at": meta.updated_at,
        "message_count": meta.turn_count,
    }


async def _messages(
    hub: Hub, live: LiveSession, before: str | None, limit: int
) -> list[JsonObject]:
    """Gives the turns before one (or the newest), each as a pair of messages with their times."""
    screen = live.session.screen
    turns = list(screen.turns)
    end = turns.index(before) if before in turns else len(turns)
    times = await _times(hub, live.session.head.session_id)
    out: list[JsonObject] = []
    for turn_id in turns[max(0, end - limit) : end]:
        turn = screen.turns[turn_id]
        started, ended = times.get(turn_id, ("", ""))
        for echo in turn.inputs[:1]:
            said = echo.data.get("text", "")
            content = said if isinstance(said, str) else ""
            told = {"input_type": echo.input_type, "data": echo.data}
            out.append(
                {
                    "role": "user",
                    "content": content,
                    "timestamp": started,
                    "turn_id": turn_id,
                    **told,
                }
            )
        shown = [part for part in screen.output(turn_id) if "/" not in part.id]
        events = [{"tool": "", "component": c.type, "props": c.props, "id": c.id} for c in shown]
        answer: JsonObject = {
            "role": "assistant",
            "content": screen.text(turn_id),
            "timestamp": ended,
        }
        tools = [{"tool": run.tool, "args": run.args, "ok": run.ok} for run in turn.tools]
        state = {"turn_id": turn_id, "status": turn.status, "tools": tools, "usage": turn.usage}
        out.append({**answer, "ui_events": events, **state})
    return out


async def _times(hub: Hub, session_id: str) -> dict[str, tuple[str, str]]:
    times: dict[str, tuple[str, str]] = {}
    after = 0
    while chunk := await hub.store.read(session_id, after):
        for _, body in chunk:
            fact = decode(body)
            if fact.turn_id is not None:
                started = times.get(fact.turn_id, (fact.timestamp, ""))[0]
                times[fact.turn_id] = (started, fact.timestamp)
        after = chunk[-1][0]
    return times
