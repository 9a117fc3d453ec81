"""`ToolboxServer`: offers the ten tools to coding agents over MCP.

Theory of operation. An agent runs in its own process, so it uses the tools by MCP over HTTP, at a
local port that serves nothing else. Each task has a URL with a random key, and a token; both are
valid until the task ends. An agent in this process may use the MCP server directly (`server_of`).
The error of a call is returned to the agent as the error of the tool, so that the agent can try
something else.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import mcp_types as mcp
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from arp.access.own_code import OwnCodeDetector
from arp.access.settings import Bounds
from arp.net.bodies import BoundedBodies, JsonBodies
from arp.net.bounded_server import InnerServer
from arp.protocol.json_value import MAX_VALUES
from arp.tools.build.coding_job import CodingJob
from arp.tools.build.toolbox import TEN_TOOLS
from arp.tools.errors import ToolAgentError

SERVER_NAME: Final = "tool_agent"
"""Name of the MCP server for agents."""
MAX_BODY: Final = 4 << 20
"""Maximum size in bytes of one call, which may contain a file to write."""
MAX_BODY_VALUES: Final = MAX_VALUES
"""Maximum number of JSON values in one call."""


class ToolboxAddress(NamedTuple):
    """URL and token for the tools of a task."""

    url: str
    headers: dict[str, str]


def server_of(job: CodingJob) -> Server[Any]:
    """Return the MCP server of a job, with the ten tools."""

    async def list_tools(context: Any, params: Any) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(
            tools=[
                mcp.Tool(name=name, description=tool.description, input_schema=tool.schema())
                for name, tool in TEN_TOOLS.items()
            ]
        )

    async def call_tool(context: Any, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        try:
            result = await job.call(params.name, params.arguments or {})
        except ToolAgentError as failed:
            return _result({"status": "error", "message": failed.message}, is_error=True)
        return _result(result, is_error=False)

    return Server(SERVER_NAME, on_list_tools=list_tools, on_call_tool=call_tool)


def _result(value: dict[str, Any], *, is_error: bool) -> mcp.CallToolResult:
    text = mcp.TextContent(type="text", text=msgspec.json.encode(value).decode())
    return mcp.CallToolResult(content=[text], structured_content=value, is_error=is_error)


class _ToolboxListener(InnerServer):
    """Routes requests to the jobs that are offered."""

    def __init__(self, listener: socket.socket, bounds: Bounds | None) -> None:
        super().__init__(self.answer, listener, bounds)
        self._bodies = JsonBodies(MAX_BODY, MAX_BODY_VALUES, bounds)
        self.jobs: dict[str, tuple[str, StreamableHTTPSessionManager]] = {}
        """Token and MCP server of each job, by the key in its URL."""
        self._own_code = OwnCodeDetector(has_token=False)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; refuse it without the URL and the token of a job."""
        key, _, rest = scope["path"].removeprefix("/").partition("/")
        found = self.jobs.get(key)
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if self._own_code.is_tool(scope):
            await Response(status_code=403)(scope, receive, send)
            return
        if found is None or rest != "mcp" or host != f"127.0.0.1:{self.port}":
            await Response(status_code=404)(scope, receive, send)
            return
        token, manager = found
        authorization = headers.get(b"authorization", b"")
        if b"origin" in headers or not hmac.compare_digest(
            authorization, f"Bearer {token}".encode()
        ):
            await Response(status_code=401)(scope, receive, send)
            return
        await BoundedBodies(manager.handle_request, self._bodies)(scope, receive, send)


class ToolboxServer:
    """Server on a local port; it starts with the first job.

    Args:
        bounds: Limits of its connections; `None` means the defaults.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds
        self._listener: _ToolboxListener | None = None
        self._starting = asyncio.Lock()

    @asynccontextmanager
    async def offered(self, job: CodingJob) -> AsyncIterator[ToolboxAddress]:
        """Offer the tools of a job within a block; yield their address."""
        listener = await self._started()
        key, token = secrets.token_urlsafe(16), secrets.token_urlsafe(32)
        manager = StreamableHTTPSessionManager(server_of(job), max_request_body_size=MAX_BODY)
        async with manager.run():
            listener.jobs[key] = (token, manager)
            try:
                url = f"http://127.0.0.1:{listener.port}/{key}/mcp"
                yield ToolboxAddress(url, {"Authorization": f"Bearer {token}"})
            finally:
                del listener.jobs[key]

    async def aclose(self) -> None:
        """Stop listening; the next job starts the server again, possibly in another event loop."""
        self._starting = asyncio.Lock()
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.aclose()

    async def _started(self) -> _ToolboxListener:
        async with self._starting:
            if self._listener is None:
                bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                bound.bind(("127.0.0.1", 0))
                listener = _ToolboxListener(bound, self._bounds)
                await listener.open()
                self._listener = listener
            return self._listener
