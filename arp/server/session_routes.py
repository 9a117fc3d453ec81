"""Sessions over HTTP: the list, a snapshot, a thread, and facts by page or as a stream."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec
from msgspec import Struct
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
from arp.transport.event_stream import EventWriter, parse_place, stream
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Scope, Send

HIGH_WATER_BYTES = 256 << 10
"""As much may wait for one stream as for one renderer."""

_NUMBERS = ("after", "limit")
_NUMBERS_OF_ONE = ("after", "before", "limit")
"""Of a session; in a list of them `before` is a cursor."""


def session_routes(state: ServerState) -> list[BaseRoute]:
    """Gives the routes of this file."""
    sessions = _Sessions(state)
    place = "/_api/sessions/{session_id:path}"
    return [
        Route("/_api/sessions", sessions.list),
        Route(f"{place}/snapshot", sessions.snapshot),
        Route(f"{place}/thread", sessions.thread),
        Route(f"{place}/verification", sessions.verification),
        Route(f"{place}/events", _Events(state), methods=["GET"]),
    ]


class _Sessions:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def list(self, request: Request) -> Response:
        control = await self._state.control(request.scope["arp"].principal)
        asked = read_params("query", ListSessions, _query(request))
        return json_response(await control.sessions.page(asked))

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
        asked = read_params("query", ReadSession, {**_query(request), "view": view})
        return json_response(await control.sessions.read(asked))


def _query(request: Request) -> JsonObject:
    """Gives a query as parameters; one that is no number stays a text, and is refused as such."""
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


class _Events:
    """Facts behind a sequence: a page of them, or all and then each as it happens."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        control = await self._state.control(scope["arp"].principal)
        asked = read_params("query", ReadEvents, _query(request))
        if "text/event-stream" not in request.headers.get("accept", ""):
            response = json_response(await control.sessions.events(asked))
            await response(scope, receive, send)
            return
        head = await control.context.head(asked.session_id)
        place = parse_place(request.headers.get("last-event-id", ""))
        after = place[1] if place is not None and place[0] == head.epoch else asked.after
        await control.context.live(asked.session_id)
        await self._stream(control, asked, after, FactWriter(head.epoch), (receive, send))

    async def _stream(
        self,
        control: Control,
        asked: ReadEvents,
        after: int,
        writer: FactWriter,
        ends: tuple[Receive, Send],
    ) -> None:
        outbox = QueueOutbox()
        source = Source(control, asked, after, outbox)
        outbox.viewer = source
        streams = self._state.streams
        streams.add(outbox)
        telling = asyncio.get_running_loop().create_task(source.run(), name="arp-events")
        try:
            await stream(*ends, outbox, writer)
        finally:
            streams.discard(outbox)
            telling.cancel()
            await asyncio.wait((telling,))


class Source:
    """Puts facts into an outbox, as long as little waits there."""

    def __init__(
        self, control: Control, asked: ReadEvents, after: int, outbox: QueueOutbox
    ) -> None:
        self._control = control
        self._asked = asked
        self._after = after
        self._outbox = outbox
        self._room = asyncio.Event()

    def drained(self) -> None:
        """Is called when little waits."""
        self._room.set()

    async def run(self) -> None:
        """Tells facts until the session is gone; then the stream ends and may be asked again."""
        asked = self._asked
        facts = self._control.sessions.follow(asked.session_id, self._after, asked.types)
        try:
            async with aclosing(facts):
                async for _, fact in facts:
                    self._outbox.send([fact])
                    while self._outbox.buffered > HIGH_WATER_BYTES:
                        self._room.clear()
                        await self._room.wait()
        except ArpError:
            self._outbox.close(1011, "the session is gone")


class _Placed(Struct):
    sequence: int


_decoder = msgspec.json.Decoder(_Placed)


class FactWriter(EventWriter):
    """Turns each fact into one event, named by its place."""

    def __init__(self, epoch: str) -> None:
        super().__init__(epoch)
        self._place = f"id: {epoch}-"

    def begin(self) -> bytes:
        """Says that the stream has begun."""
        return b": \n\n"

    def event(self, frame: bytes) -> bytes:
        """Gives one event. A stored fact is one line."""
        place = f"{self._place}{_decoder.decode(frame).sequence}\ndata: "
        return b"".join((place.encode(), frame, b"\n\n"))
