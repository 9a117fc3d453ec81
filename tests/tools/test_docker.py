"""Containers on a real engine: what is made, run, put to sleep, woken, limited and cleaned up."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import docker as sdk
import httpx
import pytest

from arp.process.program import ProgramResult
from arp.protocol.json_value import JsonObject
from arp.tools.clock import Clock
from arp.tools.errors import (
    InvalidToolCall,
    InvalidToolMeta,
    ToolAgentError,
    ToolCallFailed,
    ToolRefused,
    UnknownTool,
)
from arp.tools.registry.models import (
    ContainerStatus,
    ResourceLimits,
    RuntimeInfo,
    RuntimeType,
    SchedulingMode,
    ToolMeta,
    ToolScheduling,
    ToolState,
    ToolStatus,
)
from arp.tools.run.container_rules import EnvRequest
from arp.tools.run.docker import LABEL
from arp.tools.service import ToolService
from arp.tools.settings import LiveSettings, ToolSettings
from tests.tools.docker_recording import Recorder, read_recording, serving, write_recording
from tests.tools.docker_story import DockerStory
from tests.tools.engine import Engine
from tests.tools.test_toolbox import ALWAYS, Person, box_of

pytestmark = [pytest.mark.docker, pytest.mark.root]

SERVER = (
    "mkdir -p /www/cgi-bin && printf '#!/bin/sh\\necho content-type: application/json; echo;"
    ' read -r body; echo "{\\\\"got\\\\": $body}"\' >/www/cgi-bin/run'
    " && chmod 755 /www/cgi-bin/run && exec httpd -f -p 8080 -h /www"
)
"""A tool of two lines: it answers with what it got."""


class Time:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.at = datetime(2026, 3, 20, 10, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


@pytest.fixture(scope="module")
def engine(
    requires: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
    pytestconfig: pytest.Config,
) -> Iterator[Engine]:
    """Docker's; Podman's with `--container-engine podman`."""
    program = requires(pytestconfig.getoption("--container-engine"))
    started = Engine.start(program, tmp_path_factory.mktemp("engine"))
    try:
        started.make_image()
        yield started
    finally:
        started.stop()


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
async def service(
    engine: Engine, tmp_path: Path, clock: Time, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ToolService]:
    monkeypatch.setenv("DOCKER_HOST", engine.host)
    shared = tmp_path / "shared"
    shared.mkdir()
    settings = ToolSettings(
        data_dir=tmp_path / "data", docker_base_image=engine.image, volume_directories=[shared]
    )
    made = ToolService(LiveSettings(settings), clock=Clock(now=clock.now))
    with engine.in_its_network():
        yield made
        for one in made.containers.containers(ContainerStatus.RUNNING):
            await made.docker.destroy(one.container_id)
        await made.aclose()


@pytest.fixture
def raw(engine: Engine) -> Iterator[Any]:
    """The engine, past all that is tested."""
    client = sdk.DockerClient(base_url=engine.host)
    yield client
    client.close()


def image_of(service: ToolService) -> str:
    return service.settings.current.docker_base_image


async def ran(service: ToolService, container_id: str, command: str, within_s: float = 30) -> Any:
    done = await service.docker.run(container_id, command, timeout_s=within_s)
    assert isinstance(done, ProgramResult)
    return done


async def test_a_container_is_made_used_and_destroyed(service: ToolService, raw: Any) -> None:
    made = await service.docker.create_env(EnvRequest(mem_limit="64m", ports=[8080, 3306]))
    assert made.port_mapping == {"8080": 9001, "3306": 9002}
    assert made.image == image_of(service)
    assert service.containers.get(made.container_id) == made

    done = await ran(service, made.container_id, "echo out; echo err >&2; exit 3")
    assert done == ProgramResult(3, "out\n", "err\n")
    log = await service.docker.run(made.container_id, "echo begun; sleep 60", is_background=True)
    assert isinstance(log, str)
    async with asyncio.timeout(20):
        while (await ran(service, made.container_id, f"cat {log}")).stdout != "begun\n":
            continue

    gone = await service.docker.destroy(made.container_id)
    assert gone.status is ContainerStatus.DESTROYED
    assert gone.destroyed_at is not None
    assert raw.containers.list(all=True) == []
    assert service.ports.allocated == frozenset()
    with pytest.raises(UnknownTool):
        await service.docker.run(made.container_id, "true")
    assert await service.docker.destroy(made.container_id) == gone


async def test_what_a_container_may_is_limited(service: ToolService, raw: Any) -> None:
    request = EnvRequest(mem_limit="64m", nano_cpus=500_000_000, ports=[80])
    made = await service.docker.create_env(request)
    config = raw.api.inspect_container(made.container_id)["HostConfig"]
    assert config["Memory"] == config["MemorySwap"] == 64 * 2**20
    assert config["NanoCpus"] == 500_000_000
    assert config["PidsLimit"] == 512
    status = (await ran(service, made.container_id, "cat /proc/self/status")).stdout
    # CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID and SETUID are the bits 0, 1, 3, 5, 6 and 7.
    assert "CapEff:\t00000000000000eb\n" in status
    assert "NoNewPrivs:\t1\n" in status
    assert config["PortBindings"] == {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "9001"}]}
    assert not config["Privileged"]


async def test_a_command_that_ignores_sigterm_ends_in_time(service: ToolService) -> None:
    made = await service.docker.create_env(EnvRequest())
    stubborn = "trap '' TERM INT; echo begun; while :; do sleep 1; done"
    done = await ran(service, made.container_id, stubborn, within_s=1)
    assert done.exit_code == 124
    assert done.stdout == "begun\n"
    assert done.stderr == "\narp: it took longer than 1 s and was ended\n"
    left = (await ran(service, made.container_id, "ps")).stdout
    assert "begun" not in left


async def test_endless_output_is_cut(service: ToolService) -> None:
    made = await service.docker.create_env(EnvRequest())
    done = await ran(service, made.container_id, "head -c 3000000 /dev/zero; yes | head -c 9")
    assert len(done.stdout) < 2**20 + 100
    assert "bytes left out" in done.stdout
    assert done.stdout.endswith("y\ny\ny\ny\ny")


async def test_a_fork_bomb_stays_in_its_container(service: ToolService) -> None:
    made = await service.docker.create_env(EnvRequest(mem_limit="128m"))
    bomb = "b() { b & b & }; b; b; sleep 20"
    done = await ran(service, made.container_id, bomb, within_s=2)
    assert done.exit_code in (124, 2, 0)
    await service.docker.destroy(made.container_id)
    assert (await service.docker.clean_up_now()) == []


async def test_ports_are_rebuilt_with_all_that_was_made_and_started(
    service: ToolService, raw: Any
) -> None:
    made = await service.docker.create_env(EnvRequest(ports=[8080], tool_id="echo"))
    await ran(service, made.container_id, "echo kept >/app/file")
    await service.docker.run(made.container_id, SERVER, is_background=True)
    new = await service.docker.rebuild_ports(made.container_id, [8080, 9090], mem_limit="96m")
    assert sorted(new.port_mapping) == ["8080", "9090"]
    assert not set(new.port_mapping.values()) & set(made.port_mapping.values())
    assert (new.tool_id, new.mem_limit) == ("echo", "96m")
    assert (await ran(service, new.container_id, "cat /app/file")).stdout == "kept\n"
    running = service.containers.containers(ContainerStatus.RUNNING)
    assert [one.container_id for one in running] == [new.container_id]
    tool = echo(new.container_id)
    assert (await service.activate(tool)).scheduling.state is ToolState.RUNNING
    assert (await service.call("echo", {"n": 1})).result == {"got": {"n": 1}}
    await service.docker.destroy(new.container_id)
    assert [tag for image in raw.images.list() for tag in image.tags] == [image_of(service)]


async def test_a_rebuild_that_fails_leaves_the_old_container(
    service: ToolService, raw: Any
) -> None:
    made = await service.docker.create_env(EnvRequest(ports=[8080]))
    with pytest.raises(InvalidToolMeta, match="ports"):
        await service.docker.rebuild_ports(made.container_id, [0])
    assert (await ran(service, made.container_id, "echo here")).stdout == "here\n"
    assert service.ports.allocated == frozenset({9001})
    assert [tag for image in raw.images.list() for tag in image.tags] == [image_of(service)]


async def test_a_rebuild_whose_command_does_not_start_leaves_nothing_new(
    service: ToolService, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await service.docker.create_env(EnvRequest(ports=[8080]))
    await service.docker.run(made.container_id, "sleep 60", is_background=True)

    def refused(client: Any, command: Any) -> None:
        raise ToolCallFailed("the container engine refused: no room")

    monkeypatch.setattr("arp.tools.run.docker._start_in_background", refused)
    with pytest.raises(ToolCallFailed, match="no room"):
        await service.docker.rebuild_ports(made.container_id, [8080, 9090])
    assert [one.id for one in raw.containers.list(all=True)] == [made.container_id]
    assert service.ports.allocated == frozenset({9001})
    assert [tag for image in raw.images.list() for tag in image.tags] == [image_of(service)]
    running = service.containers.containers(ContainerStatus.RUNNING)
    assert [one.container_id for one in running] == [made.container_id]


def echo(container_id: str) -> ToolMeta:
    return ToolMeta(
        "echo",
        "Echo",
        runtime=RuntimeInfo(
            type=RuntimeType.DOCKER,
            container_id=container_id,
            internal_port=8080,
            endpoint_path="/cgi-bin/run",
        ),
        scheduling=ToolScheduling(mode=SchedulingMode.HOT),
    )


async def test_a_tool_in_a_container_is_called_sleeps_and_wakes(service: ToolService) -> None:
    alerts = []

    async def take(alert: Any) -> None:
        alerts.append(alert)

    service.on_alert(take)
    made = await service.docker.create_env(EnvRequest(ports=[8080], tool_id="echo"))
    await service.docker.run(made.container_id, SERVER, is_background=True)
    active = await service.activate(echo(made.container_id))
    port = made.port_mapping["8080"]
    assert service.registry.get_endpoint("echo") == {
        "type": "docker",
        "url": f"http://localhost:{port}/cgi-bin/run",
        "host_port": port,
        "internal_port": 8080,
        "container_id": made.container_id,
        "host_dir": "",
        "http_method": "POST",
    }
    assert active.runtime.host_port == port
    assert (await service.call("echo", {"a": [1]})).result == {"got": {"a": [1]}}

    asleep = await service.scheduler.sleep_tool("echo")
    assert asleep.scheduling.state is ToolState.SLEEPING
    assert not await service.docker.is_running(made.container_id)
    assert (await service.call("echo", {"a": 2})).result == {"got": {"a": 2}}

    await ran(
        service,
        made.container_id,
        "kill -9 $(ps | grep '[h]ttpd -f' | head -n1 | { read -r pid rest; echo $pid; })",
    )
    problem = await service.scheduler.check_now("echo")
    assert problem is not None
    assert [alert.tool_id for alert in alerts] == ["echo"]
    assert alerts[0].last_healthy == "2026-03-20T10:00:00Z"
    assert service.registry.get("echo").scheduling.state is ToolState.DEGRADED


async def test_a_container_that_somebody_removed_is_noted(service: ToolService, raw: Any) -> None:
    made = await service.docker.create_env(EnvRequest(ports=[8080], tool_id="echo"))
    await service.docker.run(made.container_id, SERVER, is_background=True)
    await service.activate(echo(made.container_id))
    raw.containers.get(made.container_id).remove(force=True)
    assert "no such container" in str(await service.scheduler.check_now("echo")).lower()
    assert service.containers.containers(ContainerStatus.RUNNING) == []
    with pytest.raises(UnknownTool):
        await service.call("echo", {})


async def test_containers_that_nobody_uses_are_cleaned_up(
    service: ToolService, raw: Any, clock: Time
) -> None:
    idle = await service.docker.create_env(EnvRequest(ports=[80]))
    used = await service.docker.create_env(EnvRequest(ports=[8080], tool_id="echo"))
    await service.docker.run(used.container_id, SERVER, is_background=True)
    await service.activate(echo(used.container_id))
    clock.at += timedelta(seconds=1799)
    assert await service.docker.clean_up_now() == []
    clock.at += timedelta(seconds=1)
    assert await service.docker.clean_up_now() == [idle.container_id]
    assert {one.id for one in raw.containers.list(all=True)} == {used.container_id}


async def test_a_container_that_a_crash_left_is_cleaned_up(
    service: ToolService, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made by us, and we were killed before its line was written."""
    owner = service.docker._owner
    image = image_of(service)
    lost = raw.containers.create(image, "true", labels={LABEL: owner})
    other = raw.containers.create(image, "true", labels={LABEL: "of another data directory"})
    try:
        assert await service.docker.clean_up_now() == []  # it may be about to be written
        monkeypatch.setattr("arp.tools.run.docker.API_S", -1)
        assert await service.docker.clean_up_now() == [lost.id]
    finally:
        other.remove(force=True)


