"""The HTTP interface of the Tool Agent: routes for any Starlette application.

Theory of operation. The application that mounts the routes has authorised the caller: the guard of
the server runs before them, and `scope["arp"]` identifies the caller. A body is JSON of limited
size and depth. Its content type is required, so that a form of another website cannot send one.
Every refusal is one line of JSON, without a traceback.

Source: internal_api.md 6.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from arp.net.bodies import JsonBodies, http_status, keys_of_scope
from arp.protocol.errors import InvalidMessage, RateLimited, ResourceLimit
from arp.protocol.framing.event_stream import (
    EVENT_STREAM,
    STREAM_HEADERS,
    encode_comment,
    encode_event,
)
from arp.protocol.json_value import Json, JsonObject
from arp.tools.build.backend import ToolBackend
from arp.tools.build.router import TaskRequest
from arp.tools.errors import InvalidToolMeta, ToolAgentError, ToolRefused, UnknownTool
from arp.tools.faces.openapi import openapi_document
from arp.tools.registry.models import ToolMeta
from arp.tools.registry.schemas import check_params
from arp.tools.tasks.task_specs import TaskSpec

logger = logging.getLogger(__name__)

MAX_BODY: Final = 4 << 20
"""Maximum size of a request in bytes; larger inputs are passed to a tool as files."""
KEEP_ALIVE_S: Final = 15.0
"""Pause in an event stream, in seconds, before a comment is sent to keep the connection open."""
MAX_PIECES: Final = 1_000
"""Maximum number of unread pieces of a result; then the tool waits for the reader."""


class InvokeRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `POST /tools/{tool_id}/invoke`."""

    params: JsonObject = {}
    stream: bool = False


class NewTaskRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `POST /tools/request`."""

    description: Annotated[str, Meta(min_length=1, max_length=20_000)]
    callback_url: Annotated[str, Meta(max_length=2_000)] | None = None
    task_spec: TaskSpec | None = None
    """Exact spec of the task; our addition."""


class CommandRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `POST /tools/{tool_id}/stop`, `/enable` and `/disable`: an empty object."""


