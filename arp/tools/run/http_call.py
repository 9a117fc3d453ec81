"""One call of a tool over HTTP: JSON parameters in, a JSON value out.

How parameters are sent: those that the path names (`/items/{id}`) are in the path. The others are
the query for `GET`, `HEAD` and `DELETE`, and otherwise a JSON object in the body.

How an answer is read: JSON is returned unchanged, an image as `{"content_type", "base64"}`, a text
as `{"text"}`. A stream of events (`text/event-stream` with `{"chunk", "done"}`) is read piece by
piece; its result is the `result` of the last event, or else the joined pieces as `{"text"}`.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Mapping
from typing import Final
from urllib.parse import quote

import httpx
import msgspec

from arp.net.http_problems import broken_connection
from arp.protocol.framing.event_stream import EVENT_STREAM, EventReader
from arp.protocol.json_value import Json, JsonObject
from arp.tools.errors import InvalidToolCall, ToolCallFailed, ToolTimeout
from arp.tools.run.runtime import OnChunk

MAX_ANSWER: Final = 16 * 2**20
"""Maximum size of an answer in bytes, after decompression."""
MAX_REASON: Final = 300
"""Maximum number of characters that an error quotes from a failing tool's answer."""
METHODS: Final = frozenset(("GET", "HEAD", "DELETE", "POST", "PUT", "PATCH"))
_IN_QUERY: Final = frozenset(("GET", "HEAD", "DELETE"))
_PLACE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class HttpCall(msgspec.Struct, frozen=True):
    """Call that is ready to be sent."""

    method: str
    url: str
    params: JsonObject
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    name: str = ""
    """Name of the tool in error messages, such as `tool weather`."""
    may_stream: bool = True
    """Whether a stream may be requested. A stream is read even if it was not requested."""


async def call_http(
    client: httpx.AsyncClient, call: HttpCall, on_chunk: OnChunk | None = None
) -> Json:
    """Send a call and return the answer.

    Args:
        client: Client that sends it.
        call: Call to send.
        on_chunk: Receives the pieces of a stream; `None` requests no stream.

    Raises:
        InvalidToolCall: A parameter cannot be part of the path.
        ToolCallFailed: The tool cannot be reached, answered with an error status or more than
            `MAX_ANSWER` bytes, or declared its answer as JSON although it is not valid JSON.
        ToolTimeout: The tool did not answer in time.

    Cancel: Safe.
    """
    try:
        async with client.stream(**_request(call, on_chunk)) as answer:
            return await _read(answer, call.name, on_chunk)
    except httpx.TimeoutException as error:
        raise ToolTimeout(f"{call.name} did not answer in time") from error
    except httpx.HTTPError as error:
        raise ToolCallFailed(_unreached(call, error)) from error
    except httpx.InvalidURL as error:
        raise ToolCallFailed(f"{call.name} has an address that cannot be one: {error}") from error


