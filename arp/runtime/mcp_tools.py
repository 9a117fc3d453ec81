"""`McpTools`: the tools of MCP servers as those of an app, and of the models of `model_agent`.

Theory of operation. Each server has a connection that is opened with the app and held by a task of
its own: the client of MCP has to be left by the task that entered it. A call says where its
progress and its questions go (`ToolCaller`). Connections begin with the handshake of the versions
before 2026: in the newer ones a server cannot ask by itself in the middle of a call, and most do.
There a question (elicitation) does not name its call; it is taken for the newest that runs.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
from base64 import b64decode
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import mcp_types as mcp
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from arp.hub.tool import ToolCall, ToolCaller, ToolFailed, ToolOutput, ToolSpec
from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp.runtime.types import McpServer
from arp.runtime.user_questions import ask_user, is_user_question
from arp.values.shown import shown

logger = logging.getLogger(__name__)

OPEN_S = 30.0
"""So long a server may take to answer at the start; the app then starts without its tools."""
RETRY_S = 0.5
MAX_RETRY_S = 30.0
"""Between two attempts to connect; each waits twice as long as the one before."""


class ServerLink:
    """The connection to one server."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self.client: Client | None = None
        """While it is connected."""
        self.tools: Sequence[mcp.Tool] = ()
        self.callers: list[ToolCaller] = []
        """Of the calls that run, oldest first."""
        self.problem = ""
        """Why it is not connected."""
        self._task: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        self._closing = asyncio.Event()
        self._lost = asyncio.Event()
        """A call found that the connection is closed."""

    async def open(self) -> None:
        """Connect; the tools of a server that cannot be reached are missing until it can.

        Why it cannot be reached is logged once.
        """
        if self._task is None or self._task.done():
            # Opened again, perhaps in another event loop.
            self._opened, self._closing, self._lost = (asyncio.Event() for _ in range(3))
            self._task = asyncio.get_running_loop().create_task(self._hold())
        with suppress(TimeoutError):
            async with asyncio.timeout(OPEN_S):
                await self._opened.wait()

    async def aclose(self) -> None:
        """Disconnect, and end the server's process if there is one."""
        self._closing.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _hold(self) -> None:
        """Stay connected: a connection that is lost, or cannot be made, is tried again."""
        wait_s = RETRY_S
        while not self._closing.is_set():
            if await self._connected():
                wait_s = RETRY_S
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._closing.wait()
            wait_s = min(2 * wait_s, MAX_RETRY_S)

    async def _connected(self) -> bool:
        """Connect once, and return when the connection is over: whether there was one."""
        name, was_connected = self.server.name, False
        self._lost.clear()
        try:
            async with AsyncExitStack() as stack:
                place = await _place(self.server, stack)
                client = await stack.enter_async_context(
                    Client(place, elicitation_callback=self._asked, mode="legacy")
                )
                self.tools = (await client.list_tools()).tools
                self.client, self.problem, was_connected = client, "", True
                self._opened.set()
                await self._closed_or_lost()
                if self._lost.is_set():
                    logger.warning("the MCP server %s is gone; connecting again", name)
        except Exception as failed:  # noqa: BLE001 - whatever it is, the app runs without its tools
            reason = _first_reason(failed)
            problem = f"the MCP server {name} cannot be reached: {reason}"
            if problem != self.problem:
                logger.error("%s", problem)
            self.problem = problem
        finally:
            self.client = None
            self._opened.set()
        return was_connected

    async def _closed_or_lost(self) -> None:
        waiting = [asyncio.ensure_future(one.wait()) for one in (self._closing, self._lost)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    async def call(self, name: str, args: JsonObject, caller: ToolCaller) -> ToolOutput:
        """Call a tool.

        Raises:
            ToolFailed: The server is gone, or refuses the call.
        """
        if self.client is None:
            raise ToolFailed(self.problem or f"the MCP server {self.server.name} is not connected")

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            caller.progress(message or "", progress, total)

        self.callers.append(caller)
        try:
            result = await self.client.call_tool(name, args, progress_callback=progressed)
        except MCPError as failed:
            if failed.code == mcp.CONNECTION_CLOSED:
                self._lost.set()
            raise ToolFailed(f"{name}: {failed}") from failed
        finally:
            self.callers.remove(caller)
        return _result_of(result)

    async def _asked(
        self, context: Any, params: mcp.ElicitRequestFormParams | mcp.ElicitRequestURLParams
    ) -> mcp.ElicitResult:
        caller = self.callers[-1] if self.callers else None
        if caller is None or not isinstance(params, mcp.ElicitRequestFormParams):
            return mcp.ElicitResult(action="cancel")
        schema = params.requested_schema
        wanted: JsonObject = schema if isinstance(schema, dict) else schema.model_dump(mode="json")
        content = await caller.ask(params.message, wanted)
        if content is None:
            return mcp.ElicitResult(action="decline")
        return mcp.ElicitResult(action="accept", content=content)


class McpTools:
    """The tools of several MCP servers; a `ToolProvider`.

    Args:
        servers: Each an address (`https://…`), a command (`npx some-server`), or an `McpServer`.
    """

    def __init__(self, servers: Iterable[str | McpServer]) -> None:
        named = [_server(one, number) for number, one in enumerate(servers, 1)]
        self._links = [ServerLink(server) for server in named]

    async def open(self) -> None:
        """Connect to all servers at once."""
        await asyncio.gather(*(link.open() for link in self._links))

    async def aclose(self) -> None:
        """Disconnect from all servers."""
        await asyncio.gather(*(link.aclose() for link in self._links))

    def tools(self) -> Sequence[ToolSpec]:
        """Return the tools of the servers that are connected."""
        return [
            ToolSpec(name, tool.description or "", tool.input_schema)
            for name, (_, tool) in self._named().items()
        ]

    async def call(self, tool: ToolCall, args: JsonObject, /) -> Json:
        """Carry out a call: its progress shows, its questions are forms, its result is shown."""
        result = await self.run(tool.name, args, _ShownCaller(tool))
        if result.failed:
            raise ToolFailed(result.text or f"{tool.name} failed")
        for content, mime in result.images:
            await tool.show_image(content, mime, alt=f"From {tool.name}")
        made = shown(result.value)
        if made is not None:
            tool.show(Component("", made["type"], made["props"]))
        return result.value

    async def run(self, name: str, args: JsonObject, caller: ToolCaller) -> ToolOutput:
        """Call a tool by its name.

        Raises:
            ToolFailed: There is no such tool, the server is gone, or it refuses the call.
        """
        found = self._named().get(name)
        if found is None:
            problems = [link.problem for link in self._links if link.problem]
            raise ToolFailed("; ".join([f"there is no tool {name!r:.60}", *problems]))
        link, tool = found
        return await link.call(tool.name, args, caller)

    def _named(self) -> dict[str, tuple[ServerLink, mcp.Tool]]:
        """Return the tools by name; two of the same name have that of their server before it."""
        listed = [(link, tool) for link in self._links if link.client for tool in link.tools]
        names = [tool.name for _, tool in listed]
        return {
            tool.name if names.count(tool.name) == 1 else f"{link.server.name}_{tool.name}": (
                link,
                tool,
            )
            for link, tool in listed
        }


class _ShownCaller:
    """A call by an agent of ARP: progress and questions are those of its tool."""

    def __init__(self, tool: ToolCall) -> None:
        self._tool = tool

    def progress(self, text: str, done: float, total: float | None) -> None:
        is_whole = float(done).is_integer() and (total is None or float(total).is_integer())
        if is_whole and (total is None or 0 <= done <= total):
            end = None if total is None else int(total)
            self._tool.progress(text, done=int(done), total=end)
        else:
            self._tool.progress(text or f"{done:g}")

    async def ask(self, message: str, schema: JsonObject) -> JsonObject | None:
        question: JsonObject = {"message": message, "schema": schema}
        if not is_user_question(question):
            raise ToolFailed(f"the server asks what no form can show: {message}")
        return await ask_user(self._tool, question)


def _server(given: str | McpServer, number: int) -> McpServer:
    if isinstance(given, McpServer):
        return given
    if given.startswith(("http://", "https://")):
        return McpServer(f"server{number}", url=given)
    command, *args = shlex.split(given)
    return McpServer(f"server{number}", command, tuple(args))


async def _place(server: McpServer, stack: AsyncExitStack) -> Any:
    """Return where a server is, as the client wants it; what it opens is closed with the stack."""
    if server.command:
        return StdioServerParameters(
            command=server.command, args=list(server.args), env=dict(server.env)
        )
    if server.headers:
        from mcp.shared._httpx_utils import create_mcp_http_client

        client = await stack.enter_async_context(
            create_mcp_http_client(headers=dict(server.headers))
        )
        return streamable_http_client(server.url, http_client=client)
    return server.url


def _result_of(result: mcp.CallToolResult) -> ToolOutput:
    texts = [part.text for part in result.content if isinstance(part, mcp.TextContent)]
    images = [
        (b64decode(part.data), part.mime_type)
        for part in result.content
        if isinstance(part, mcp.ImageContent)
    ]
    text = "\n".join(texts)
    value = result.structured_content
    if isinstance(value, dict) and value.keys() == {"result"}:  # how servers wrap what is no object
        value = value["result"]
    return ToolOutput(text, text if value is None else value, images, result.is_error)


def _first_reason(failed: BaseException) -> str:
    """Return why something failed: of a group, what is in it."""
    while isinstance(failed, BaseExceptionGroup):
        failed = failed.exceptions[0]
    return f"{type(failed).__name__}: {failed}".removesuffix(": ")
