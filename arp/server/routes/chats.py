"""Lists over HTTP: the agent's hello, workflows, chats, their history, and changes of the list."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from arp.hub.directory import not_found
from arp.hub.hub import Hub
from arp.hub.readers.session_reader import ReadableSession
from arp.live.listing import ChatListQuery
from arp.protocol.capabilities import agent_hello
from arp.protocol.codec import encode_json
from arp.protocol.connection.screen import ToolRun, is_text_part
from arp.protocol.errors import InvalidMessage
from arp.protocol.framing.event_stream import encode_event
from arp.protocol.json_value import JsonObject
from arp.protocol.validate import explain, fits
from arp.server.answers import json_response, shown_response
from arp.server.state import Requester, StreamRoute, requester
from arp.session.session import Session
from arp.session.tracking.window import PastTurn
from arp.store.session_list import Match, SessionMeta
from arp.transport.event_stream import ReadyEvents, stream
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Scope, Send

MAX_TURNS = 200
"""Largest number of turns in a page of a chat's history."""

DEFAULT_TURNS = 50

MAX_QUERY = 512
"""Number of characters of a search that are used."""

MAX_CHANGE_BYTES = 64 << 10

MOST_BYTES = 256 << 10
"""Bytes queued for one stream of list changes; above this the stream ends (1013)."""


class ChatChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Requested changes of a chat; `None` leaves a field unchanged."""

    title: str | None = None
    pinned: bool | None = None


async def _hello(request: Request) -> Response:
    served = requester(request).state.served
    settings = served.settings
    return json_response(
        agent_hello(settings.limits, served.commands(), settings.takes_input, served.about())
    )


async def _workflows(request: Request) -> Response:
    about = requester(request).state.served.about()
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
                "app_title": about.title,
            }
            for workflow in about.workflows
        ]
    )


async def _list(request: Request) -> Response:
    params, asker = request.query_params, requester(request)
    user = asker.principal.name
    if params.get("owner", user) != user:
        return json_response([])
    query = ChatListQuery(
        user,
        params.get("query", "")[:MAX_QUERY],
        params.get("workflow", "").lstrip("/") or None,
        params.get("before"),
        bounded(params.get("limit"), 50, 200),
    )
    matches, more = await (await asker.hub()).listing.page(query)
    headers = {"x-arp-next": more} if more is not None else {}
    return json_response([match_row(match) for match in matches], headers=headers)


async def _get(request: Request) -> Response:
    asker, query = requester(request), request.query_params
    hub, source = await asker.hub(), await asker.read(request.path_params["session_id"])
    limit = bounded(query.get("limit"), DEFAULT_TURNS, MAX_TURNS)
    messages = await _messages(hub, source, query.get("before"), limit)
    row = await _row_of(hub, source.session)
    sealed = source.session.sealed
    if sealed is not None:
        row["read_only"] = sealed.message
    return shown_response({**row, "messages": messages})


async def _row_of(hub: Hub, session: Session) -> JsonObject:
    """Return the row of a chat, after its turns were read.

    Raises:
        SessionNotFound: The session was deleted meanwhile, so turns may be missing.
    """
    meta = await hub.store.session(session.id)
    if meta is not None and meta.epoch == session.epoch:
        return chat_row(meta)
    live = hub.sessions.get(session.id)
    if live is None or live.session is not session:
        raise not_found(session.id)
    return {"id": session.id}  # nothing of it is stored yet


async def _change(request: Request) -> Response:
    asker = requester(request)
    body = await asker.state.intake.body(request, MAX_CHANGE_BYTES)
    try:
        given = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidMessage("body: expected a JSON object") from None
    if not fits(given, ChatChange):
        raise InvalidMessage(explain(given, ChatChange, "body"))
    change = msgspec.convert(given, ChatChange)
    session_id, hub = request.path_params["session_id"], await asker.hub()
    row = await hub.rename(session_id, asker.principal, change.title, change.pinned)
    return json_response(chat_row(row))


async def _delete(request: Request) -> Response:
    session_id, asker = request.path_params["session_id"], requester(request)
    remains = await (await asker.hub()).delete(session_id, asker.principal)
    return json_response({"deleted": session_id, "remains": msgspec.to_builtins(remains)})


def bounded(text: str | None, default: int, most: int) -> int:
    """Return a count from a query, from 1 to `most`; `default` if the text is not a number."""
    if text is None or not (text.isascii() and text.isdigit()):
        return default
    return max(1, min(int(text[:9]), most))


async def _messages(
    hub: Hub, source: ReadableSession, before: str | None, limit: int
) -> list[JsonObject]:
    """Return turns as pairs of messages with times: those before a turn, or the newest ones."""
    turns = await hub.history.page(source, before, limit)
    times = await hub.history.times(source.session.id, turns)
    out: list[JsonObject] = []
    for past in turns:
        turn, (started, ended) = past.turn, times[past.number]
        for echo in turn.inputs[:1]:
            text = echo.data.get("text", "")
            content = text if isinstance(text, str) else ""
            out.append(
                {
                    "role": "user",
                    "content": content,
                    "timestamp": started,
                    "turn_id": turn.id,
                    "input_type": echo.input_type,
                    "data": echo.data,
                }
                | ({"origin": echo.origin} if echo.origin is not None else {})
            )
        shown = [part for part in past.output if "/" not in part.id]
        events = [{"tool": "", "component": c.type, "props": c.props, "id": c.id} for c in shown]
        answer: JsonObject = {"role": "assistant", "content": past.text, "timestamp": ended}
        state = {"turn_id": turn.id, "status": turn.status, "usage": turn.usage}
        order = {"parts": _parts(past), "tools": _tools(past)}
        out.append({**answer, "ui_events": events, **order, **state})
    return out


def _parts(past: PastTurn) -> list[JsonObject]:
    """Return the order of texts and components.

    `content` contains all texts, one after the other; `characters` is the length of each.
    """
    return [
        {"id": part.id, "characters": len(part.props["content"])}
        if is_text_part(part, past.turn.id)
        else {"id": part.id}
        for part in past.output
    ]


def _tools(past: PastTurn) -> list[JsonObject]:
    """Return the tool calls, each with its position among the parts (protocol.md 2.3)."""
    places = {mark.number: mark.behind for mark in past.turn.marks if mark.kind == "tool"}
    return [
        {**tool_object(run), "behind": msgspec.to_builtins(places[number])}
        for number, run in enumerate(past.turn.tools)
    ]


def chat_row(meta: SessionMeta) -> JsonObject:
    """Return the row of a chat in a list."""
    return {
        "id": meta.id,
        "workflow_name": meta.workflow,
        "workflow_path": f"/{meta.workflow}",
        "title": meta.title,
        "pinned": meta.pinned,
        "owner": meta.owner,
        "created_at": meta.created_at,
        "updated_at": meta.updated_at,
        "message_count": meta.turn_count,
    }


def match_row(match: Match) -> JsonObject:
    """Return the row of a chat that matches a search, with the matching text."""
    row = chat_row(match.meta)
    if match.turn_id is not None:
        row["match"] = {"turn_id": match.turn_id, "text": match.excerpt}
    return row


def tool_object(run: ToolRun) -> JsonObject:
    """Return a tool call as JSON; unknown fields are left out."""
    return {
        "tool": run.tool,
        "args": run.args,
        "ok": run.ok,
        **({} if run.error is None else {"error": run.error}),
        **({} if run.result is None else {"result": run.result}),
        **({} if run.result_ref is None else {"result_ref": run.result_ref}),
        **({} if run.duration_ms is None else {"duration_ms": run.duration_ms}),
    }


async def _events(scope: Scope, receive: Receive, send: Send) -> None:
    """Stream the changes of the sender's list of chats, so that lists in other tabs follow them."""
    asker: Requester = scope["arp"]
    hub = await asker.hub()
    outbox = QueueOutbox()

    def send_change(changed: SessionMeta | str) -> None:
        outbox.send([_changed(changed)])
        if outbox.buffered > MOST_BYTES:
            outbox.close(1013, "too slow")

    stop = hub.listing.listen(asker.principal.name, send_change)
    try:
        with asker.streaming(outbox):
            await stream(receive, send, outbox, ReadyEvents())
    finally:
        stop()


def _changed(changed: SessionMeta | str) -> bytes:
    if isinstance(changed, str):
        return encode_event(encode_json({"id": changed}), name="removed")
    return encode_event(encode_json(chat_row(changed)), name="chat")


CHAT_ROUTES = [
    Route("/_api/arp", _hello),
    Route("/_api/workflows", _workflows),
    Route("/_api/chats", _list),
    Route("/_api/chats/{session_id:path}", _get, methods=["GET"]),
    Route("/_api/chats/{session_id:path}", _change, methods=["PATCH"]),
    Route("/_api/chats/{session_id:path}", _delete, methods=["DELETE"]),
    StreamRoute("/_api/chat-events", _events),
]