async def test_a_project_is_mounted(service: ToolService, tmp_path: Path) -> None:
    shared = tmp_path / "shared" / "data"
    shared.mkdir()
    project = tmp_path / "data" / "projects" / "mine"
    project.mkdir(parents=True)
    volumes = {str(project): "/app", str(shared): "/data"}
    made = await service.docker.create_env(EnvRequest(volumes=volumes))
    await ran(service, made.container_id, "echo a >/app/a; echo b >/data/b")
    assert (project / "a").read_text() == "a\n"
    assert (shared / "b").read_text() == "b\n"
    assert made.volumes == volumes


async def test_an_image_that_is_not_there_is_an_error_and_leaks_no_port(
    service: ToolService,
) -> None:
    with pytest.raises(ToolCallFailed, match=r"image|refused"):
        await service.docker.create_env(EnvRequest("arp/nothing:1", ports=[80]))
    assert service.ports.allocated == frozenset()
    assert service.containers.containers() == []


async def test_the_port_of_a_container_is_not_given_twice(service: ToolService) -> None:
    made = await asyncio.gather(
        *(service.docker.create_env(EnvRequest(ports=[80])) for _ in range(4))
    )
    assert {one.port_mapping["80"] for one in made} == {9001, 9002, 9003, 9004}


async def test_the_state_of_containers_survives_a_restart_of_the_service(
    service: ToolService, engine: Engine, tmp_path: Path
) -> None:
    made = await service.docker.create_env(EnvRequest(ports=[8080], tool_id="echo"))
    await service.docker.run(made.container_id, SERVER, is_background=True)
    await service.activate(echo(made.container_id))
    await service.aclose()
    again = ToolService(LiveSettings(ToolSettings(data_dir=tmp_path / "data")))
    async with again:
        assert again.registry.get("echo").scheduling.state is ToolState.RUNNING
        assert again.scheduler.hot_tools() == ["echo"]
        assert (await again.call("echo", {"b": 1})).result == {"got": {"b": 1}}


