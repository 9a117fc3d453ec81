"""Transports to an MCP server: a command over pipes, or an address over streamable HTTP.

Theory of operation. The transports are those of the SDK. `_Incoming` and `_Outgoing` are between
them and the SDK's client, for two reasons. First, an unreadable answer becomes an error for its
request: the client drops unreadable messages, and the request would wait for ever. Second, the end
of the connection is noticed at once, not only at the next call. The standard error of a command is
read and logged as lines without secrets; otherwise it would be written to our terminal.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context
from types import TracebackType
from typing import Any, Final

import anyio
import mcp_types as mcp
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from arp.process.error_lines import ErrorLines
from arp.redact.names import secrets_of
from arp.runtime.contract.types import McpServer

logger = logging.getLogger(__name__)

LAST_WORDS_S: Final = 0.5
"""Seconds to wait for the rest of the standard error of a server that has ended."""
NOT_FOUND: Final = 404
_ID_IN_TEXT: Final = re.compile(r'"id"\s*:\s*(\d+|"[^"]*")')
_ID_LINE: Final = re.compile(r'\s*"id"\s*:\s*(\d+|"[^"]*")\s*,?\s*')
"""Line with the id of an answer that is spread over several lines, which the protocol forbids."""


@asynccontextmanager
async def transport_to(
    server: McpServer,
    errors: ErrorLines,
    on_end: Callable[[], None],
    on_unknown: Callable[[], None],
) -> AsyncGenerator[tuple[Any, Any]]:
    """Connect to a server, and yield the streams for the SDK's client.

    Args:
        server: Server to connect to.
        errors: Receives the standard error of a command.
        on_end: Called when the server has ended the connection.
        on_unknown: Called in the context of a request that was not carried out because the server
            has restarted and does not know the connection; over HTTP only.
    """
    waiting: set[mcp.RequestId] = set()
    async with AsyncExitStack() as stack:
        if server.command:
            read, write = await _start_command(server, errors, stack)
        else:
            read, write = await _connect_http(server, stack, on_unknown)
        yield _Incoming(read, waiting, on_end), _Outgoing(write, waiting)


async def _start_command(
    server: McpServer, errors: ErrorLines, stack: AsyncExitStack
) -> tuple[Any, Any]:
    read_end, write_end = os.pipe()
    await stack.enter_async_context(_read(read_end, errors))
    with os.fdopen(write_end, "w") as errlog:  # the child has its own copy
        place = StdioServerParameters(
            command=server.command,
            args=list(server.args),
            env=dict(server.env),
            encoding_error_handler="replace",
        )
        return await stack.enter_async_context(stdio_client(place, errlog=errlog))


async def _connect_http(
    server: McpServer, stack: AsyncExitStack, on_unknown: Callable[[], None]
) -> tuple[Any, Any]:
    async def look(response: Any) -> None:
        if response.status_code == NOT_FOUND and MCP_SESSION_ID in response.request.headers:
            on_unknown()

    client = create_mcp_http_client(headers=dict(server.headers))
    client.event_hooks["response"].append(look)
    await stack.enter_async_context(client)
    return await stack.enter_async_context(streamable_http_client(server.url, http_client=client))


def secrets_to(server: McpServer) -> Iterator[str]:
    """Yield the secrets in a server's settings, because the server may print them."""
    yield from secrets_of(server.env)
    for name, value in server.headers.items():
        yield value.rpartition(" ")[2] if name.lower() == "authorization" else value


