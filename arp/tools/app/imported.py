"""`McpImports`: tools of MCP servers in the registry: `arp tools import`.

Theory of operation. `mcp_servers.json` lists the servers. Each tool of a server is a tool of the
registry with `runtime.entry` = `mcp:SERVER/TOOL`; the runtime of the scheme `mcp` calls it. A
server is connected at the first call, and stays connected.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from pathlib import Path
from typing import Final

import mcp_types as mcp
from msgspec import field, structs

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract.types import McpServer
from arp.runtime.mcp.tools import ServerLink
from arp.tools.errors import (
    InvalidToolMeta,
    RuntimeMissing,
    ToolCallFailed,
    ToolConflict,
    ToolTimeout,
)
from arp.tools.registry.json_table import JsonTable, TableDocument
from arp.tools.registry.models import (
    RuntimeInfo,
    RuntimeType,
    SchedulingMode,
    ToolMeta,
    ToolScheduling,
    ToolStatus,
)
from arp.tools.run.runtime import OnChunk
from arp.tools.service import ToolService
from arp.turn.tool import ToolFailed

SERVERS_FILE: Final = "mcp_servers.json"
SCHEME: Final = "mcp"
CALL_S: Final = 300.0
"""Time limit of a call, in seconds."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


class ServersDocument(TableDocument[McpServer], frozen=True):
    """Content of `mcp_servers.json`."""

    rows: list[McpServer] = field(default_factory=list, name="servers")


class McpImports:
    """MCP servers of one data directory, and a `ToolRuntime` for their tools.

    Args:
        service: Service with the registry of the tools.
    """

    def __init__(self, service: ToolService) -> None:
        self._service = service
        self._table = JsonTable(
            Path(service.settings.data_dir) / SERVERS_FILE,
            ServersDocument,
            key=lambda server: server.name,
        )
        self._links: dict[str, ServerLink] = {}
        self._opening = asyncio.Lock()
        service.on_removed(self._forget)

    def servers(self) -> list[McpServer]:
        """Return the servers that were added, connected or not."""
        return self._table.rows()

    async def add(self, server: McpServer) -> list[ToolMeta]:
        """Connect to a server and register its tools; replace tools with the same ids.

        A disabled tool stays disabled.

        Raises:
            InvalidToolMeta: The name is invalid.
            RuntimeMissing: The server cannot be reached; nothing is registered.
            ToolConflict: A tool that is not from this server has the id of one of its tools.
        """
        if not _NAME.fullmatch(server.name):
            raise InvalidToolMeta(f"name {server.name!r:.80}: take letters, digits, - and _")
        link = ServerLink(server)
        await link.open()
        try:
            if not link.is_listed:
                raise RuntimeMissing(
                    link.problem or f"the MCP server {server.name} cannot be reached"
                )
            found = [self._keep_disabled(_meta(server, tool)) for tool in link.tools]
            self._check_free(server, found)
            self._table.change(lambda rows: (_with_last(rows, server), None))
            return [self._service.registry.add(tool, replace=True) for tool in found]
        finally:
            await link.aclose()
            if (old := self._links.pop(server.name, None)) is not None:
                await old.aclose()

    def _keep_disabled(self, tool: ToolMeta) -> ToolMeta:
        """Return a tool; mark it as disabled if a person has disabled the tool with this id."""
        known = self._service.registry.find(tool.tool_id)
        is_disabled = known is not None and known.status is ToolStatus.INACTIVE
        return structs.replace(tool, status=ToolStatus.INACTIVE) if is_disabled else tool

    async def _forget(self, tool: ToolMeta) -> None:
        """Remove a server, with its variables and headers, when its last tool was removed."""
        scheme, _, place = tool.runtime.entry.partition(":")
        name = place.partition("/")[0]
        others = (one.runtime.entry for one in self._service.registry)
        if scheme != SCHEME or any(one.startswith(f"{SCHEME}:{name}/") for one in others):
            return
        self._table.remove(name)
        if (link := self._links.pop(name, None)) is not None:
            await link.aclose()

    def _check_free(self, server: McpServer, tools: list[ToolMeta]) -> None:
        for tool in tools:
            known = self._service.registry.find(tool.tool_id)
            if known is not None and not known.runtime.entry.startswith(f"{SCHEME}:{server.name}/"):
                raise ToolConflict(f"tool_id {tool.tool_id} is taken by another tool")

    async def _link(self, tool: ToolMeta) -> tuple[ServerLink, str]:
        """Return the connection to the server of a tool, and the name of the tool there.

        Raises:
            RuntimeMissing: There is no such server, or it cannot be reached.
        """
        name, _, tool_name = tool.runtime.entry.removeprefix(f"{SCHEME}:").partition("/")
        async with self._opening:
            link = self._links.get(name)
            if link is None or not link.is_listed:
                server = self._table.find(name)
                if server is None:
                    raise RuntimeMissing(f"there is no MCP server {name!r:.80} any more; import it")
                if link is not None:
                    await link.aclose()
                link = self._links[name] = ServerLink(server)
                await link.open()
        if not link.is_listed:
            raise RuntimeMissing(link.problem or f"the MCP server {name} cannot be reached")
        return link, tool_name

    # -- ToolRuntime -----------------------------------------------------------------------------

    async def check(self) -> None:
        """Do nothing, because each server is connected on demand."""

    async def start(self, tool: ToolMeta) -> RuntimeInfo:
        """Connect to the server of a tool."""
        await self._link(tool)
        return tool.runtime

    async def call(self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None) -> Json:
        """Call a tool of a server; pictures become data URLs in the result.

        Raises:
            ToolAgentError: The call failed.

        Cancel: Safe.
        """
        link, tool_name = await self._link(tool)
        caller = _ChunkCaller(on_chunk)
        try:
            async with asyncio.timeout(CALL_S):
                output = await link.call(tool_name, params, caller)
        except ToolFailed as failed:
            raise ToolCallFailed(failed.message) from failed
        except TimeoutError:
            raise ToolTimeout(f"{tool.tool_id} took longer than {CALL_S:g} s") from None
        finally:
            await caller.flush()
        if output.failed:
            raise ToolCallFailed(output.text or f"{tool.tool_id} failed")
        if not output.images:
            return output.value
        pictures = [_data_url(content, mime) for content, mime in output.images]
        return {"result": output.value, "images": pictures}

    async def healthy(self, tool: ToolMeta) -> None:
        """Check that the server of a tool is connected and still has the tool."""
        link, tool_name = await self._link(tool)
        try:
            await link.check()
        except ToolFailed as failed:
            raise ToolCallFailed(failed.message) from failed
        if all(one.name != tool_name for one in link.tools):
            raise ToolCallFailed(f"the MCP server has no tool {tool_name!r:.80} any more")

    async def sleep(self, tool: ToolMeta) -> RuntimeInfo:
        """Do nothing, because other tools may use the connection."""
        return tool.runtime

    async def stop(self, tool: ToolMeta) -> RuntimeInfo:
        """Do nothing, because other tools may use the connection."""
        return tool.runtime

    async def aclose(self) -> None:
        """Disconnect from all servers."""
        links, self._links = list(self._links.values()), {}
        await asyncio.gather(*(link.aclose() for link in links))
        self._opening = asyncio.Lock()


