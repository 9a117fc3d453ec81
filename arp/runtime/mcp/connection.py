"""`McpConnection`: one connection to an MCP server, for the calls of one session.

Theory of operation. The connection runs in a task of its own, because the MCP client must be exited
by the task that entered it. It uses the handshake of the protocol versions before 2026. In newer
versions a server cannot ask the user during a call, and most servers that ask do it then.

Over HTTP a question arrives on the stream of its call, so its call is known. Over pipes a question
does not name its call. If several calls run, it may belong to any of them; it is asked in their
session, because the connection serves no other session. A question is withdrawn when the last
call that it may belong to has ended.
"""

from __future__ import annotations

import asyncio
import binascii
import logging
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from contextvars import ContextVar
from mimetypes import guess_extension
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

import mcp_types as mcp
from mcp import Client, MCPError

from arp.process.cause import cause_of
from arp.process.error_lines import ErrorLines
from arp.protocol.json_value import JsonObject
from arp.runtime.contract.types import McpServer
from arp.runtime.mcp.transport import secrets_to, transport_to
from arp.turn.foreign_names import shortened
from arp.turn.tool import ToolCaller, ToolFailed, ToolFile, ToolLink, ToolOutput
from arp.values.pictures import picture_type

logger = logging.getLogger(__name__)

CONNECT_S: Final = 300.0
"""Seconds that a server may take to start. It is long because some commands install the server."""
PROGRESS_S: Final = 0.1
"""Seconds between two progress reports of a call. The newest report is shown; those in between are
dropped."""
MAX_PROGRESS: Final = 1_000
"""Largest length of one report, in characters."""
MAX_REASON: Final = 500
"""Largest length, in characters, of the library's reason for a failed call. It may repeat received
data."""
MAX_PAGES: Final = 100
"""Largest number of pages that are read of a server's list of tools."""
MAX_TITLE: Final = 200
"""Largest length of the title of a link and of the name of a file, in characters."""
PICTURES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""Image types that every page can show."""
NOTHING_TO_FILL_IN: Final[JsonObject] = {"type": "object", "properties": {}}
"""Schema of a question that is answered by yes or no."""
MAX_COUNTED: Final = 1_000
"""Number of turns with counted questions. The turn that asked least recently is forgotten first."""


class SessionGone(Exception):
    """The server no longer knows the connection; the call was not carried out."""


class QuestionLimit:
    """Counts the questions of a server in each turn.

    Args:
        most: Largest number of questions in a turn.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._on_question: OrderedDict[str, int] = OrderedDict()

    def allows(self, turn_id: str) -> bool:
        """Count one more question, and return whether it may be asked."""
        count = self._on_question[turn_id] = self._on_question.pop(turn_id, 0) + 1
        if len(self._on_question) > MAX_COUNTED:
            self._on_question.popitem(last=False)
        return count <= self._most


