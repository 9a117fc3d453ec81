"""Server-sent events and POST: the session dialect for clients without WebSocket.

`GET /_arp/v1/events?session_id=…&hello=…` is the stream. `hello` is the renderer's hello as JSON in
base64url; without it, the client gets all components. `POST /_arp/v1/input` receives inputs as
JSON, or as multipart/form-data with files.
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
from starlette.routing import Route

from arp.hub.inbound import LARGE_BYTES, ParsedFrame
from arp.hub.peers.peer import Peer
from arp.live.trace import is_tracing, log_received
from arp.protocol.capabilities import PING
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import encode_json
from arp.protocol.connection.agent_connection import AgentConnection, RejectedMessage
from arp.protocol.errors import ArpError, InvalidMessage, UnknownObject, error_payload
from arp.protocol.messages import AgentMessage, ErrorMessage, Input, InputAck, Ping, Pong
from arp.server.answers import status_of
from arp.server.state import Requester, ServerState, StreamRoute, log_arrival, requester
from arp.server.uploads import UploadedFile, UploadedForm
from arp.transport.event_stream import EventWriter, Pulse, parse_place, stream
from arp.transport.queue_outbox import QueueOutbox
from arp.transport.websocket import Receive, Scope, Send

EVERYTHING = {
    "components": list(VERSIONS),
    "features": ["streaming", "input", "resume", "multi-surface"],
}
"""Capabilities of a client without a hello (protocol.md 2.2)."""

FIELD_PART = "fields."
"""Prefix of the part names of files that answer a file field of a form."""


async def _events(scope: Scope, receive: Receive, send: Send) -> None:
    """Send server-sent events to one renderer until either side ends the stream."""
    asker: Requester = scope["arp"]
    state = asker.state
    request = Request(scope)
    hello = _hello(request)
    workflow = _workflow(state, scope)
    hub = await state.hub()
    outbox = QueueOutbox()
    principal, check = asker.principal, partial(state.admit_token, scope)
    peer = Peer(hub, outbox, "json", workflow, principal, check)
    # Any page can make a browser send a GET, so only an input makes a session.
    peer.may_create_session = False
    outbox.viewer = peer.viewer
    peer.viewer.said_hello = bool(request.query_params.get("hello"))
    log_arrival(peer.viewer, "event stream", scope)
    peer.start()
    ping = Ping(id=secrets.token_hex(8))  # unguessable, because the pong comes by POST
    try:
        with asker.streaming(outbox):
            await peer.receive(encode_json(hello))
            if peer.refusal is not None:
                # The client cannot send a second hello, so the stream would stay silent.
                raise peer.refusal
            pulse = None
            if peer.viewer.profile.takes(PING):
                pulse = state.pulses[ping.id] = Pulse(encode_json(ping))
            await stream(receive, send, outbox, EventWriter(_epoch(hello)), pulse)
    finally:
        state.pulses.pop(ping.id, None)
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


async def _inputs(request: Request) -> Response:
    """Receive inputs; each is answered when it is durable."""
    intake = requester(request).state.intake
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "multipart/form-data":
            async with intake.form(request) as form:
                return await _submit(request, frame_of_form(form), form.files)
        if kind == "application/json":
            return await _submit(request, await intake.body(request))
    except ArpError as error:
        return _response([error_answer(error)], status_of(error_payload(error)))
    reason = "content-type: send application/json or multipart/form-data"
    return _response([error_answer(InvalidMessage(reason))], 415)


async def _submit(request: Request, frame: bytes, files: Sequence[UploadedFile] = ()) -> Response:
    asker = requester(request)
    workflow = _workflow(asker.state, request.scope)
    traceparent = request.headers.get("traceparent")
    answers = await answers_to(frame, files, asker, workflow, traceparent)
    return _response(answers, _status(answers))


async def answers_to(
    frame: bytes,
    files: Sequence[UploadedFile],
    asker: Requester,
    workflow: str,
    traceparent: str | None = None,
) -> list[AgentMessage]:
    """Process a frame that came in a request instead of a connection, and return its answers.

    Args:
        frame: JSON in the session dialect: inputs, pings and pongs.
        files: Files of the input.
        asker: Sender of the frame.
        workflow: Agent of a new session.
        traceparent: Span of the caller in the format of W3C Trace Context.
    """
    hub = await asker.hub()
    connection = AgentConnection("json", hub.settings.limits)
    answers: list[AgentMessage] = []
    if len(frame) < LARGE_BYTES:
        read = ParsedFrame(connection.receive(frame), [])
    else:
        read = await hub.inbound.events(connection, frame)
    if is_tracing():
        log_received("without a connection", read.value, len(frame))
    with hub.inbound.redactor.knowing(read.cleaned):
        for event in read.value:
            match event:
                case Input():
                    answers.append(
                        await hub.submit(event, asker.principal, workflow, files, traceparent)
                    )
                case Ping():
                    answers.append(Pong(id=event.id))
                case Pong():
                    # The pong belongs to an event stream, which may have ended since.
                    if (pulse := asker.state.pulses.get(event.id)) is not None:
                        pulse.record_pong()
                case RejectedMessage():
                    answers.append(error_answer(event.error, event.input_id))
                case _:
                    reason = "only inputs, pings and pongs are accepted here"
                    answers.append(error_answer(InvalidMessage(reason)))
    return answers


def frame_of_form(form: UploadedForm) -> bytes:
    """Return the input in a form as a frame, with references to its files in the data.

    The file of a part named `fields.NAME` is the value of the form field NAME. Other files are in
    `data.files`.

    Raises:
        InvalidMessage: The field `message` is not an input as a JSON object.
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


def error_answer(error: BaseException, input_id: str | None = None) -> ErrorMessage:
    """Return the error message for a refused request or input."""
    return ErrorMessage(payload=error_payload(error, input_id))


def _status(answers: list[AgentMessage]) -> int:
    if not answers or any(isinstance(answer, InputAck | Pong) for answer in answers):
        return 200
    first = answers[0]
    assert isinstance(first, ErrorMessage)
    return status_of(first.payload)


def _response(answers: list[AgentMessage], status: int) -> Response:
    return Response(encode_json(answers), status, media_type="application/json")


TRANSPORT_ROUTES = [
    StreamRoute("/_arp/v1/events", _events),
    Route("/_arp/v1/input", _inputs, methods=["POST"]),
]