@pytest.mark.usefixtures("engine")
async def test_cancelled_commands_are_killed(service: ToolService) -> None:
    made = await service.docker.create_env(EnvRequest())
    running = asyncio.create_task(
        service.docker.run(made.container_id, "echo $$ >/app/p; sleep 99")
    )
    async with asyncio.timeout(20):
        while (await ran(service, made.container_id, "test -s /app/p")).exit_code:
            continue
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    left = (await ran(service, made.container_id, "ps")).stdout
    assert "sleep 99" not in left


async def test_a_task_makes_a_tool_with_the_four_docker_tools(
    service: ToolService, raw: Any
) -> None:
    box, person = box_of(service), Person(ALWAYS)
    wanted: JsonObject = {"image": image_of(service), "mem_limit": "64m", "ports": [3306]}
    made = await box.call("create_docker_env", wanted, person)
    first = str(made["container_id"])
    assert made == {"container_id": first, "port_mapping": {"3306": 9001}}

    write = {"container_id": first, "command": "echo kept >/app/file; echo done; exit 4"}
    done = await box.call("run_in_docker", write, person)
    assert done == {"exit_code": 4, "stdout": "done\n", "stderr": ""}
    assert [one.input for one in person.asked] == [write]
    assert [(one.command, one.exit_code, one.sandbox) for one in person.runs] == [
        (write["command"], 4, "docker")
    ]
    serve: JsonObject = {"container_id": first, "command": SERVER, "is_background": True}
    log = (await box.call("run_in_docker", serve, person))["log_file"]
    assert str(log).startswith("/tmp/arp-")

    rebuild: JsonObject = {"container_id": first, "ports": [8080]}
    rebuilt = await box.call("rebuild_docker_ports", rebuild, person)
    second = str(rebuilt["new_container_id"])
    assert rebuilt == {"new_container_id": second, "port_mapping": {"8080": 9002}}
    with pytest.raises(ToolRefused, match="no container of this task"):
        await box.call("run_in_docker", write, person)
    read = {"container_id": second, "command": "cat /app/file"}
    assert (await box.call("run_in_docker", read, person))["stdout"] == "kept\n"
    with pytest.raises(ToolRefused, match="no container of this task"):
        await box_of(service).call("run_in_docker", read, person)
    assert len(person.asked) == 1  # all that the task runs in there was allowed

    tool: JsonObject = {
        "tool_id": "echo", "name": "Echo", "description": "Says it back.",
        "runtime_type": "docker", "container_id": second, "host_port": 0, "internal_port": 8080,
        "endpoint_path": "/cgi-bin/run",
    }  # fmt: skip
    url = "http://localhost:9002/cgi-bin/run"
    registered = await box.call("register_tool", tool, person)
    assert registered == {"status": "success", "tool_id": "echo", "url": url}
    assert box.registered is not None
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.post(url, json={"n": 1})).json() == {"got": {"n": 1}}
    assert (await service.call("echo", {"n": 2})).result == {"got": {"n": 2}}

    gone = await box.call("destroy_docker_env", {"container_id": second}, person)
    assert gone == {"status": "success", "message": f"container {second[:12]} is destroyed"}
    assert raw.containers.list(all=True) == []
    assert service.ports.allocated == frozenset()
    assert box.registered is None
    assert service.registry.get("echo").status is ToolStatus.STAGING
    with pytest.raises(ToolAgentError):
        await service.call("echo", {"n": 3})