class RunningCall:
    """A call that waits for its result; its progress is reported at most every `PROGRESS_S`."""

    def __init__(self, caller: ToolCaller) -> None:
        self.caller = caller
        self.is_unknown = False
        """Whether the server does not know the connection, and so has not carried out the call."""
        self._newest: tuple[str, float, float | None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        """Record a progress report of the server."""
        if self._is_over:
            return
        self._newest = ((message or "")[:MAX_PROGRESS], progress, total)
        if self._timer is None:
            self._report()

    def end(self) -> None:
        """Show the newest report; later reports are dropped."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._report()

    def _report(self) -> None:
        newest, self._newest, self._timer = self._newest, None, None
        if newest is None:
            return
        if not self._is_over:
            self._timer = asyncio.get_running_loop().call_later(PROGRESS_S, self._report)
        try:
            self.caller.progress(*newest)
        except Exception:  # its turn may have ended; a report must not make the call fail
            logger.debug("progress that cannot be shown", exc_info=True)


_CALLING: ContextVar[RunningCall | None] = ContextVar("arp_mcp_call", default=None)
"""Call of the current task. While a question over HTTP is handled: the call that it belongs to."""


def _note_unknown() -> None:
    call = _CALLING.get()
    if call is not None:
        call.is_unknown = True


class McpConnection:
    """A connection to a server; it begins to open when it is created.

    Args:
        server: Server to connect to.
        limit: Counter of questions.
        on_tools: Receives the server's tools when the connection opens, and after `refresh`.
    """

    def __init__(
        self,
        server: McpServer,
        limit: QuestionLimit,
        on_tools: Callable[[Sequence[mcp.Tool]], None],
    ) -> None:
        self.server = server
        self.problem = ""
        """Reason why the server is not connected; empty if there is none."""
        self.in_use = 0
        """Number of calls that wait for the connection or for their result."""
        self.is_over = False
        """Whether the connection is closed or lost, so that it accepts no more calls."""
        self._client: Client | None = None
        self._limit = limit
        self._on_tools = on_tools
        self._calls: list[RunningCall] = []
        self._questions: dict[asyncio.Task[Any], set[RunningCall]] = {}
        """Open questions, each with the calls that it may belong to."""
        self._opened = asyncio.Event()
        self._closing = asyncio.Event()
        self._errors = ErrorLines(secrets_to(server), self._log_line)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def opened(self, within_s: float) -> None:
        """Wait until the connection is open.

        Raises:
            ToolFailed: It cannot be opened, or takes longer than `within_s`; it may open later.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._opened.wait()
        if self._client is None:
            slow = f"the MCP server {self.server.name} is not connected after {within_s:g} s"
            raise ToolFailed(self.problem or slow)

    async def aclose(self) -> None:
        """Disconnect, and end the server's process if it has one; running calls fail."""
        self.is_over = True
        self._closing.set()
        if not self._opened.is_set():
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(CONNECT_S):
                    place = transport_to(self.server, self._errors, self._ended, _note_unknown)
                    client = await stack.enter_async_context(
                        Client(place, elicitation_callback=self._on_question, mode="legacy")
                    )
                    self._on_tools(await listed(client))
                self._client = client
                self._opened.set()
                await self._closing.wait()
        except Exception as failed:  # the app must also run without the server
            logger.debug("the MCP server %s", self.server.name, exc_info=True)
            self.problem = self._reason_text(failed)
        finally:
            self._client, self.is_over = None, True
            self._opened.set()

    def _reason_text(self, failed: Exception) -> str:
        reason = first_reason(failed)
        if cause := cause_of(list(self._errors.newest)):
            reason = f"{reason}; it wrote to standard error: {cause}"
        return f"the MCP server {self.server.name} cannot be reached: {reason}"

    def _ended(self) -> None:
        """Close the connection, because the server has ended it."""
        if not self._closing.is_set():
            if self._opened.is_set():
                logger.warning("the MCP server %s is gone", self.server.name)
            self.is_over = True
            self._closing.set()

    def _log_line(self, line: str) -> None:
        logger.info("MCP server %s: %s", self.server.name, line)

    async def refresh(self) -> None:
        """Read the list of tools again.

        Raises:
            ToolFailed: The server does not answer.
        """
        try:
            self._on_tools(await listed(self._connected()))
        except Exception as failed:
            raise ToolFailed(
                f"the MCP server {self.server.name}: {first_reason(failed)}"
            ) from failed

    # -- calls -----------------------------------------------------------------------------------

    async def call(self, name: str, args: JsonObject, caller: ToolCaller) -> ToolOutput:
        """Call a tool.

        Raises:
            SessionGone: The server has restarted; the call was not carried out.
            ToolFailed: The server is gone, refuses the call, or sends an unreadable answer.

        Cancel: Safe; the server is notified, and its questions are withdrawn.
        """
        client, call = self._connected(), RunningCall(caller)
        self._calls.append(call)
        token = _CALLING.set(call)
        try:
            result = await client.call_tool(name, args, progress_callback=call.progressed)
            return output_of(result)
        except MCPError as failed:
            # Tools have side effects, so only a call that was certainly not carried out may be
            # repeated (`SessionGone`).
            if failed.code == mcp.CONNECTION_CLOSED:
                self._ended()
            elif call.is_unknown:
                self._ended()
                raise SessionGone from failed
            raise ToolFailed(f"{name}: {failed!s:.{MAX_REASON}}") from failed
        except Exception as failed:  # raised by the library, or by an invalid result
            raise ToolFailed(
                f"{name}: the answer of the MCP server {self.server.name} cannot be read: "
                f"{first_reason(failed):.{MAX_REASON}}"
            ) from failed
        finally:
            _CALLING.reset(token)
            self._calls.remove(call)
            call.end()
            self._withdraw_questions_of(call)

    def _connected(self) -> Client:
        if self._client is None:
            raise ToolFailed(self.problem or f"the MCP server {self.server.name} is not connected")
        return self._client

    # -- questions -------------------------------------------------------------------------------

    async def _on_question(
        self, context: Any, params: mcp.ElicitRequestFormParams | mcp.ElicitRequestURLParams
    ) -> mcp.ElicitResult:
        calls = self._possible_calls()
        if not calls:
            return mcp.ElicitResult(action="cancel")
        caller = calls[-1].caller
        if not self._limit.allows(caller.turn_id):
            logger.warning("the MCP server %s asks too often in a turn", self.server.name)
            return mcp.ElicitResult(action="cancel")
        message, wanted = _question_of(params)
        asking = asyncio.ensure_future(caller.ask(message, wanted))
        self._questions[asking] = set(calls)
        try:
            content = await asking
        except asyncio.CancelledError:
            task = asyncio.current_task()
            # If this task itself is cancelled, the server has withdrawn the question, or the
            # connection is closed. Otherwise only `asking` was cancelled, because the last call
            # that may have asked has ended.
            if task is not None and task.cancelling():
                raise
            return mcp.ElicitResult(action="cancel")
        finally:
            del self._questions[asking]
        if content is None:
            return mcp.ElicitResult(action="decline")
        if not isinstance(params, mcp.ElicitRequestFormParams):
            return mcp.ElicitResult(action="accept")
        return mcp.ElicitResult(action="accept", content=content)

    def _possible_calls(self) -> Sequence[RunningCall]:
        """Return the calls that a question may belong to; empty if its session is unknown."""
        if self.server.shared:
            return ()
        call = _CALLING.get()
        if call is not None:
            return [call] if call in self._calls else ()
        return list(self._calls)

    def _withdraw_questions_of(self, call: RunningCall) -> None:
        """Withdraw the questions that only an ended call can have asked."""
        for asking, calls in self._questions.items():
            calls.discard(call)
            if not calls:
                asking.cancel()


def _question_of(
    params: mcp.ElicitRequestFormParams | mcp.ElicitRequestURLParams,
) -> tuple[str, JsonObject]:
    """Return the question and the schema of its answer; for an address, a yes-or-no question."""
    if not isinstance(params, mcp.ElicitRequestFormParams):
        return f"{params.message}\nOpen this address: {params.url}", NOTHING_TO_FILL_IN
    schema = params.requested_schema
    return params.message, schema if isinstance(schema, dict) else schema.model_dump(mode="json")


async def listed(client: Client) -> Sequence[mcp.Tool]:
    """Return all tools of a server, from all pages."""
    tools: dict[str, mcp.Tool] = {}
    cursor: str | None = None
    cursors: set[str] = set()
    while True:
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        for tool in page.tools:
            tools.setdefault(tool.name, tool)
        cursor = page.next_cursor
        if cursor is None:
            return list(tools.values())
        if cursor in cursors or len(cursors) == MAX_PAGES:
            logger.warning("the list of tools does not end: %d tools are used", len(tools))
            return list(tools.values())
        cursors.add(cursor)


def output_of(result: mcp.CallToolResult) -> ToolOutput:
    """Return the output of a tool.

    Raises:
        ValueError: Its bytes cannot be decoded, or an image has another format.
    """
    parts = _Parts()
    for part in result.content:
        parts.add(part)
    text = "\n".join(parts.texts)
    value = result.structured_content
    if isinstance(value, dict) and value.keys() == {"result"}:  # servers wrap non-objects this way
        value = value["result"]
    return ToolOutput(
        text,
        text if value is None else value,
        parts.images,
        parts.files,
        parts.links,
        result.is_error,
    )


class _Parts:
    """The parts of a result: text for the model, and content that only people see."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.images: list[tuple[bytes, str]] = []
        self.files: list[ToolFile] = []
        self.links: list[ToolLink] = []

    def add(self, part: mcp.ContentBlock) -> None:
        """Add a part.

        Raises:
            ValueError: Its bytes cannot be decoded, or an image has another format.
        """
        match part:
            case mcp.TextContent():
                self.texts.append(part.text)
            case mcp.ImageContent():
                self._bytes("image", part.data, part.mime_type)
            case mcp.AudioContent():
                self._bytes("audio", part.data, part.mime_type)
            case mcp.ResourceLink():
                title = shortened(part.title or part.name or part.uri, MAX_TITLE)
                self.links.append(ToolLink(title, part.uri))
                about = f" ({part.description})" if part.description else ""
                self.texts.append(f"{title}: {part.uri}{about}")
            case mcp.EmbeddedResource(resource=mcp.TextResourceContents() as resource):
                self.texts.append(resource.text)
            case mcp.EmbeddedResource(resource=mcp.BlobResourceContents() as resource):
                name = PurePosixPath(urlsplit(resource.uri).path).name
                self._bytes(name or "file", resource.blob, resource.mime_type or "")

    def _bytes(self, name: str, data: str, mime: str) -> None:
        """Add bytes: as an image if every page can show it, otherwise as a file."""
        content = _decoded(name, data)
        kind = picture_type(content)
        if kind:
            self.images.append((content, f"image/{kind}"))
            return
        if mime in PICTURES:
            raise ValueError(f"{name}: these bytes are no {mime.removeprefix('image/').upper()}")
        mime = mime or "application/octet-stream"
        subtype = mime.partition("/")[2]
        ending = guess_extension(mime) or (f".{subtype}" if subtype.isalnum() else "")
        file = name if PurePosixPath(name).suffix else f"{name}{ending}"
        self.files.append(ToolFile(shortened(file, MAX_TITLE), content, mime))
        self.texts.append(f"({file}: {mime}, {len(content)} bytes; the user can load it)")


def _decoded(name: str, data: str) -> bytes:
    """Return bytes from base64, which some servers break into lines."""
    try:
        return b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError) as wrong:
        raise ValueError(f"{name}: it is no base64: {wrong}") from wrong


def first_reason(failed: BaseException) -> str:
    """Return type and text of an exception; for a group, those of its first exception."""
    while isinstance(failed, BaseExceptionGroup):
        failed = failed.exceptions[0]
    return f"{type(failed).__name__}: {failed}".removesuffix(": ")
