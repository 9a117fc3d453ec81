"""Server-sent events and POST: the session dialect for clients without WebSocket.

`GET /_arp/v1/events?session_id=…&hello=…` streams; `hello` is the renderer's hello as base64url
JSON; without one the client gets everything. `POST /_arp/v1/input` takes inputs as JSON, or as
multipart/form-data with files.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from arp.hub.hub import Hub
from arp.hub.inbound import LARGE_BYTES, Read
from arp.hub.peer import Peer
from arp.hub.trace import is_tracing, log_received
from arp.protocol.agent_connection import AgentConnection, Rejected
from arp.protocol.capabilities import PING
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import encode_json
from arp.protocol.errors import ArpError, InvalidMessage, UnknownObject, error_payload
from arp.protocol.messages import AgentMessage, ErrorMessage, Input, InputAck, Ping, Pong
from arp.server.answers import status_of
from arp.server.state import ServerState, log_arrival
from arp.server.uploads import Form, UploadedFile
from arp.transport.event_stream import EventWriter, Pulse, parse_place, stream
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Scope, Send

EVERYTHING = {
    "components": list(VERSIONS),
    "features": ["streaming", "input", "resume", "multi-surface"],
}
"""What a client without a hello is assumed to show (protocol.md 2.2)."""

FIELD_PART = "fields."
"""The prefix of a part's name that answers a file field of a form."""


def stream_routes(state: ServerState) -> list[BaseRoute]:
    """Return the routes of this transport."""
    return [
        Route("/_arp/v1/events", _Events(state), methods=["GET"]),
        Route("/_arp/v1/input", _Inputs(state), methods=["POST"]),
    ]


