"""`McpFace`: an MCP server with every active tool, over HTTP at `/mcp` or over standard input.

The server is that of the MCP SDK. The list of tools is read for each request, so it includes tools
that were just registered. Pieces of a result are sent as progress. A result that is not an object
is wrapped as `{"result": …}`, as the SDK does.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import mcp_types as mcp
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from arp.net.bodies import BoundedBodies, JsonBodies
from arp.protocol.errors import ResourceLimit
from arp.protocol.json_value import MAX_VALUES, Json, JsonObject, check_count
from arp.tools.errors import ToolAgentError, UnknownTool
from arp.tools.faces.pictures import pictures_in, without_pictures
from arp.tools.registry.models import ToolMeta, ToolStatus
from arp.tools.service import ToolService

MCP_PATH: Final = "/mcp"
MAX_BODY: Final = 4 << 20
"""Maximum size of a request in bytes."""
MAX_BODY_VALUES: Final = 2 * MAX_VALUES
"""Maximum number of JSON values in a request, counted before it is parsed. The arguments of a tool
may have at most `MAX_VALUES`."""


def mcp_server(service: ToolService, name: str = "tool-agent") -> Server[Any]:
    """Return an MCP server with the active tools of a service."""

    async def list_tools(context: Any, params: Any) -> mcp.ListToolsResult:
        active = service.registry.tools(ToolStatus.ACTIVE)
        return mcp.ListToolsResult(tools=[_listed(tool) for tool in active])

    async def call_tool(context: Any, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        count = 0

        async def progressed(piece: str) -> None:
            nonlocal count
            count += 1
            await context.session.report_progress(float(count), None, piece)

        try:
            tool = service.registry.get(params.name)
            if tool.status is not ToolStatus.ACTIVE:
                raise UnknownTool(f"tool {tool.tool_id} is {tool.status}")
            given = params.arguments or {}
            check_count(given, "arguments", "arguments", "give the tool a file")
            outcome = await service.call(tool.tool_id, given, progressed)
        except (ToolAgentError, ResourceLimit) as failed:
            text = mcp.TextContent(type="text", text=failed.message)
            return mcp.CallToolResult(content=[text], is_error=True)
        return _result(outcome.result)

    return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


def _listed(tool: ToolMeta) -> mcp.Tool:
    return mcp.Tool(
        name=tool.tool_id,
        title=tool.name,
        description=tool.description,
        input_schema=_object(tool.input_schema),
        output_schema=_object(tool.output_schema) if _is_object(tool.output_schema) else None,
    )


def _is_object(schema: JsonObject) -> bool:
    return schema.get("type") == "object"


def _object(schema: JsonObject) -> JsonObject:
    """Return a schema with `type: object`, which MCP requires."""
    return schema if _is_object(schema) else {**schema, "type": "object"}


def _result(value: Json) -> mcp.CallToolResult:
    """Return a result as text and as JSON, with each of its pictures as an image."""
    plain = without_pictures(value)
    text = plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()
    content: list[Any] = [mcp.TextContent(type="text", text=text)]
    content += [
        mcp.ImageContent(type="image", data=picture.base64, mime_type=picture.mime)
        for picture in pictures_in(value)
    ]
    structured = value if isinstance(value, dict) else {"result": value}
    return mcp.CallToolResult(content=content, structured_content=structured, is_error=False)


class McpFace:
    """MCP server over HTTP, as an ASGI application that is opened and closed.

    The SDK's sessions live in a task group that must be exited by the task that entered it, so a
    dedicated task holds it.
    """

    def __init__(self, service: ToolService) -> None:
        self._service = service
        self._manager: StreamableHTTPSessionManager | None = None
        self._bounded = BoundedBodies(self._handle, JsonBodies(MAX_BODY, MAX_BODY_VALUES))
        self._holding: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        self._closing = asyncio.Event()

    async def open(self) -> None:
        """Begin to serve."""
        if self._holding is None:
            self._holding = asyncio.get_running_loop().create_task(self._hold())
        await self._opened.wait()

    async def aclose(self) -> None:
        """End all sessions."""
        holding, self._holding = self._holding, None
        if holding is not None:
            self._closing.set()
            with suppress(asyncio.CancelledError):
                await holding
        self._opened, self._closing = asyncio.Event(), asyncio.Event()

    async def _hold(self) -> None:
        manager = StreamableHTTPSessionManager(
            mcp_server(self._service), max_request_body_size=MAX_BODY
        )
        try:
            async with manager.run():
                self._manager = manager
                self._opened.set()
                await self._closing.wait()
        finally:
            self._manager = None
            self._opened.set()  # `open` would wait forever if the manager did not start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an authorised request."""
        await self._bounded(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.open()
        assert self._manager is not None
        await self._manager.handle_request(scope, receive, send)


async def serve_stdio(service: ToolService) -> None:
    """Serve one MCP client over standard input and output, until it disconnects."""
    server = mcp_server(service)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
