"""`POST /{workflow}`: one turn by HTTP, as the draft's clients ask for it.

The body is JSON or multipart/form-data; `message` (or `text`) is what the user says, `session_id`
names the session, everything else goes to the agent as `data.params`. With `Accept: text/event-
stream` the answer streams; without, it comes when the turn is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from arp.hub.hub import Hub
from arp.hub.inbound import LARGE_BYTES
from arp.hub.live import LiveSession
from arp.protocol.errors import ArpError, ErrorCode, InvalidMessage
from arp.protocol.json_value import Json, JsonObject, check_plain_json
from arp.protocol.messages import (
    FINAL_STATUSES,
    ErrorMessage,
    Identifier,
    Input,
    InputAck,
    InputType,
)
from arp.server.answers import json_response
from arp.server.runs import follow, result_of
from arp.server.state import ServerState
from arp.server.uploads import UploadedFile
from arp.transport.websocket import Receive, Scope, Send


def workflow_routes(state: ServerState) -> list[BaseRoute]:
    """Return the route; the name is looked up for each request."""
    return [Route("/{workflow:path}", _Workflow(state))]


class _Workflow:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        workflow = request.path_params["workflow"]
        if workflow not in self._state.served.handlers:
            await json_response({"error": f"nothing at /{workflow}"}, 404)(scope, receive, send)
            return
        if request.method != "POST":
            allow = {"allow": "POST"}
            refused = json_response({"error": f"/{workflow} takes POST"}, 405, allow)
            await refused(scope, receive, send)
            return
        hub = await self._state.hub()
        live, turn_id = await self._submit(request, hub, workflow)
        turn = live.session.screen.turns[turn_id]
        if "text/event-stream" in request.headers.get("accept", ""):
            await follow(self._state, live, turn, receive, send)
        else:
            await (await _whole(hub, live, turn_id))(scope, receive, send)

    async def _submit(self, request: Request, hub: Hub, workflow: str) -> tuple[LiveSession, str]:
        intake = self._state.intake
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "multipart/form-data":
            async with intake.form(request) as form:
                size = sum(map(len, form.fields.values()))
                work = partial(_request_of_fields, dict(form.fields), form.files)
                return await self._read(request, hub, workflow, work, size, form.files)
        if kind != "application/json":
            raise InvalidMessage("content-type: send application/json or multipart/form-data")
        body = await intake.body(request)
        return await self._read(request, hub, workflow, partial(_request_of_json, body), len(body))

    async def _read(
        self,
        request: Request,
        hub: Hub,
        workflow: str,
        work: Callable[[], _TurnRequest],
        size: int,
        files: Sequence[UploadedFile] = (),
    ) -> tuple[LiveSession, str]:
        if size < LARGE_BYTES:
            return await self._begin(request, hub, workflow, work(), files)
        read = await hub.inbound.read(work, _data_of)
        with hub.inbound.redactor.knowing(read.cleaned):
            return await self._begin(request, hub, workflow, read.value, files)

    async def _begin(
        self,
        request: Request,
        hub: Hub,
        workflow: str,
        turn: _TurnRequest,
        files: Sequence[UploadedFile],
    ) -> tuple[LiveSession, str]:
        principal = request.scope["arp"].principal
        live = await hub.open(turn.session_id, principal, workflow)
        if live.session.head.workflow != workflow:
            raise InvalidMessage(
                f"session {live.id!r} is one of {live.session.head.workflow!r}; post it there",
                detail="session_id",
            )
        kind: InputType = "file" if files else "text"
        message = Input(input_type=kind, data=turn.data, session_id=live.id)
        traceparent = request.headers.get("traceparent")
        answer = await hub.submit(message, principal, workflow, files, traceparent)
        if isinstance(answer, InputAck) and answer.turn_id is not None:
            return live, answer.turn_id
        assert isinstance(answer, ErrorMessage)
        raise _as_error(answer)


class _TurnRequest(Struct, frozen=True):
    """The turn that a body asks for."""

    session_id: str | None
    data: JsonObject
    """The data of the input that it becomes."""


def _request_of_json(body: bytes) -> _TurnRequest:
    return _request_of_fields(_fields(body), ())


def _request_of_fields(fields: JsonObject, files: Sequence[UploadedFile]) -> _TurnRequest:
    session_id = _session_id(fields.pop("session_id", None) or None)
    text = fields.pop("message", None) or fields.pop("text", "")
    data: JsonObject = {"text": text}
    if fields:
        data["params"] = fields
    if files:
        data["files"] = [msgspec.to_builtins(file.ref) for file in files]
    check_plain_json(data, "body")
    return _TurnRequest(session_id, data)


def _data_of(turn: _TurnRequest) -> Iterable[Json]:
    return (turn.data,)


def _session_id(value: object) -> str | None:
    try:
        name: str | None = msgspec.convert(value, Identifier | None)
    except msgspec.ValidationError as error:
        raise InvalidMessage(f"session_id: {error}", detail="session_id") from None
    return name


def _as_error(answer: ErrorMessage) -> ArpError:
    error = InvalidMessage(answer.payload.error)
    error.code = ErrorCode(answer.payload.code)  # type: ignore[misc]  # it carries the code of the answer
    error.retryable = answer.payload.retryable  # type: ignore[misc]
    return error


def _fields(content: bytes) -> JsonObject:
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise InvalidMessage("body: expected a JSON object")
    return body


async def _whole(hub: Hub, live: LiveSession, turn_id: str) -> Response:
    """Wait until a turn ends or asks a question, and return what it shows."""
    turn = live.session.screen.turns[turn_id]
    with live.followed():
        while turn.status not in FINAL_STATUSES and turn.status != "waiting":
            await live.beyond(live.session.sequence)
        await live.written()
    past = await hub.history.turn(live, turn_id)
    assert past is not None
    run_id = f"{live.session.head.session_id}.{turn_id}"
    return json_response({"run_id": run_id, "status": turn.status, **result_of(past)})
