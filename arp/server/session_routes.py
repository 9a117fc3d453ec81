"""Sessions over HTTP: the list, a snapshot, a thread, and facts by page or as a stream."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from arp.control.control import Control
from arp.control.method import SessionParams, read_params
from arp.control.sessions import ListSessions, ReadEvents, ReadSession
from arp.protocol.errors import ArpError
from arp.protocol.json_value import JsonObject
from arp.server.answers import json_response
from arp.server.state import StreamRoute, requester
from arp.transport.event_stream import ReadyEvents, event, parse_place, stream
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Scope, Send

HIGH_WATER_BYTES = 256 << 10
"""The same limit as for a renderer's outbox."""

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
    if "text/event-stream" not in request.headers.get("accept", ""):
        response = json_response(await control.sessions.events(wanted))
        await response(scope, receive, send)
        return
    head = await control.context.head(wanted.session_id)
    place = parse_place(request.headers.get("last-event-id", ""))
    after = place[1] if place is not None and place[0] == head.epoch else wanted.after
    await control.context.live(wanted.session_id)
    outbox = QueueOutbox()
    source = outbox.viewer = FactSource(control, wanted, outbox, head.epoch)
    telling = asyncio.get_running_loop().create_task(source.run(after), name="arp-events")
    try:
        with asker.state.streaming(outbox):
            await stream(receive, send, outbox, ReadyEvents())
    finally:
        telling.cancel()
        await asyncio.wait((telling,))


class FactSource:
    """Puts facts into an outbox as events, and waits while the outbox is full."""

    def __init__(
        self, control: Control, wanted: ReadEvents, outbox: QueueOutbox, epoch: str
    ) -> None:
        self._control = control
        self._wanted = wanted
        self._outbox = outbox
        self._epoch = epoch
        self._has_room = asyncio.Event()

    def drained(self) -> None:
        """Is called when the outbox has room."""
        self._has_room.set()

    async def run(self, after: int) -> None:
        """Send the facts behind a sequence, each named by its own, until the session is gone.

        Then the stream ends, and may be requested again.
        """
        session_id, types = self._wanted.session_id, self._wanted.types
        facts = self._control.sessions.follow(session_id, after, types)
        try:
            async with aclosing(facts):
                async for sequence, fact in facts:  # a stored fact is one line
                    self._outbox.send([event(fact, place=f"{self._epoch}-{sequence}")])
                    while self._outbox.buffered > HIGH_WATER_BYTES:
                        self._has_room.clear()
                        await self._has_room.wait()
        except ArpError:
            self._outbox.close(1011, "the session is gone")


_PLACE = "/_api/sessions/{session_id:path}"

SESSION_ROUTES = [
    Route("/_api/sessions", _list),
    Route(f"{_PLACE}/snapshot", _snapshot),
    Route(f"{_PLACE}/thread", _thread),
    Route(f"{_PLACE}/verification", _verification),
    StreamRoute(f"{_PLACE}/events", _events),
]
