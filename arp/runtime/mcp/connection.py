"""`McpConnection`: one connection to an MCP server, for the calls of one session.

Theory of operation. A task of its own holds the connection: the client of MCP has to be left by the
task that entered it. The handshake is that of the versions before 2026: in the newer ones a server
cannot ask by itself in the middle of a call, and most do. Over HTTP a question comes on the stream
of its call, so its call is known. Over pipes a question does not name its call: if several run, it
may be of any of them, and is asked in their session, which is all that it may reach. A question
ends with the last call that it may be of.
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
"""So long a server may take to start: some are installed by their command."""
PROGRESS_S: Final = 0.1
"""Between two reports of progress of a call; the newest is shown, those between are dropped."""
MAX_PROGRESS: Final = 1_000
"""Characters of one report."""
MAX_REASON: Final = 500
"""Characters of why a call failed, where the library words it: it may repeat what came."""
MAX_PAGES: Final = 100
"""Of the list of a server's tools."""
MAX_TITLE: Final = 200
"""Characters of the title of a link, and of the name of a file."""
PICTURES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""What every page shows."""
NOTHING_TO_FILL_IN: Final[JsonObject] = {"type": "object", "properties": {}}
"""The schema of a question that is answered by yes or no."""
MAX_COUNTED: Final = 1_000
"""Turns whose questions are counted."""


class SessionGone(Exception):
    """The server no longer knows the connection; the call was not carried out."""


class QuestionLimit:
    """Counts the questions of a server in each turn.

    Args:
        most: How many a turn may have.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._asked: OrderedDict[str, int] = OrderedDict()

    def allows(self, turn_id: str) -> bool:
        """Count one more question, and return whether it may be asked."""
        count = self._asked[turn_id] = self._asked.pop(turn_id, 0) + 1
        if len(self._asked) > MAX_COUNTED:
            self._asked.popitem(last=False)
        return count <= self._most