class HttpRefusal(ToolAgentError):
    """Request that is refused before a tool is called."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.http_status = status  # type: ignore[misc] # set for this object, not for the class
        self.code = "bad_request"  # type: ignore[misc]


Body = TypeVar("Body", bound=Struct)
Handler = Callable[[Request], Awaitable[Response]]


class ToolRoutes:
    """Routes of one Tool Agent.

    Args:
        backend: Tools and tasks.
        title: Title of the OpenAPI document.
    """

    def __init__(self, backend: ToolBackend, title: str = "Tool Agent") -> None:
        self._backend = backend
        self._title = title
        self._bodies = JsonBodies(MAX_BODY)
        self._dispatching: set[asyncio.Task[Any]] = set()

    def routes(self) -> list[BaseRoute]:
        """Return the routes except `/health`, which the server provides."""
        service = self._backend.service
        return [
            Route("/health/runtimes", self._answered(self._runtimes)),
            Route("/openapi.json", self._answered(self._openapi)),
            Route("/tools", self._answered(self._list)),
            Route("/tools/request", self._answered(self._request), methods=["POST"]),
            Route("/tools/{tool_id}/schema", self._answered(self._schema)),
            Route("/tools/{tool_id}/invoke", self._answered(self._invoke), methods=["POST"]),
            Route("/tools/{tool_id}/stop", self._command(service.stop), methods=["POST"]),
            Route("/tools/{tool_id}/enable", self._command(service.enable), methods=["POST"]),
            Route("/tools/{tool_id}/disable", self._command(service.disable), methods=["POST"]),
            Route("/tools/{tool_id}", self._answered(self._remove), methods=["DELETE"]),
            Route("/tasks/{task_id}/status", self._answered(self._status)),
        ]

    def _answered(self, handler: Handler) -> Handler:
        """Return a handler that converts errors to JSON answers."""

        async def answered(request: Request) -> Response:
            try:
                return await handler(request)
            except ToolAgentError as error:
                return _json({"error": error.message, "code": error.code}, error.http_status)

        return answered

    # -- the catalog -----------------------------------------------------------------------------

    async def _list(self, request: Request) -> Response:
        tools = self._backend.service.registry.tools()
        shown = [
            {
                "tool_id": tool.tool_id,
                "name": tool.name,
                "category": tool.category,
                "description": tool.description,
                "status": str(tool.status),
            }
            for tool in tools
        ]
        return _json({"tools": shown})

    async def _schema(self, request: Request) -> Response:
        tool = self._backend.service.registry.get(request.path_params["tool_id"])
        return _json(
            {
                "tool_id": tool.tool_id,
                "input_schema": tool.input_schema,
                "output_schema": tool.output_schema,
            }
        )

    async def _runtimes(self, request: Request) -> Response:
        service = self._backend.service
        reports = await service.runtimes.reports()
        problem = service.settings.problem
        return _json({"runtimes": reports, "settings": {"error": problem}})

    async def _openapi(self, request: Request) -> Response:
        return _json(openapi_document(self._title))

    # -- calls -----------------------------------------------------------------------------------

    async def _invoke(self, request: Request) -> Response:
        tool_id = request.path_params["tool_id"]
        try:
            body = await _body(request, self._bodies, InvokeRequest)
            tool = self._backend.service.registry.get(tool_id)
            check_params(tool, body.params)  # before the stream begins, while a status can be sent
            accept = request.headers.get("accept", "")
            if body.stream or EVENT_STREAM in accept:
                return StreamingResponse(
                    self._pieces(tool_id, body.params),
                    media_type=EVENT_STREAM,
                    headers=STREAM_HEADERS,
                )
            outcome = await _while_connected(
                request, self._backend.service.call(tool_id, body.params)
            )
        except ToolAgentError as error:
            return _json(
                {"status": "error", "result": None, "error": error.message}, error.http_status
            )
        return _json({"status": "success", "result": outcome.result, "error": None})

    async def _pieces(self, tool_id: str, params: JsonObject) -> AsyncIterator[bytes]:
        """Yield the events of a call; cancel the call if its reader leaves.

        The last event has the result as text. After a failure it has the message as text, and the
        code as `error`.
        """
        pieces: asyncio.Queue[str | None] = asyncio.Queue(MAX_PIECES)

        async def work() -> Json:
            try:
                return (await self._backend.service.call(tool_id, params, pieces.put)).result
            finally:
                await pieces.put(None)

        task = asyncio.get_running_loop().create_task(work())
        try:
            sent: list[str] = []
            while True:
                try:
                    async with asyncio.timeout(KEEP_ALIVE_S):
                        piece = await pieces.get()
                except TimeoutError:
                    yield encode_comment("still working")
                    continue
                if piece is None:
                    break
                sent.append(piece)
                yield _event({"chunk": piece, "done": False})
            try:
                yield _event({"chunk": _last(await task, sent), "done": True})
            except ToolAgentError as error:
                yield _event({"chunk": error.message, "done": True, "error": error.code})
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, ToolAgentError):
                await task

    # -- commands of people ----------------------------------------------------------------------

    def _command(self, command: Callable[[str], Awaitable[ToolMeta]]) -> Handler:
        """Return the handler of a command that changes a tool; it answers with the tool."""

        async def handler(request: Request) -> Response:
            _check_operator(request)
            await _body(request, self._bodies, CommandRequest)
            tool = await command(request.path_params["tool_id"])
            state = str(tool.scheduling.state)
            return _json({"tool_id": tool.tool_id, "status": str(tool.status), "state": state})

        return self._answered(handler)

    async def _remove(self, request: Request) -> Response:
        _check_operator(request)
        tool_id = request.path_params["tool_id"]
        removal = await self._backend.service.remove(tool_id)
        return _json({"tool_id": tool_id, "removed": removal.removed, "kept": removal.kept})

    # -- tasks -----------------------------------------------------------------------------------

    async def _request(self, request: Request) -> Response:
        body = await _body(request, self._bodies, NewTaskRequest)
        new = TaskRequest(
            body.description, body.callback_url or "", _owner(request), body.task_spec
        )
        task = self._backend.router.accept(new)
        work = self._backend.router.dispatch(task.task_id)
        dispatch = asyncio.get_running_loop().create_task(work)
        self._dispatching.add(dispatch)
        dispatch.add_done_callback(self._dispatched)
        return _json({"task_id": task.task_id, "status": "pending"})

    def _dispatched(self, done: asyncio.Task[Any]) -> None:
        self._dispatching.discard(done)
        if not done.cancelled() and (failed := done.exception()) is not None:
            logger.error("a task could not be begun: %s", failed)

    async def _status(self, request: Request) -> Response:
        task_id = request.path_params["task_id"]
        task = self._backend.book.get(task_id)
        if task.owner != _owner(request):
            raise UnknownTool(f"there is no task {task_id!r:.80}")
        return _json(task.report())


def _owner(request: Request) -> str:
    """Return the user of a request; empty where the server does not distinguish users."""
    asker = request.scope.get("arp")
    return "" if asker is None else str(asker.principal.name)


def _check_operator(request: Request) -> None:
    """Check that the caller may change tools: an admin, where users are distinguished.

    Raises:
        ToolRefused: The caller may not.
    """
    asker = request.scope.get("arp")
    if asker is not None and asker.principal.name and not asker.principal.is_admin:
        raise ToolRefused("only an admin may stop, enable, disable or remove a tool")


async def _body(request: Request, bodies: JsonBodies, kind: type[Body]) -> Body:
    """Return the body of a request.

    Raises:
        ToolAgentError: The body is not JSON, is too large, has too many values, is nested too
            deeply, or does not fit; the message names the path.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise HttpRefusal(415, "content-type: send application/json")
    try:
        data = await bodies.read(request, keys_of_scope(request.scope))
        plain = msgspec.json.decode(data)
        _check_numbers(plain)
        return msgspec.convert(plain, kind)
    except (ResourceLimit, RateLimited) as error:
        raise HttpRefusal(http_status(error), error.message) from None
    except InvalidMessage as error:
        raise InvalidToolMeta(error.message) from None
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise InvalidToolMeta(f"body: {error}"[:500]) from None