class _Events:
    """The stream of one renderer."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        hello = _hello(request)
        workflow = _workflow(self._state, scope)
        hub = await self._state.hub()
        outbox = QueueOutbox()
        principal, check = scope["arp"].principal, partial(self._state.shown_token, scope)
        peer = Peer(hub, outbox, "json", workflow, principal, check)
        # Any page can make a browser send a GET, so only an input makes a session.
        peer.may_make = False
        outbox.viewer = peer.viewer
        peer.viewer.said_hello = bool(request.query_params.get("hello"))
        log_arrival(peer.viewer, "event stream", scope)
        peer.start()
        ping = Ping(id=secrets.token_hex(8))  # a secret between the two: the answer comes by POST
        try:
            with self._state.streaming(outbox):
                await peer.receive(encode_json(hello))
                if peer.refusal is not None:
                    # A stream cannot send a second hello: it would stay silent.
                    raise peer.refusal
                pulse = None
                if peer.viewer.profile.takes(PING):
                    pulse = self._state.pulses[ping.id] = Pulse(encode_json(ping))
                await stream(receive, send, outbox, EventWriter(_epoch(hello)), pulse)
        finally:
            self._state.pulses.pop(ping.id, None)
            peer.closed()


def _workflow(state: ServerState, scope: Scope) -> str:
    name = state.workflow_named(scope)
    if name is None:
        raise UnknownObject("no agent of that name; /_api/workflows lists them", detail="workflow")
    return name


def _hello(request: Request) -> dict[str, Any]:
    text = request.query_params.get("hello", "")
    try:
        padded = text + "=" * (-len(text) % 4)
        hello = msgspec.json.decode(base64.urlsafe_b64decode(padded)) if text else {}
    except (ValueError, binascii.Error, RecursionError):
        hello = None
    if not isinstance(hello, dict):
        raise InvalidMessage("hello: expected a JSON object as base64url", detail="hello")
    hello = {"type": "hello", "v": 1, **(hello if text else {"capabilities": EVERYTHING})}
    session_id = request.query_params.get("session_id")
    if session_id is not None:
        hello["session_id"] = session_id
    place = parse_place(request.headers.get("last-event-id", ""))
    if place is not None:
        hello["resume"] = {"epoch": place[0], "seq": place[1]}
    return hello


def _epoch(hello: dict[str, Any]) -> str | None:
    resume = hello.get("resume")
    epoch = resume.get("epoch") if isinstance(resume, dict) else None
    return epoch if isinstance(epoch, str) and epoch.isalnum() else None


class _Inputs:
    """Inputs by POST, each answered when it is durable."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._take(request)
        except ArpError as error:
            response = _failed(error)
        await response(scope, receive, send)

    async def _take(self, request: Request) -> Response:
        hub = await self._state.hub()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "multipart/form-data":
            async with self._state.intake.form(request) as form:
                return await self._submit(request, hub, _frame_of_form(form), form.files)
        if kind == "application/json":
            frame = await self._state.intake.body(request)
            return await self._submit(request, hub, frame)
        reason = "content-type: send application/json or multipart/form-data"
        return _response([_error(InvalidMessage(reason))], 415)

    async def _submit(
        self, request: Request, hub: Hub, frame: bytes, files: Sequence[UploadedFile] = ()
    ) -> Response:
        connection = AgentConnection("json", hub.settings.limits)
        workflow = _workflow(self._state, request.scope)
        traceparent = request.headers.get("traceparent")
        answers: list[AgentMessage] = []
        if len(frame) < LARGE_BYTES:
            read = Read(connection.receive(frame), [])
        else:
            read = await hub.inbound.events(connection, frame)
        if is_tracing():
            log_received("by POST", read.value, len(frame))
        with hub.inbound.redactor.knowing(read.cleaned):
            for event in read.value:
                if isinstance(event, Input):
                    principal = request.scope["arp"].principal
                    answer = await hub.submit(event, principal, workflow, files, traceparent)
                    answers.append(answer)
                elif isinstance(event, Ping):
                    answers.append(Pong(id=event.id))
                elif isinstance(event, Pong):
                    self._answered(event)
                elif isinstance(event, Rejected):
                    answers.append(_error(event.error, event.input_id))
                else:
                    reason = "only inputs, pings and pongs are taken here"
                    answers.append(_error(InvalidMessage(reason)))
        return _response(answers, _status(answers))

    def _answered(self, pong: Pong) -> None:
        """Note that the reader of a stream has answered; the stream may have ended since."""
        pulse = self._state.pulses.get(pong.id)
        if pulse is not None:
            pulse.ponged()


def _frame_of_form(form: Form) -> bytes:
    """Return the input in a form as a frame, with its files in their places.

    A part named `fields.NAME` answers the file field NAME of a form; every other file stands in
    `data.files`.
    """
    try:
        message = msgspec.json.decode(form.fields.get("message", "{}"))
        data = message.setdefault("data", {})
        for file in form.files:
            plain = msgspec.to_builtins(file.ref)
            if file.part.startswith(FIELD_PART):
                data.setdefault("fields", {})[file.part.removeprefix(FIELD_PART)] = plain
            else:
                data.setdefault("files", []).append(plain)
    except (msgspec.DecodeError, AttributeError, TypeError, RecursionError):
        raise InvalidMessage(
            "message: expected an input as a JSON object", detail="message"
        ) from None
    message.setdefault("v", 1)
    message.setdefault("type", "input")
    message.setdefault("input_type", "file")
    return encode_json(message)


def _error(error: BaseException, input_id: str | None = None) -> ErrorMessage:
    return ErrorMessage(payload=error_payload(error, input_id))


def _status(answers: list[AgentMessage]) -> int:
    if not answers or any(isinstance(answer, InputAck | Pong) for answer in answers):
        return 200
    first = answers[0]
    assert isinstance(first, ErrorMessage)
    return status_of(first.payload)


def _failed(error: ArpError) -> Response:
    return _response([_error(error)], status_of(error_payload(error)))


def _response(answers: list[AgentMessage], status: int) -> Response:
    return Response(encode_json(answers), status, media_type="application/json")