class _ChunkCaller:
    """Caller of a server's tool: forwards its progress, and declines its questions.

    A call from the registry has no session, so no person can answer, and all calls share a
    connection.
    """

    session_id = turn_id = ""

    def __init__(self, on_chunk: OnChunk | None) -> None:
        self._on_chunk = on_chunk
        self._tasks: set[asyncio.Task[None]] = set()

    def progress(self, text: str, done: float, total: float | None) -> None:
        """Forward the progress as a chunk."""
        if self._on_chunk is None:
            return
        chunk = text or (f"{done:g}" if total is None else f"{done:g} of {total:g}")

        async def send() -> None:
            assert self._on_chunk is not None
            await self._on_chunk(chunk)

        self._tasks.add(asyncio.get_running_loop().create_task(send()))

    async def flush(self) -> None:
        """Wait until all chunks have been forwarded."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ask(self, message: str, schema: JsonObject) -> JsonObject | None:
        """Decline the question."""
        return None


def _meta(server: McpServer, tool: mcp.Tool) -> ToolMeta:
    """Return the registry's entry for a tool of a server."""
    tool_id = re.sub(r"[^A-Za-z0-9_-]+", "_", f"{server.name}_{tool.name}").strip("-")[:128]
    return ToolMeta(
        tool_id,
        tool.title or tool.name,
        "mcp",
        tool.description or "",
        dict(tool.input_schema),
        _output_schema(tool),
        runtime=RuntimeInfo(RuntimeType.API, f"{SCHEME}:{server.name}/{tool.name}"),
        scheduling=ToolScheduling(SchedulingMode.HOT),
        status=ToolStatus.ACTIVE,
    )


def _output_schema(tool: mcp.Tool) -> JsonObject:
    """Return the schema of the value that `call` returns.

    The SDK wraps a value that is not an object in `result`; the schema here is that of the value.
    """
    schema = tool.output_schema
    if not schema:
        return {}
    inner = schema.get("properties", {})
    if set(inner) == {"result"}:
        rest = {name: value for name, value in schema.items() if name == "$defs"}
        return {**inner["result"], **rest}
    return dict(schema)


def _data_url(content: bytes, mime: str) -> str:
    return f"data:{mime};base64,{b64encode(content).decode()}"


def _with_last(servers: list[McpServer], last: McpServer) -> list[McpServer]:
    """Return the servers with `last` at the end, in place of one with the same name."""
    return [*(one for one in servers if one.name != last.name), last]