def _check_numbers(value: Json) -> None:
    """Refuse a number that is too large for a float, such as 1e999.

    Integers may have any size: only renderers limit them.

    Raises:
        InvalidToolMeta: The value contains such a number.
    """
    stack: list[Json] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, float) and not math.isfinite(one):
            raise InvalidToolMeta("body: a number is too large")
        stack += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()


async def _while_connected(request: Request, call: Awaitable[Any]) -> Any:
    """Return the result of a call; cancel it when its caller disconnects."""
    task = asyncio.ensure_future(call)
    gone = asyncio.ensure_future(_gone(request))
    try:
        futures: set[asyncio.Future[Any]] = {task, gone}
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise HttpRefusal(499, "the caller went away")
        return task.result()
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _last(result: Json, sent: list[str]) -> str:
    """Return the text of the last event: empty if the pieces are the result, else the result."""
    if isinstance(result, str):
        return "" if "".join(sent) == result else result
    if isinstance(result, dict) and sent and result == {"text": "".join(sent)}:
        return ""
    return msgspec.json.encode(result).decode()


def _event(value: JsonObject) -> bytes:
    # The document shows a space after `:` and `,`, which msgspec omits, so the object is assembled
    # here. Encoded JSON has no line break, so it fits into one line of the event.
    text = ", ".join(
        f"{msgspec.json.encode(name).decode()}: {msgspec.json.encode(one).decode()}"
        for name, one in value.items()
    )
    return encode_event(f"{{{text}}}".encode())


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
