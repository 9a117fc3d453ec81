"""Tools of MCP servers are tools of the registry, with a real server over pipes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from arp.runtime.contract.types import McpServer
from arp.tools.app.imported import SCHEME, McpImports
from arp.tools.errors import InvalidToolMeta, RuntimeMissing, ToolCallFailed, ToolConflict
from arp.tools.registry.models import ToolStatus
from arp.tools.service import ToolService
from tests.runtime import mcp_server, mcp_shop
from tests.tools.house import settings_in, tool_named

SUMS = McpServer("sums", sys.executable, (mcp_server.__file__,))
SHOP = McpServer("shop", sys.executable, (mcp_shop.__file__,))


def house(data_dir: Path) -> tuple[ToolService, McpImports]:
    service = ToolService(settings_in(data_dir))
    imports = McpImports(service)
    service.runtimes.add_scheme(SCHEME, imports)
    return service, imports


async def test_tool_of_a_server_is_registered_and_called_after_a_restart(tmp_path: Path) -> None:
    service, imports = house(tmp_path)
    async with service:
        (tool,) = await imports.add(SUMS)
        assert (tool.tool_id, tool.runtime.entry) == ("sums_add", "mcp:sums/add")
    service, imports = house(tmp_path)
    async with service:
        assert [one.name for one in imports.servers()] == ["sums"]
        outcome = await service.call("sums_add", {"a": 2, "b": 3})
        assert outcome.result == "5"
        assert await service.scheduler.check_now("sums_add") is None


async def test_tools_that_are_imported_again_take_their_own_place(tmp_path: Path) -> None:
    service, imports = house(tmp_path)
    names = [tool.tool_id for tool in await imports.add(SHOP)]
    assert names
    assert all(name.startswith("shop_") for name in names)
    assert [tool.tool_id for tool in await imports.add(SHOP)] == names
    assert [tool.tool_id for tool in service.registry.tools()] == names


async def test_server_that_cannot_be_reached_registers_nothing(tmp_path: Path) -> None:
    service, imports = house(tmp_path)
    with pytest.raises(RuntimeMissing, match="the MCP server gone cannot be reached"):
        await imports.add(McpServer("gone", "/nowhere/at/all"))
    with pytest.raises(InvalidToolMeta, match="name"):
        await imports.add(McpServer("../x", "/bin/true"))
    assert imports.servers() == []
    assert service.registry.tools() == []


async def test_id_of_another_tool_is_not_taken(tmp_path: Path) -> None:
    service, imports = house(tmp_path)
    service.registry.add(tool_named("sums_add"))
    with pytest.raises(ToolConflict, match="sums_add is taken"):
        await imports.add(SUMS)
    assert imports.servers() == []


async def test_tool_whose_server_is_gone_says_so(tmp_path: Path) -> None:
    service, imports = house(tmp_path)
    async with service:
        await imports.add(SUMS)
        (tmp_path / "mcp_servers.json").unlink()
        with pytest.raises((RuntimeMissing, ToolCallFailed), match="no MCP server 'sums'"):
            await service.call("sums_add", {"a": 2, "b": 3})


async def test_progress_of_an_imported_tool_arrives(tmp_path: Path) -> None:
    service, imports = house(tmp_path)
    async with service:
        await imports.add(SHOP)
        pieces: list[str] = []

        async def take(piece: str) -> None:
            pieces.append(piece)

        await service.call("shop_pack", {"items": 2}, take)
        assert pieces == ["item 1", "item 2"]


async def test_disabled_tool_stays_disabled_when_its_server_is_imported_again(
    tmp_path: Path,
) -> None:
    service, imports = house(tmp_path)
    async with service:
        await imports.add(SUMS)
        await service.disable("sums_add")
        (again,) = await imports.add(SUMS)
        assert again.status is ToolStatus.INACTIVE
        with pytest.raises(ToolConflict):
            await service.call("sums_add", {"a": 1, "b": 2})


async def test_server_whose_last_tool_is_removed_is_forgotten(tmp_path: Path) -> None:
    """With its variables and headers, which may be secret."""
    service, imports = house(tmp_path)
    async with service:
        names = [tool.tool_id for tool in await imports.add(SHOP)]
        await imports.add(SUMS)
        for name in names[:-1]:
            await service.remove(name)
        assert [one.name for one in imports.servers()] == ["shop", "sums"]
        await service.remove(names[-1])
        assert [one.name for one in imports.servers()] == ["sums"]
