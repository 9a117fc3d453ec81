"""Active tools are tools of an MCP server: over HTTP, and over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from arp.tools.registry.models import ToolStatus
from tests.tools.house import settings_in, tool_named
from tests.tools.serving_routes import ToolHouse, tool_house


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolHouse]:
    with tool_house(tmp_path_factory.mktemp("data")) as made:
        yield made


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_active_tools_are_listed_and_called(served: ToolHouse, mode: str) -> None:
    served.agent.service.registry.add(tool_named("asleep", ToolStatus.INACTIVE), replace=True)
    async with Client(f"{served.url}/mcp", mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(tools) == ["add", "count", "fail", "picture", "rows"]
        assert tools["add"].input_schema["required"] == ["a", "b"]
        got = await client.call_tool("add", {"a": 2, "b": 3})
        assert got.structured_content == {"sum": 5}
        bad = await client.call_tool("add", {"a": "two", "b": 3})
        assert bad.is_error
        assert "params.a: 'two' is not of type 'integer'" in str(bad.content)
        bomb = await client.call_tool("add", {"a": [0] * 20_000, "b": 3})
        assert bomb.is_error
        assert "arguments: more than 20000 values" in str(bomb.content)
        failed = await client.call_tool("fail", {})
        assert failed.is_error
        assert "the disk is full" in str(failed.content)
        asleep = await client.call_tool("asleep", {})
        assert asleep.is_error
        picture = await client.call_tool("picture", {})
        assert [part.type for part in picture.content] == ["text", "image"]


async def test_pieces_of_a_result_are_progress(served: ToolHouse) -> None:
    seen: list[str] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append(f"{progress:g} {message}")

    async with Client(f"{served.url}/mcp", mode="legacy") as client:
        got = await client.call_tool("count", {}, progress_callback=progressed)
    assert got.structured_content == {"counted": 3}
    assert seen == ["1 0\n", "2 1\n", "3 2\n"]


async def test_tools_are_served_over_standard_input_and_output(tmp_path: Path) -> None:
    """An empty registry: the tools of the house are functions of this process."""
    assert settings_in(tmp_path).data_dir == tmp_path
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "arp.cli", "tools", "serve", "--stdio"],
        env={"TOOL_AGENT_DATA_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[2],
    )
    async with asyncio.timeout(40), Client(parameters, mode="legacy") as client:
        assert (await client.list_tools()).tools == []
        assert (await client.call_tool("none", {})).is_error