async def check_answers(client: httpx.AsyncClient, call: HttpCall, within_s: float) -> None:
    """Check that a tool answers without a server error; the body of the answer is not read.

    501 does not count as a server error: it means that the server does not support the method.

    Raises:
        ToolCallFailed: The tool cannot be reached, did not answer in time, or answered with 500 or
            above.

    Cancel: Safe.
    """
    try:
        async with asyncio.timeout(within_s), client.stream(**_request(call, None)) as answer:
            status = answer.status_code
            if status >= 500 and status != 501:
                raise HttpStatusFailed(f"HTTP {status}: {answer.reason_phrase}", status)
    except (httpx.TimeoutException, TimeoutError) as error:
        raise ToolCallFailed(f"{call.name} does not answer in {within_s:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ToolCallFailed(_unreached(call, error)) from error


def _unreached(call: HttpCall, error: Exception) -> str:
    known = broken_connection(error, call.name)
    return known or f"{call.name} cannot be reached: {error!s:.{MAX_REASON}}"


class HttpStatusFailed(ToolCallFailed):
    """Error status in a tool's answer."""

    def __init__(self, message: str, status: int, retry_after: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


def _request(call: HttpCall, on_chunk: OnChunk | None) -> dict[str, Json]:
    """Return the arguments of `httpx.AsyncClient.stream`."""
    if call.method not in METHODS:
        raise ToolCallFailed(f"{call.name}: http_method {call.method!r:.20} is not known")
    url, rest = _fill_path(call.url, call.params)
    accepted = "application/json, */*;q=0.5"
    wants_stream = call.may_stream and on_chunk is not None
    headers = {"accept": f"{EVENT_STREAM}, {accepted}" if wants_stream else accepted}
    request: dict[str, Json] = {
        "method": call.method,
        "url": url,
        "headers": {**headers, **call.headers},
    }
    if call.method not in _IN_QUERY:
        request["content"] = msgspec.json.encode(rest)
        request["headers"].setdefault("content-type", "application/json")
    elif rest:
        request["params"] = {name: _as_text(value) for name, value in rest.items()}
    return request


def _fill_path(url: str, params: JsonObject) -> tuple[str, JsonObject]:
    """Fill in the parameters that a URL names; return the URL and the other parameters."""
    rest = dict(params)

    def value_of(match: re.Match[str]) -> str:
        if match[1] not in rest:
            raise InvalidToolCall(f"params.{match[1]}: it is missing, and the address needs it")
        text = _as_text(rest.pop(match[1]))
        if text in ("", ".", ".."):
            raise InvalidToolCall(f"params.{match[1]}: {text!r} cannot be part of an address")
        return quote(text, safe="")

    return _PLACE.sub(value_of, url), rest


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


async def _read(answer: httpx.Response, name: str, on_chunk: OnChunk | None) -> Json:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if answer.is_success and kind == EVENT_STREAM:
        return await _read_events(answer, name, on_chunk)
    data = b"".join([part async for part in _bounded(answer, name)])
    if not answer.is_success:
        text = data.decode(errors="replace").strip()
        reason = f" ({text:.{MAX_REASON}})" if text else ""
        raise HttpStatusFailed(
            f"HTTP {answer.status_code}: {answer.reason_phrase}{reason}",
            answer.status_code,
            answer.headers.get("retry-after", ""),
        )
    if answer.request.method == "HEAD" or answer.status_code == 204:
        return None
    if kind == "application/json" or kind.endswith("+json"):
        return _json(data, name)
    if kind.startswith("image/"):
        return {"content_type": kind, "base64": base64.b64encode(data).decode()}
    return {"text": data.decode(errors="replace")} if data else None


async def _bounded(answer: httpx.Response, name: str) -> AsyncIterator[bytes]:
    size = 0
    async for part in answer.aiter_bytes():
        size += len(part)
        if size > MAX_ANSWER:
            raise ToolCallFailed(f"{name} answered with more than {MAX_ANSWER} bytes")
        yield part


async def _read_events(answer: httpx.Response, name: str, on_chunk: OnChunk | None) -> Json:
    pieces: list[str] = []
    async for event in _events_in(answer, name):
        chunk = str(event.get("chunk") or "")
        if chunk:
            pieces.append(chunk)
            if on_chunk is not None:
                await on_chunk(chunk)
        if event.get("error"):
            raise ToolCallFailed(f"{name}: {event['error']!s:.{MAX_REASON}}")
        if event.get("done"):
            return event["result"] if "result" in event else {"text": "".join(pieces)}
    raise ToolCallFailed(f"{name} ended its stream before it was done")


async def _events_in(answer: httpx.Response, name: str) -> AsyncIterator[JsonObject]:
    """Yield the events of a tool's stream; ignore all others."""
    # The reader never reaches its limit, because `_bounded` raises at the same size.
    async for one in EventReader(_bounded(answer, name), MAX_ANSWER):
        if (event := event_of(one.data)) is not None:
            yield event


def event_of(line: bytes | str) -> JsonObject | None:
    """Return an event `{"chunk": "…", "done": false}`; `None` if the line has another form."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("done"), bool) else None


def _json(data: bytes, name: str) -> Json:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ToolCallFailed(f"{name} answered with JSON that cannot be read: {error}") from error
