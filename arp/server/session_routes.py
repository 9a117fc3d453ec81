"""Sessions over HTTP: the list, a snapshot, a thread, and facts by page or as a stream."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from arp.control.control import Control
from arp.control.method import SessionParams, read_params
from arp.control.sessions import ListSessions, ReadEvents, ReadSession
from arp.protocol.errors import ArpError
from arp.protocol.json_value import JsonObject
from arp.server.answers import json_response
from arp.server.state import ServerState
from arp.transport.event_stream import ReadyEvents, event, parse_place, stream
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Scope, Send

HIGH_WATER_BYTES = 256 << 10
"""The same limit as for a renderer's outbox."""

_NUMBERS = ("after", "limit")
_NUMBERS_OF_ONE = ("after", "before", "limit")
"""Of a session; in a list of them `before` is a cursor."""


def session_routes(state: ServerState) -> list[BaseRoute]:
    """Return the routes of this file."""
    sessions = _Sessions(state)
    place = "/_api/sessions/{session_id:path}"
    return [
        Route("/_api/sessions", sessions.list),
        Route(f"{place}/snapshot", sessions.snapshot),
        Route(f"{place}/thread", sessions.thread),
        Route(f"{place}/verification", sessions.verification),
        Route(f"{place}/events", _FactEvents(state), methods=["GET"]),
    ]


class _Sessions:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def list(self, request: Request) -> Response:
        control = await self._state.control(request.scope["arp"].principal)
        wanted = read_params("query", ListSessions, _query(request))
        return json_response(await control.sessions.page(wanted))

    async def snapshot(self, request: Request) -> Response:
        return await self._read(request, "session")

    async def thread(self, request: Request) -> Response:
        return await self._read(request, "thread")

    async def verification(self, request: Request) -> Response:
        control = await self._state.control(request.scope["arp"].principal)
        return json_response(
            await control.sessions.verify(read_params("query", SessionParams, _query(request)))
        )

    async def _read(self, request: Request, view: str) -> Response:
        control = await self._state.control(request.scope["arp"].principal)
        wanted = read_params("query", ReadSession, {**_query(request), "view": view})
        return json_response(await control.sessions.read(wanted))


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


class _FactEvents:
    """Facts behind a sequence: a page of them, or a stream of all, stored and new."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        control = await self._state.control(scope["arp"].principal)
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
            with self._state.streaming(outbox):
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
