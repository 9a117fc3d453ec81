"""The tables on disk: files of earlier versions are read, and written back byte for byte.

`table_files/first` was written by `write_all`, `table_files/changed` by `change_all` after
`with_additions`. Both were recorded before the tables shared `JsonTable`.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from arp.runtime.contract.types import McpServer
from arp.tools.app.imported import McpImports
from arp.tools.clock import Clock
from arp.tools.projects.project_table import ProjectTable
from arp.tools.registry.models import (
    ContainerInfo,
    RuntimeInfo,
    RuntimeType,
    ToolMeta,
    ToolStatus,
)
from arp.tools.registry.registry import ToolRegistry
from arp.tools.run.containers import ContainerTable
from arp.tools.run.docker import BackgroundCommand, DockerEngine
from arp.tools.run.ports import Ports
from arp.tools.service import ToolService
from arp.tools.tasks.task_book import TaskBook, TaskStatus
from tests.tools.house import settings_in
from tests.tools.test_models import TOOL

RECORDED = Path(__file__).parent / "table_files"
TABLES = {
    "registry.json": "tools",
    "containers.json": "containers",
    "projects.json": "projects",
    "container_commands.json": "commands",
    "tasks.json": "tasks",
    "mcp_servers.json": "servers",
}
"""Files, and the name of the list of rows in each."""


class Ticks:
    """Clock that advances by a minute each time it is read."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 20, 10, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(minutes=1, microseconds=5)
        return self._now


@pytest.fixture(autouse=True)
def _fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fix the ids and the users, which would differ from run to run."""
    ids = (uuid.UUID(int=number) for number in range(1, 100))
    monkeypatch.setattr("arp.tools.tasks.task_book.uuid.uuid4", lambda: next(ids))
    uids: Iterator[int] = iter(range(70_000, 70_100))
    monkeypatch.setattr("arp.tools.projects.project_table.free_uid", lambda _: next(uids))


def engine_in(data_dir: Path, clock: Clock) -> DockerEngine:
    containers = ContainerTable(data_dir, clock)
    return DockerEngine(settings_in(data_dir), containers, Ports(lambda: 9001))


def imported(server: str, tool: str) -> ToolMeta:
    runtime = RuntimeInfo(RuntimeType.API, f"mcp:{server}/{tool}")
    return ToolMeta(f"{server}_{tool}", tool, "mcp", runtime=runtime, status=ToolStatus.ACTIVE)


def write_all(data_dir: Path) -> None:
    """Write the files from nothing, except `mcp_servers.json`, which only a real server adds to."""
    clock = Clock(now=Ticks().now)
    registry = ToolRegistry(data_dir)
    registry.add(msgspec.convert(TOOL, ToolMeta))
    for tool in (ToolMeta("b", "Zwei", "text"), ToolMeta("a", "Eins"), imported("shop", "pack")):
        registry.add(tool)
    registry.add(ToolMeta("b", "Deux", "text"), replace=True)
    registry.add(ToolMeta("gone", "Gone"))
    registry.remove("gone")

    containers = ContainerTable(data_dir, clock)
    for number in range(3):
        containers.add(ContainerInfo(f"c{number}", port_mapping={"8080": 9001 + number}))
    containers.record_destroyed("c1")

    projects = ProjectTable(data_dir)
    projects.claim("fold", ("/usr/bin/python3", "/usr"))
    projects.claim("unfold", ("/usr/bin/python3", "/usr"), "00ff")
    projects.claim("gone", ("", ""))
    projects.forget("gone")

    engine = engine_in(data_dir, clock)
    for container_id, command in (("c0", "serve"), ("c2", "serve"), ("c0", "work --für immer")):
        engine._record_command(BackgroundCommand(container_id, command, f"/tmp/{command[:5]}.log"))

    book = TaskBook(data_dir, clock)
    done = book.add("fold paper", callback_url="https://caller.example/", owner="ada")
    book.set(done.task_id, TaskStatus.RUNNING, attempts=1, projects=["/data/projects/fold"])
    book.set(done.task_id, TaskStatus.COMPLETED, tool_id="fold", result="es läuft", url="http://x/")
    book.add("fold maps")


async def change_all(data_dir: Path) -> None:
    """Change each file in all ways that its table offers."""
    clock = Clock(now=Ticks().now)
    registry = ToolRegistry(data_dir)
    registry.update("image_compress_api", lambda tool: replace(tool, status=ToolStatus.INACTIVE))
    registry.add(ToolMeta("b", "Two"), replace=True)
    registry.add(ToolMeta("c", "Three"))
    registry.remove("a")

    containers = ContainerTable(data_dir, clock)
    containers.touch("c0")
    containers.add(ContainerInfo("c3", image="ubuntu:22.04"))
    engine = engine_in(data_dir, clock)
    engine._record_destroyed(containers.get("c0"))
    engine._record_command(BackgroundCommand("c3", "serve", "/tmp/serve.log"))

    projects = ProjectTable(data_dir)
    projects.finish("unfold")
    projects.claim("refold", ("/usr/bin/python3", "/usr"))
    projects.forget("fold")

    book = TaskBook(data_dir, clock)
    book.set(book.tasks()[1].task_id, TaskStatus.RUNNING, session_id="s1", containers=["c3"])
    book.reopen()
    book.set(book.tasks()[0].task_id, callback="delivered")

    service = ToolService(settings_in(data_dir))
    imports = McpImports(service)
    await service.remove("shop_pack")  # the last tool of that server, so the server goes too
    assert [one.name for one in imports.servers()] == ["sums"]


def with_additions(data_dir: Path) -> None:
    """Add fields of a later version to each document and its rows."""
    for name, rows in TABLES.items():
        path = data_dir / name
        document: dict[str, Any] = msgspec.json.decode(path.read_bytes())
        for number, row in enumerate(document[rows]):
            row["later"] = {"row": number}
        document["later"] = [name]
        path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


@pytest.mark.parametrize("name", [name for name in TABLES if name != "mcp_servers.json"])
def test_a_file_is_written_as_before(tmp_path: Path, name: str) -> None:
    write_all(tmp_path)
    assert (tmp_path / name).read_bytes() == (RECORDED / "first" / name).read_bytes()


async def test_files_with_fields_of_a_later_version_are_changed_as_before(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    shutil.copytree(RECORDED / "first", data_dir)
    with_additions(data_dir)
    await change_all(data_dir)
    for name in TABLES:
        assert (data_dir / name).read_text() == (RECORDED / "changed" / name).read_text()


async def test_rows_of_a_recorded_file_are_read(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    shutil.copytree(RECORDED / "first", data_dir)
    service = ToolService(settings_in(data_dir))
    ids = [tool.tool_id for tool in service.registry]
    assert ids == ["image_compress_api", "a", "shop_pack", "b"]
    assert [one.container_id for one in service.containers.containers()] == ["c0", "c1", "c2"]
    assert service.containers.ports() == {9001, 9003}
    unfinished = [(one.name, one.mark) for one in ProjectTable(data_dir).unfinished()]
    assert unfinished == [("unfold", "00ff")]
    commands = [one.command for one in service.docker._commands_of("c0")]
    assert commands == ["serve", "work --für immer"]
    tasks = TaskBook(data_dir).tasks()
    assert [task.status for task in tasks] == [TaskStatus.COMPLETED, TaskStatus.PENDING]
    shop, sums = McpImports(service).servers()
    assert shop == McpServer("shop", "shop-server", ("--quiet",), {"KEY": "x"})
    assert sums.url == "https://sums.example/mcp"