@asynccontextmanager
async def _read(read_end: int, errors: ErrorLines) -> AsyncGenerator[None]:
    """Read a pipe to its end, or until the connection is closed."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    pipe, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", 0)
    )

    async def read() -> None:
        while data := await reader.read(1 << 16):
            errors.receive(data)

    reading = loop.create_task(read())
    try:
        yield
    finally:
        with suppress(TimeoutError):  # a process that the server started may keep the pipe open
            async with asyncio.timeout(LAST_WORDS_S):
                await asyncio.shield(asyncio.wait([reading]))
        reading.cancel()
        await asyncio.wait([reading])
        errors.end()
        pipe.close()


class _Incoming:
    """Messages of a server; an unreadable answer becomes an error."""

    def __init__(self, inner: Any, waiting: set[mcp.RequestId], on_end: Callable[[], None]) -> None:
        self._inner, self._waiting, self._on_end = inner, waiting, on_end

    @property
    def last_context(self) -> Context | None:
        """Context of the request that the newest message belongs to, if it is known."""
        found: Context | None = getattr(self._inner, "last_context", None)
        return found

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        try:
            item: SessionMessage | Exception = await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._on_end()
            raise
        return self._checked(item)

    def _checked(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, Exception):
            request_id = answered_by_unreadable(item, self._waiting)
            if request_id is None:
                return item
            why = f"the answer cannot be read: {_reason(item)}"
            error = mcp.ErrorData(code=mcp.PARSE_ERROR, message=why)
            item = SessionMessage(mcp.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))
        message = item.message
        if isinstance(message, mcp.JSONRPCError) and message.id is None:
            # The server could not read a request. If only one waits, it must be that one.
            message.id = next(iter(self._waiting)) if len(self._waiting) == 1 else None
        if isinstance(message, mcp.JSONRPCResponse | mcp.JSONRPCError) and message.id is not None:
            self._waiting.discard(_as_sent(message.id))
        return item

    def __aiter__(self) -> _Incoming:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> _Incoming:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Outgoing:
    """Messages to a server; requests are recorded until their answers arrive."""

    def __init__(self, inner: Any, waiting: set[mcp.RequestId]) -> None:
        self._inner, self._waiting = inner, waiting

    async def send(self, item: SessionMessage) -> None:
        """Send a message."""
        message = item.message
        if isinstance(message, mcp.JSONRPCRequest):
            self._waiting.add(message.id)
        elif isinstance(message, mcp.JSONRPCNotification) and message.method.endswith("/cancelled"):
            self._waiting.discard((message.params or {}).get("requestId", ""))
        await self._inner.send(item)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> _Outgoing:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def answered_by_unreadable(failed: Exception, waiting: set[mcp.RequestId]) -> mcp.RequestId | None:
    """Return the id of the request that an unreadable message answers; `None` if it is no answer.

    Many servers write lines for people to their standard output; those must not fail a call.
    """
    if not isinstance(failed, ValidationError):
        return None
    for one in failed.errors(include_url=False, include_context=False):
        given = one["input"]
        if isinstance(given, list) and given:  # an older version of the protocol sends lists
            given = given[0]
        if isinstance(given, dict) and given.keys() & {"result", "error", "jsonrpc"}:
            return _waiting_request(given.get("id"), waiting) if "method" not in given else None
        if isinstance(given, str) and one["type"] == "json_invalid":
            pattern = _ID_IN_TEXT.search if given.lstrip()[:1] == "{" else _ID_LINE.fullmatch
            found = pattern(given)
            named = found[1].strip('"') if found is not None else None
            return _waiting_request(named, waiting) if named is not None else None
    return None


def _waiting_request(given: Any, waiting: set[mcp.RequestId]) -> mcp.RequestId | None:
    """Return a waiting request by id; without a usable id, the only waiting request."""
    if isinstance(given, str | int) and not isinstance(given, bool):
        request_id = _as_sent(given)
        return request_id if request_id in waiting else None
    return next(iter(waiting)) if len(waiting) == 1 else None


def _as_sent(given: mcp.RequestId) -> mcp.RequestId:
    """Return an id as the integer that we sent, because some servers return it as a string."""
    return int(given) if isinstance(given, str) and given.isdecimal() else given


def _reason(failed: Exception) -> str:
    if not isinstance(failed, ValidationError):
        return type(failed).__name__
    errors = failed.errors(include_url=False, include_context=False, include_input=False)
    # A message is validated as each kind of message. The errors for requests and notifications do
    # not explain why an answer is invalid.
    of_answers = [one for one in errors if one["loc"][:1] != ("JSONRPCRequest",)]
    first = next(
        (one for one in of_answers if one["loc"][:1] != ("JSONRPCNotification",)), errors[0]
    )
    place = ".".join(str(part) for part in first["loc"] if not str(part).startswith("JSONRPC"))
    return f"{place}: {first['msg']}" if place else first["msg"]