async def test_removed_tool_takes_its_container_and_mounted_project_with_it(
    service: ToolService, raw: Any
) -> None:
    """Its limits were those of its container."""
    box, person = box_of(service), Person(ALWAYS)
    project = (await box.call("create_uv_project", {"name": "seen"}, person))["project_dir"]
    made = await box.call(
        "create_docker_env",
        {
            "image": image_of(service),
            "mem_limit": "64m",
            "nano_cpus": 250_000_000,
            "ports": [8080],
            "volumes": {str(project): "/seen"},
        },
        person,
    )
    container_id = str(made["container_id"])
    serve: JsonObject = {"container_id": container_id, "command": SERVER, "is_background": True}
    await box.call("run_in_docker", serve, person)
    tool: JsonObject = {
        "tool_id": "echo", "name": "Echo", "description": "Says it back.",
        "runtime_type": "docker", "container_id": container_id, "host_port": 0,
        "internal_port": 8080, "endpoint_path": "/cgi-bin/run",
    }  # fmt: skip
    with pytest.raises(InvalidToolCall, match="rebuild_docker_ports changes them"):
        await box.call("register_tool", {**tool, "memory_mb": 128}, person)
    await box.call("register_tool", tool, person)
    assert service.registry.get("echo").runtime.resource_limits == ResourceLimits("0.25", 64)
    assert (await service.call("echo", {"n": 2})).result == {"got": {"n": 2}}

    removal = await service.remove("echo")
    assert removal.removed == [f"container {container_id[:12]}", "project seen"]
    assert removal.kept == []
    assert raw.containers.list(all=True) == []
    assert service.ports.allocated == frozenset()
    assert service.projects.projects() == []
    assert service.containers.containers(ContainerStatus.RUNNING) == []