class RunningCall:
    """A call that waits for its result. Its progress is told at most every `PROGRESS_S`."""

    def __init__(self, caller: ToolCaller) -> None:
        self.caller = caller
        self.is_unknown = False
        """The server does not know the connection, and has not carried out the call."""
        self._newest: tuple[str, float, float | None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a report of the server."""
        if self._is_over:
            return
        self._newest = ((message or "")[:MAX_PROGRESS], progress, total)
        if self._timer is None:
            self._tell()

    def end(self) -> None:
        """Tell the newest report; those that come later are dropped."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._tell()

    def _tell(self) -> None:
        newest, self._newest, self._timer = self._newest, None, None
        if newest is None:
            return
        if not self._is_over:
            self._timer = asyncio.get_running_loop().call_later(PROGRESS_S, self._tell)
        try:
            self.caller.progress(*newest)
        except Exception:  # its turn may be over, and a report is no reason to fail
            logger.debug("progress that cannot be shown", exc_info=True)


_CALLING: ContextVar[RunningCall | None] = ContextVar("arp_mcp_call", default=None)
"""The call that a task makes; over HTTP also the one whose stream a question came on."""


def _note_unknown() -> None:
    call = _CALLING.get()
    if call is not None:
        call.is_unknown = True


class McpConnection:
    """A connection that is opened at once.

    Args:
        server: Where to.
        limit: Counts the questions.
        on_tools: Gets the server's tools when it is connected.
    """

    def __init__(
        self,
        server: McpServer,
        limit: QuestionLimit,
        on_tools: Callable[[Sequence[mcp.Tool]], None],
    ) -> None:
        self.server = server
        self.problem = ""
        """Why it is not connected."""
        self.in_use = 0
        """Calls that wait for it, or for their result."""
        self.is_over = False
        """It is closed, or was lost: it takes no more calls."""
        self._client: Client | None = None
        self._limit = limit
        self._on_tools = on_tools
        self._calls: list[RunningCall] = []
        self._questions: dict[asyncio.Task[Any], set[RunningCall]] = {}
        """What is asked, and the calls that it may be of."""
        self._opened = asyncio.Event()
        self._closing = asyncio.Event()
        self._errors = ErrorLines(secrets_to(server), self._log_line)
        self._task = asyncio.get_running_loop().create_task(self._hold())

    async def opened(self, within_s: float) -> None:
        """Wait until it is connected.

        Raises:
            ToolFailed: It cannot be, or takes longer; it may come about later then.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._opened.wait()
        if self._client is None:
            slow = f"the MCP server {self.server.name} is not connected after {within_s:g} s"
            raise ToolFailed(self.problem or slow)

    async def aclose(self) -> None:
        """Disconnect, and end the server's process if there is one; calls that run fail."""
        self.is_over = True
        self._closing.set()
        if not self._opened.is_set():
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _hold(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(CONNECT_S):
                    place = transport_to(self.server, self._errors, self._ended, _note_unknown)
                    client = await stack.enter_async_context(
                        Client(place, elicitation_callback=self._asked, mode="legacy")
                    )
                    self._on_tools(await listed(client))
                self._client = client
                self._opened.set()
                await self._closing.wait()
        except Exception as failed:  # whatever it is, the app runs without the server
            logger.debug("the MCP server %s", self.server.name, exc_info=True)
            self.problem = self._why(failed)
        finally:
            self._client, self.is_over = None, True
            self._opened.set()

    def _why(self, failed: Exception) -> str:
        reason = first_reason(failed)
        if cause := cause_of(list(self._errors.newest)):
            reason = f"{reason}; it wrote to standard error: {cause}"
        return f"the MCP server {self.server.name} cannot be reached: {reason}"

    def _ended(self) -> None:
        """Take that the server has ended the connection."""
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
            ToolFailed: The server is gone, refuses the call, or its answer cannot be read.

        Cancel: Safe; the server is told, and what it asks is withdrawn.
        """
        client, call = self._connected(), RunningCall(caller)
        self._calls.append(call)
        token = _CALLING.set(call)
        try:
            result = await client.call_tool(name, args, progress_callback=call.progressed)
            return output_of(result)
        except MCPError as failed:
            if failed.code == mcp.CONNECTION_CLOSED:
                self._ended()
            elif call.is_unknown:
                self._ended()
                raise SessionGone from failed
            raise ToolFailed(f"{name}: {failed!s:.{MAX_REASON}}") from failed
        except Exception as failed:  # of the library, or of a result that is none
            raise ToolFailed(
                f"{name}: the answer of the MCP server {self.server.name} cannot be read: "
                f"{first_reason(failed):.{MAX_REASON}}"
            ) from failed
        finally:
            _CALLING.reset(token)
            self._calls.remove(call)
            call.end()
            self._withdraw_of(call)

    def _connected(self) -> Client:
        if self._client is None:
            raise ToolFailed(self.problem or f"the MCP server {self.server.name} is not connected")
        return self._client

    # -- questions -------------------------------------------------------------------------------

    async def _asked(
        self, context: Any, params: mcp.ElicitRequestFormParams | mcp.ElicitRequestURLParams
    ) -> mcp.ElicitResult:
        calls = self._may_ask()
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
            if task is not None and task.cancelling():  # by the server, or the connection is closed
                raise
            return mcp.ElicitResult(action="cancel")
        finally:
            del self._questions[asking]
        if content is None:
            return mcp.ElicitResult(action="decline")
        if not isinstance(params, mcp.ElicitRequestFormParams):
            return mcp.ElicitResult(action="accept")
        return mcp.ElicitResult(action="accept", content=content)

    def _may_ask(self) -> Sequence[RunningCall]:
        """Return the calls that a question may be of; none if nobody can know whose it is."""
        if self.server.shared:
            return ()
        call = _CALLING.get()
        if call is not None:
            return [call] if call in self._calls else ()
        return list(self._calls)

    def _withdraw_of(self, call: RunningCall) -> None:
        """Withdraw what only a call that is over can have asked."""
        for asking, calls in self._questions.items():
            calls.discard(call)
            if not calls:
                asking.cancel()


def _question_of(
    params: mcp.ElicitRequestFormParams | mcp.ElicitRequestURLParams,
) -> tuple[str, JsonObject]:
    """Return what is asked, and the schema of the answer; an address is opened, or it is not."""
    if not isinstance(params, mcp.ElicitRequestFormParams):
        return f"{params.message}\nOpen this address: {params.url}", NOTHING_TO_FILL_IN
    schema = params.requested_schema
    return params.message, schema if isinstance(schema, dict) else schema.model_dump(mode="json")


async def listed(client: Client) -> Sequence[mcp.Tool]:
    """Return the tools of a server, all pages of them."""
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
    """Return what a tool returned.

    Raises:
        ValueError: Bytes of it cannot be decoded, or an image is none.
    """
    parts = _Parts()
    for part in result.content:
        parts.take(part)
    text = "\n".join(parts.texts)
    value = result.structured_content
    if isinstance(value, dict) and value.keys() == {"result"}:  # how servers wrap what is no object
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
    """The parts of a result: what a model reads, and what people see besides."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.images: list[tuple[bytes, str]] = []
        self.files: list[ToolFile] = []
        self.links: list[ToolLink] = []

    def take(self, part: mcp.ContentBlock) -> None:
        """Take a part.

        Raises:
            ValueError: As `output_of`.
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
        """Take bytes: as an image if every page shows it, else as a file."""
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
    """Return bytes from base64; some servers break it into lines."""
    try:
        return b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError) as wrong:
        raise ValueError(f"{name}: it is no base64: {wrong}") from wrong


def first_reason(failed: BaseException) -> str:
    """Return why something failed: of a group, what is in it."""
    while isinstance(failed, BaseExceptionGroup):
        failed = failed.exceptions[0]
    return f"{type(failed).__name__}: {failed}".removesuffix(": ")
