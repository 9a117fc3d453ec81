"""A coding agent without a model: it builds one tool, with the same calls as a real agent.

It gets a task and the ten tools by MCP, as Claude Code or Codex would. It can write one tool, which
makes pictures smaller, and repair that. Everything else it does is real: the project, its packages,
the server, the registration.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mcp_types as mcp
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from arp.api import FunctionRuntime, FunctionTurn, SessionFeed, TaskSession, ari

SOURCE = Path(__file__).with_name("image_tool.py")
WORDS = ("compress", "smaller", "shrink", "压缩")
"""A request with one of them means the tool that the script can write."""

INPUT = {
    "type": "object",
    "properties": {
        "image": {"type": "string", "description": "A picture as data URL, or as base64."},
        "quality": {"type": "integer", "minimum": 1, "maximum": 100, "default": 60},
        "max_width": {"type": "integer", "minimum": 1, "maximum": 10_000},
    },
    "required": ["image"],
    "additionalProperties": False,
}
OUTPUT = {
    "type": "object",
    "properties": {
        "original_size": {"type": "integer"},
        "compressed_size": {"type": "integer"},
        "compression_ratio": {"type": "number"},
        "image": {"type": "string"},
    },
    "required": ["original_size", "compressed_size", "compression_ratio", "image"],
}


class ScriptedSmith(FunctionRuntime):
    """An agent runtime that works by a script."""

    takes = FunctionRuntime.takes | {"mcp_servers", "instructions"}
    more_capabilities = (*FunctionRuntime.more_capabilities, "instructions", "mcp_servers")

    def __init__(self) -> None:
        super().__init__(self._work, name="scripted-smith")
        self._servers: dict[str, ari.McpServer] = {}

    async def _create(self, request: ari.CreateSessionRequest, feed: SessionFeed) -> TaskSession:
        session = await super()._create(request, feed)
        self._servers[session.session_id] = request.mcp_servers[-1]
        return session

    async def _work(self, turn: FunctionTurn) -> str:
        server = self._servers[turn.session_id]
        async with create_mcp_http_client(headers=dict(server.headers)) as http:
            place = streamable_http_client(server.url, http_client=http)
            async with Client(place, mode="legacy") as tools:
                return await Script(turn, tools).run()


class Script:
    """One task."""

    def __init__(self, turn: FunctionTurn, tools: Client) -> None:
        self._turn, self._tools = turn, tools

    async def run(self) -> str:
        """Carry out the task; return the text for the end of the turn."""
        spec = json.loads(self._turn.text.partition("The task as JSON:")[2])
        try:
            if spec["type"] == "repair_tool":
                return await self._repair(spec["tool_id"])
            if any(word in spec["description"].lower() for word in WORDS):
                return await self._build(spec["tool_name"])
        except RuntimeError as failed:
            return f"I stop: {failed}"
        return "I am a script, and can only build a tool that compresses images."

    async def _build(self, name: str) -> str:
        self._turn.say("I write a server that makes pictures smaller, with Pillow. ")
        project = (await self._call("create_uv_project", name=name))["project_dir"]
        await self._call("write_file", path=f"{project}/main.py", content=SOURCE.read_text())
        await self._call("uv_add_dependency", project_dir=project, package="pillow")
        self._turn.say("First I try whether it can be loaded. ")
        check = await self._call(
            "run_in_uv",
            project_dir=project,
            command='python -c "import main; print(main.MAX_BODY)"',
        )
        if check["exit_code"]:
            return f"I stop: it cannot be loaded: {check['stderr'][-500:]}"
        await self._register(name, project)
        return "It is registered, and answers."

    async def _repair(self, tool_id: str) -> str:
        self._turn.say("I write the server again, and start it. ")
        await self._call("write_file", path="main.py", content=SOURCE.read_text())
        await self._register(tool_id, "")
        return "It is repaired, and answers."

    async def _register(self, name: str, project: str) -> None:
        await self._call(
            "register_tool",
            tool_id=name,
            name="Image compressor",
            description="Compresses an image: makes a picture smaller, as JPEG.",
            runtime_type="local",
            host_port=0,
            internal_port=8000,
            category="cv",
            input_schema=INPUT,
            output_schema=OUTPUT,
            host_dir=project,
            endpoint_path="/api/compress",
            http_method="POST",
        )

    async def _call(self, tool: str, /, **args: Any) -> dict[str, Any]:
        """Call one of the ten tools.

        Raises:
            RuntimeError: It could not be done.
        """
        got = await self._tools.call_tool(tool, args)
        value = got.structured_content or {}
        if got.is_error:
            texts = [part.text for part in got.content if isinstance(part, mcp.TextContent)]
            raise RuntimeError(str(value.get("message") or " ".join(texts)))
        return dict(value)