async def test_tool_whose_engine_is_away_is_removed_and_its_container_later(
    service: ToolService, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await service.docker.create_env(EnvRequest(image_of(service), ports=[8080]))
    runtime = RuntimeInfo(RuntimeType.DOCKER, container_id=made.container_id, internal_port=8080)
    service.registry.add(ToolMeta("echo", "Echo", runtime=runtime, status=ToolStatus.ACTIVE))
    with monkeypatch.context() as patched:
        patched.setenv("DOCKER_HOST", "unix:///nowhere.sock")
        await service.docker.aclose()  # so that it connects anew
        removal = await service.remove("echo")
    assert removal.removed == []
    assert "no container engine answers" in removal.kept[0]
    assert service.registry.find("echo") is None
    assert len(raw.containers.list(all=True)) == 1
    await service.docker.aclose()
    monkeypatch.setattr(service.settings, "_defaults", _soon(service))
    monkeypatch.setattr(service.settings, "_current", _soon(service))
    assert await service.docker.clean_up_now() == [made.container_id]
    assert raw.containers.list(all=True) == []


def _soon(service: ToolService) -> ToolSettings:
    """Return settings by which an unused container is destroyed at once."""
    return service.settings.current.model_copy(update={"docker_ttl_seconds": 0})


async def test_the_recording_is_what_a_real_engine_answers(
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    """`--record-docker` writes it; else requests and statuses are compared."""
    if pytestconfig.getoption("--container-engine") != "docker":
        pytest.skip("the recording is one of Docker's engine")
    story = DockerStory(tmp_path, monkeypatch)
    recorder = Recorder(engine.host.removeprefix("unix://"), story.hidden)
    with serving(tmp_path / "proxy.sock", recorder) as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        await story.happens()
    recorded = recorder.recording()
    if pytestconfig.getoption("--record-docker"):
        write_recording(recorded)
    assert outline(recorded) == outline(read_recording())


def outline(exchanges: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Return requests and statuses, without the version of the API."""
    text = re.sub(r'"/v[0-9.]+/', '"/', json.dumps(exchanges))
    return [(one["request"], one["answer"]["status"]) for one in json.loads(text)]
