"""Sessions over HTTP: the list, a snapshot, a thread, and facts by page or as a stream."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from arp.control.control import Control
from arp.control.facts import Room
from arp.control.method import SessionParams, read_params
from arp.control.sessions import ListSessions, ReadEvents, ReadSession
from arp.protocol.errors import ArpError
from arp.protocol.framing.event_stream import EVENT_STREAM, encode_event
from arp.protocol.json_value import JsonObject
from arp.server.answers import json_response
from arp.server.state import StreamRoute, requester
from arp.transport.event_stream import ReadyEvents, parse_place, stream
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Scope, Send

_NUMBERS = ("after", "limit")
_NUMBERS_OF_ONE = ("after", "before", "limit")
"""Of a session; in a list of them `before` is a cursor."""


async def _list(request: Request) -> Response:
    wanted = read_params("query", ListSessions, _query(request))
    return json_response(await (await requester(request).control()).sessions.page(wanted))


async def _snapshot(request: Request) -> Response:
    return await _read(request, "session")


async def _thread(request: Request) -> Response:
    return await _read(request, "thread")


async def _read(request: Request, view: str) -> Response:
    wanted = read_params("query", ReadSession, {**_query(request), "view": view})
    return json_response(await (await requester(request).control()).sessions.read(wanted))


async def _verification(request: Request) -> Response:
    wanted = read_params("query", SessionParams, _query(request))
    return json_response(await (await requester(request).control()).sessions.verify(wanted))


def _query(request: Request) -> JsonObject:
    """Return a query as parameters; what is not a number stays a text, which is then refused."""
    query: JsonObject = dict(request.query_params)
    session_id = request.path_params.get("session_id")
    for name in _NUMBERS if session_id is None else _NUMBERS_OF_ONE:
        text = query.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 17:
            query[name] = int(text)
    if query.get("allUsers") in ("true", "false"):
        query["allUsers"] = query["allUsers"] == "true"
    if "type" in query:
        del query["type"]
        query["types"] = request.query_params.getlist("type")
    return query if session_id is None else {**query, "sessionId": session_id}


async def _events(scope: Scope, receive: Receive, send: Send) -> None:
    """Send facts behind a sequence: a page of them, or a stream of all, stored and new."""
    request = Request(scope)
    asker = requester(request)
    control = await asker.control()
    wanted = read_params("query", ReadEvents, _query(request))
    if EVENT_STREAM not in request.headers.get("accept", ""):
        response = json_response(await control.sessions.events(wanted))
        await response(scope, receive, send)
        return
    context = await control.context.reader(wanted.session_id)
    head = await context.head(wanted.session_id)
    place = parse_place(request.headers.get("last-event-id", ""))
    if place is not None and place[0] == head.epoch:
        wanted = msgspec.structs.replace(wanted, after=place[1])
    await context.live(wanted.session_id)
    outbox = QueueOutbox()
    room = outbox.viewer = Room(outbox)
    sending = _send(control, wanted, outbox, room, head.epoch)
    task = asyncio.get_running_loop().create_task(sending, name="arp-events")
    try:
        with asker.streaming(outbox):
            await stream(receive, send, outbox, ReadyEvents())
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def _send(
    control: Control, wanted: ReadEvents, outbox: QueueOutbox, room: Room, epoch: str
) -> None:
    """Send the facts behind a sequence, each named by its own, until the session is gone.

    Then the stream ends, and may be requested again.
    """
    facts = control.sessions.follow(wanted.session_id, wanted.after, wanted.types)
    try:
        async with aclosing(facts):
            async for sequence, fact in facts:  # a stored fact is one line
                outbox.send([encode_event(fact, event_id=f"{epoch}-{sequence}")])
                await room.wait()
    except ArpError:
        outbox.close(1011, "the session is gone")


_PLACE = "/_api/sessions/{session_id:path}"

SESSION_ROUTES = [
    Route("/_api/sessions", _list),
    Route(f"{_PLACE}/snapshot", _snapshot),
    Route(f"{_PLACE}/thread", _thread),
    Route(f"{_PLACE}/verification", _verification),
    StreamRoute(f"{_PLACE}/events", _events),
]
