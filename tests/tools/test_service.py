"""What people do with tools while they run: stop, disable, enable, remove. Real processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from arp.protocol.json_value import Json
from arp.tools.budget import Purchase
from arp.tools.errors import ToolAgentError, ToolCallFailed, ToolConflict, UnknownTool
from arp.tools.registry.models import SchedulingMode, SystemInfo, ToolMeta, ToolState, ToolStatus
from arp.tools.registry.registry import ToolRegistry
from arp.tools.run.runtime import HealthAlert
from arp.tools.service import ToolService
from tests.support.waiting import becomes
from tests.tools.local_tools import active, local, processes_of, serving, settings_in

pytestmark = pytest.mark.usefixtures("copied_venvs")

HOLDS = """
import http.server, json, os, time

LIFE = os.urandom(8).hex()

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.give({})

    def do_POST(self):
        params = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if params.get("hold"):
            open("began", "w").close()
            while not os.path.exists("go"):
                time.sleep(0.01)
        self.give({"life": LIFE})

    def give(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""
"""A server that holds a call until the file `go` is there, and writes `began` before; it answers
which of its lives answers."""


class Held:
    """A service with the tool `holds`, a server, of the project `demo`."""

    def __init__(self, service: ToolService) -> None:
        self.service = service
        self.project = service.projects.root / "demo"

    async def call(self) -> asyncio.Task[Json]:
        """Begin a call that the tool holds; return it when the tool has begun to work."""

        async def work() -> Json:
            return (await self.service.call("holds", {"hold": True})).result

        calling = asyncio.create_task(work())
        await becomes((self.project / "began").exists)
        return calling

    def release(self) -> None:
        """Let calls end that are held."""
        (self.project / "go").touch()

    @property
    def status(self) -> tuple[str, str]:
        tool = self.service.registry.get("holds")
        return str(tool.status), str(tool.scheduling.state)


@asynccontextmanager
async def held_in(folder: Path) -> AsyncIterator[Held]:
    async with serving(settings_in(folder, call_timeout_s=20)) as service:
        service.projects.write_file("demo/server.py", HOLDS)
        await service.activate(local(service, "holds"))
        yield Held(service)


@pytest.fixture
async def held(tmp_path: Path, copied_venvs: None) -> AsyncIterator[Held]:
    async with asyncio.timeout(60), held_in(tmp_path) as made:
        yield made
    await becomes(lambda: processes_of(tmp_path) == [])
    assert made.service.ports.allocated == frozenset()


@pytest.mark.parametrize("command", ["stop", "disable", "remove"])
async def test_running_call_finishes_first(held: Held, tmp_path: Path, command: str) -> None:
    service = held.service
    calling = await held.call()
    ending = asyncio.create_task(getattr(service, command)("holds"))
    # A call of the same tool that comes now is answered after the command.
    status = "active" if command == "stop" else "inactive"
    await becomes(lambda: held.status == (status, "running"))
    later = asyncio.create_task(service.call("holds", {}))
    tool = service.registry.get("holds")
    await service.runtimes.of(tool).healthy(tool)  # it answers, and has not been told to end
    assert not any(task.done() for task in (calling, ending))
    held.release()
    first = await calling
    await ending
    if command == "stop":
        second = (await later).result
        assert second["life"] != first["life"]
        assert held.status == ("active", "running")
    else:
        with pytest.raises((ToolConflict, UnknownTool)):
            await later
        assert processes_of(tmp_path) == []
        assert service.ports.allocated == frozenset()
        assert service.resources.allocated().cpu_cores == 0


async def test_command_that_is_cut_off_lets_the_call_finish(held: Held) -> None:
    """A disabled tool stays disabled, and stops with the next tick."""
    calling = await held.call()
    ending = asyncio.create_task(held.service.disable("holds"))
    await becomes(lambda: held.status == ("inactive", "running"))
    ending.cancel()
    await asyncio.wait([ending])
    await held.service.scheduler.tick()
    assert held.status == ("inactive", "running")
    held.release()
    await calling
    await held.service.scheduler.tick()
    assert held.status[0] == "inactive"
    assert held.status[1] != "running"
    # Its gate is open: who enables it can call it.
    await held.service.enable("holds")
    await held.service.call("holds", {})


async def test_disabled_tool_is_not_called_checked_repaired_or_registered(held: Held) -> None:
    service = held.service
    alerts: list[HealthAlert] = []

    async def take(alert: HealthAlert) -> None:
        alerts.append(alert)

    service.on_alert(take)
    tool = await service.disable("holds")
    assert (tool.status, tool.scheduling.state) == (ToolStatus.INACTIVE, ToolState.STOPPED)
    assert await service.disable("holds") == tool
    with pytest.raises(ToolConflict, match="inactive"):
        await service.call("holds", {})
    for command in (service.restart("holds"), service.activate(local(service, "holds"), True)):
        with pytest.raises(ToolConflict, match=r"disabled by a person|is inactive"):
            await command
    await service.scheduler.check_all()
    assert held.status == ("inactive", "stopped")
    assert alerts == []
    assert (await service.enable("holds")).status is ToolStatus.ACTIVE
    assert (await service.enable("holds")).status is ToolStatus.ACTIVE
    assert "life" in (await service.call("holds", {})).result


async def test_tool_that_is_built_is_disabled_when_it_is_registered(held: Held) -> None:
    """And one whose files a task has changed is not enabled: nobody has approved them."""
    service = held.service
    building = asyncio.create_task(service.activate(local(service, "again")))
    await becomes(lambda: service.registry.find("again") is not None)
    disabled = await service.disable("again")
    await building
    assert disabled.status is ToolStatus.INACTIVE
    await service.switch_off("holds")
    for command in (service.enable, service.disable):
        with pytest.raises(ToolConflict, match="is staging"):
            await command("holds")
    assert held.status == ("staging", "stopped")


async def test_removed_tool_leaves_nothing_but_what_it_has_cost(held: Held, tmp_path: Path) -> None:
    service = held.service
    service.budget.settle(service.budget.reserve(Purchase("openai", 4, "holds")).id, "4")

    (tmp_path / "data" / "config.json").write_text('{"network_tools": ["holds"]}')
    forgotten: list[str] = []

    async def forget(tool: ToolMeta) -> None:
        forgotten.append(tool.tool_id)
        raise OSError("not now")

    service.on_removed(forget)
    removal = await service.remove("holds")
    assert removal.removed == ["project demo"]
    assert removal.kept == ["setting network_tools: a new tool holds has the network"]
    assert forgotten == ["holds"]
    assert not held.project.exists()
    assert service.projects.projects() == []
    assert service.registry.find("holds") is None
    assert service.resources.allocated().cpu_cores == 0
    assert [str(one.amount_usd) for one in service.budget.transactions()] == ["4.0"]
    with pytest.raises(UnknownTool):
        await service.remove("holds")
    # Its names are free, and the next tool of this id begins from nothing.
    await service.projects.create("demo")
    service.projects.write_file("demo/server.py", HOLDS)
    again = await service.activate(local(service, "holds"))
    assert again.stats.call_count == 0


async def test_files_that_another_tool_uses_stay_until_the_last_is_removed(held: Held) -> None:
    service = held.service
    active(service, local(service, "other"))
    removal = await service.remove("holds")
    assert (removal.removed, removal.kept) == ([], ["project demo: other uses it"])
    assert held.project.exists()
    assert "life" in (await service.call("other", {})).result
    assert (await service.remove("other")).removed == ["project demo"]
    assert not held.project.exists()


async def test_files_that_are_not_ours_stay(held: Held, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    tool = local(held.service, "foreign")
    runtime = msgspec.structs.replace(tool.runtime, host_dir=str(tmp_path / "theirs"))
    active(held.service, msgspec.structs.replace(tool, runtime=runtime))
    assert (await held.service.remove("foreign")).removed == []
    assert (tmp_path / "theirs").is_dir()
    assert held.project.is_dir()


async def test_files_that_cannot_be_removed_are_named_and_tried_again(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool is disabled meanwhile, so nothing runs from what is left."""
    rmtree = "arp.tools.projects.projects.shutil.rmtree"
    with monkeypatch.context() as patched:
        patched.setattr(rmtree, lambda path, ignore_errors: os.unlink(path / "server.py"))
        with pytest.raises(ToolCallFailed, match=r"some files of .*demo cannot be removed"):
            await held.service.remove("holds")
    assert held.status == ("inactive", "stopped")
    assert [one.name for one in held.service.projects.projects()] == ["demo"]
    assert (await held.service.remove("holds")).removed == ["project demo"]


@pytest.mark.parametrize(
    "commands",
    [
        ("stop", "stop"),
        ("disable", "disable"),
        ("disable", "enable"),
        ("enable", "disable"),
        ("remove", "remove"),
        ("remove", "disable"),
        ("disable", "remove"),
        ("stop", "remove"),
    ],
)
async def test_two_commands_at_once_happen_one_after_the_other(
    held: Held, tmp_path: Path, commands: tuple[str, str]
) -> None:
    calling = await held.call()
    running = [asyncio.create_task(getattr(held.service, one)("holds")) for one in commands]
    held.release()
    await calling
    outcomes = await asyncio.gather(*running, return_exceptions=True)
    unexpected = [one for one in outcomes if isinstance(one, BaseException)]
    assert all(isinstance(one, UnknownTool) for one in unexpected), unexpected
    if "remove" in commands:
        assert held.service.registry.find("holds") is None
        assert not held.project.exists()
        assert len(unexpected) == (commands[0] == "remove")
    else:
        assert not unexpected
        last = "active" if commands[1] in ("enable", "stop") else "inactive"
        assert held.status[0] == last
    if commands[1] != "enable" or held.status[0] == "inactive":
        assert processes_of(tmp_path) == []


@pytest.mark.parametrize("end", ["closed", "killed"])
async def test_disabled_tool_stays_disabled_after_a_restart(tmp_path: Path, end: str) -> None:
    folder = tmp_path / "first"
    async with held_in(folder) as held:
        await held.service.disable("holds")
        before = (folder / "data" / "registry.json").read_bytes()
        if end == "killed":  # before the tool had stopped
            registry = ToolRegistry(folder / "data")
            registry.update("holds", _running)
            before = (folder / "data" / "registry.json").read_bytes()
    (folder / "data" / "registry.json").write_bytes(before)
    service = ToolService(settings_in(folder))
    async with service:
        await service.scheduler.tick()
        await service.scheduler.check_all()
        tool = service.registry.get("holds")
        assert tool.status is ToolStatus.INACTIVE
        assert tool.scheduling.state is not ToolState.RUNNING
        with pytest.raises(ToolConflict):
            await service.call("holds", {})
        await service.enable("holds")
        assert "life" in (await service.call("holds", {})).result
    async with service:  # the second life of one object
        assert (await service.remove("holds")).removed == ["project demo"]


def _running(tool: ToolMeta) -> ToolMeta:
    scheduling = msgspec.structs.replace(tool.scheduling, state=ToolState.RUNNING)
    return msgspec.structs.replace(tool, scheduling=scheduling)


async def test_idle_tool_makes_room_on_the_machine(held: Held) -> None:
    """Real servers: the idle one has ended when the new one answers."""
    service = held.service
    service.resources._machine = OneTool()
    first = (await service.call("holds", {})).result["life"]
    active(service, local(service, "second"))
    second = (await service.call("second", {})).result["life"]
    assert second != first
    assert held.status == ("active", "sleeping")
    (held.project / "began").unlink(missing_ok=True)
    (held.project / "go").unlink(missing_ok=True)
    working = await held.call()
    with pytest.raises(ToolAgentError, match="second needs"):
        await service.call("second", {})
    held.release()
    await working


class OneTool:
    """A machine that has room for one tool of the tests."""

    def system(self) -> SystemInfo:
        return SystemInfo(1, 0.0, 400, 400, 0.0, 1.0, 1.0)

    def gpu_memory_mb(self) -> float:
        return 0.0


async def test_tool_that_cannot_start_raises_an_alert(held: Held) -> None:
    """It slept, and its file was broken meanwhile."""
    service = held.service
    alerts: list[HealthAlert] = []

    async def take(alert: HealthAlert) -> None:
        alerts.append(alert)

    service.on_alert(take)
    await service.scheduler.sleep_tool("holds")
    service.projects.write_file("demo/server.py", "raise SystemExit('broken')")
    with pytest.raises(ToolCallFailed, match="broken"):
        await service.call("holds", {})
    assert [alert.tool_id for alert in alerts] == ["holds"]
    assert "broken" in alerts[0].error
    assert held.status == ("active", "degraded")
    service.projects.write_file("demo/server.py", HOLDS)
    await service.call("holds", {})
    assert held.status == ("active", "running")


async def test_replacement_that_cannot_start_raises_no_alert(held: Held) -> None:
    """Who builds it gets the error."""
    alerts: list[HealthAlert] = []

    async def take(alert: HealthAlert) -> None:
        alerts.append(alert)

    held.service.on_alert(take)
    broken = local(held.service, "new", entry="python no_server.py", mode=SchedulingMode.COLD)
    with pytest.raises(ToolCallFailed):
        await held.service.activate(broken)
    assert alerts == []
