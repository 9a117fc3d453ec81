"""Local tools: real processes, confined, called over a port or as a process for each call."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from arp.process.sandbox import sandbox_works
from arp.tools.errors import (
    InvalidToolCall,
    InvalidToolMeta,
    ToolCallFailed,
    ToolConflict,
    ToolRefused,
    ToolTimeout,
    UnknownTool,
)
from arp.tools.registry.models import (
    ResourceLimits,
    RuntimeType,
    SchedulingMode,
    ToolState,
    ToolStatus,
)
from arp.tools.run.local import has_network
from arp.tools.service import ToolService
from tests.support.waiting import becomes
from tests.tools.local_tools import SERVER, active, local, processes_of, serving, settings_in

pytestmark = pytest.mark.usefixtures("copied_venvs")


@pytest.fixture
async def service(tmp_path: Path, copied_venvs: None) -> AsyncIterator[ToolService]:
    async with serving(settings_in(tmp_path, call_timeout_s=10)) as made:
        yield made
    await becomes(lambda: processes_of(tmp_path) == [])
    assert made.ports.allocated == frozenset()


ONCE = "python -S once.py"


async def test_a_server_is_started_called_and_stopped(service: ToolService, tmp_path: Path) -> None:
    made = await service.activate(local(service, mode=SchedulingMode.HOT))
    assert made.status is ToolStatus.ACTIVE
    assert made.scheduling.state is ToolState.RUNNING
    assert made.runtime.host_port in service.ports.allocated
    outcome = await service.call("double", {"n": 4})
    assert outcome.result["double"] == 8
    assert (outcome.tool_id, outcome.attempts) == ("double", 1)
    stats = service.registry.get("double").stats
    assert (stats.call_count, stats.error_rate) == (1, 0.0)
    assert stats.avg_latency_ms > 0
    stopped = await service.scheduler.stop_tool("double")
    assert stopped.scheduling.state is ToolState.STOPPED
    assert stopped.runtime.host_port == 0
    await becomes(lambda: processes_of(tmp_path) == [])
    assert (await service.call("double", {"n": 5})).result["double"] == 10


async def test_a_process_is_started_for_each_call(service: ToolService, tmp_path: Path) -> None:
    await service.activate(local(service, "once", ONCE, SchedulingMode.STATELESS))
    assert (await service.call("once", {"n": 3})).result == {"double": 6}
    log = (tmp_path / "data" / "projects" / "demo" / "last_run.log").read_text()
    assert (
        log == f'Command: {ONCE}\nExit Code: 0\n--- STDOUT ---\n{{"double": 6}}\n--- STDERR ---\n'
    )
    with pytest.raises(ToolCallFailed, match="exit code 1: it cannot do that"):
        await service.call("once", {"fail": True})
    assert service.registry.get("once").stats.error_rate == 0.5
    assert service.registry.get("once").scheduling.state is ToolState.STOPPED


@pytest.mark.parametrize("entry", ["python -S server.py", ONCE])
async def test_pieces_of_a_result_come_while_the_tool_works(
    service: ToolService, entry: str
) -> None:
    await service.activate(local(service, "streams", entry, stream_support=True))
    pieces = []

    async def take(piece: str) -> None:
        pieces.append(piece)

    outcome = await service.call("streams", {"stream": ["处理中...", "完成"]}, take)
    assert pieces == ["处理中...", "完成"]
    assert outcome.result in ({"pieces": 2}, {"double": 0})


async def test_a_server_that_died_is_degraded_and_starts_again(service: ToolService) -> None:
    alerts = []

    async def take(alert: object) -> None:
        alerts.append(alert)

    service.on_alert(take)
    made = await service.activate(local(service, mode=SchedulingMode.HOT))
    await service.call("double", {"n": 1})
    runtime = service.runtimes.of(made)
    pid = runtime.pid_of("double")  # type: ignore[attr-defined] # of local tools
    os.kill(pid, signal.SIGKILL)
    await becomes(lambda: runtime.pid_of("double") is None)  # type: ignore[attr-defined] # as above
    problem = await service.scheduler.check_now("double")
    assert problem is not None
    assert "ended by itself with exit code -9" in problem
    assert service.registry.get("double").scheduling.state is ToolState.DEGRADED
    assert await service.scheduler.check_now("double") is not None
    assert len(alerts) == 1
    assert (await service.restart("double")).scheduling.state is ToolState.RUNNING
    assert await service.scheduler.check_now("double") is None


async def test_a_server_that_dies_in_a_call_fails_that_call_alone(service: ToolService) -> None:
    await service.activate(local(service))
    with pytest.raises(ToolCallFailed, match="ended by itself with exit code 3"):
        await service.call("double", {"die": 3})
    assert (await service.call("double", {"n": 2})).result["double"] == 4


GROWS = """
class Grows(Answer):
    def do_POST(self):
        for _ in range(3):
            if not os.fork():
                os.setsid()
                data = bytearray(b"x") * (40 << 20)
                time.sleep(60)
                os._exit(0)
        time.sleep(60)

server = Server(("127.0.0.1", int(os.environ["PORT"])), Grows)
for stream in (0, 1, 2):
    os.close(stream)  # nobody notices by its output that it has ended
server.serve_forever()
"""
"""A server whose children are above its limit together."""


async def test_a_server_that_uses_too_much_memory_is_ended_and_says_why(
    service: ToolService, tmp_path: Path
) -> None:
    source = SERVER.replace('Server(("127', '0 and Server(("127')
    service.projects.write_file("demo/server_grows.py", source + GROWS)
    tool = local(service, "grows", "python -S server_grows.py", SchedulingMode.HOT)
    limits = ResourceLimits(cpu="0.05", memory_mb=100)
    runtime = msgspec.structs.replace(tool.runtime, resource_limits=limits)
    await service.activate(msgspec.structs.replace(tool, runtime=runtime))
    with pytest.raises(
        ToolCallFailed, match=r"used 1\d\d MiB of memory together; their limit is 100 MiB"
    ):
        await service.call("grows", {})
    await becomes(lambda: processes_of(tmp_path) == [])


CALLS = """
import json, socket, sys
params = json.load(sys.stdin)
own = socket.create_server(("127.0.0.1", 0))
socket.create_connection(own.getsockname()).close()
try:
    connection = socket.create_connection(("127.0.0.1", params["port"]), timeout=5)
except OSError as error:
    sys.exit(f"the host: {error}")
print(json.dumps({"read": connection.recv(9).decode()}))
"""
"""Connects to itself, then to a port of this machine."""


@pytest.mark.skipif(
    not sandbox_works(network=False), reason="bubblewrap cannot cut the network off"
)
async def test_a_process_reaches_the_network_only_if_the_operator_says_so(
    service: ToolService, tmp_path: Path
) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"secret")
        writer.close()

    service.projects.write_file("demo/calls.py", CALLS)
    tool = local(service, "calls", "python -S calls.py", SchedulingMode.STATELESS)
    await service.activate(tool)
    assert not has_network(tool, service.settings.current)
    assert has_network(local(service), service.settings.current)
    async with await asyncio.start_server(greet, "127.0.0.1", 0) as host:
        port = host.sockets[0].getsockname()[1]
        with pytest.raises(ToolCallFailed) as refused:
            await service.call("calls", {"port": port})
        assert "the host: [Errno 111] Connection refused" in refused.value.message
        assert "calls has no network: add it to network_tools" in refused.value.message
        for allowed in (["calls"], ["*"]):
            (tmp_path / "data" / "config.json").write_text(json.dumps({"network_tools": allowed}))
            assert (await service.call("calls", {"port": port})).result == {"read": "secret"}
            assert has_network(tool, service.settings.current)
        (tmp_path / "data" / "config.json").write_text(json.dumps({"network_tools": ["other"]}))
        with pytest.raises(ToolCallFailed, match="has no network"):
            await service.call("calls", {"port": port})


async def test_an_error_of_the_tool_is_reported(service: ToolService) -> None:
    await service.activate(local(service))
    with pytest.raises(ToolCallFailed, match="HTTP 503: Service Unavailable"):
        await service.call("double", {"fail": 503})


async def test_a_call_that_takes_too_long_ends(tmp_path: Path) -> None:
    async with serving(settings_in(tmp_path, call_timeout_s=0.5)) as service:
        await service.activate(local(service))
        with pytest.raises(ToolTimeout):
            await service.call("double", {"wait": 5})
        service.projects.write_file("demo/stubborn.py", STUBBORN)
        active(service, local(service, "stubborn", "python -S stubborn.py"))
        with pytest.raises(ToolTimeout, match="took"):
            await service.call("stubborn", {})
    await becomes(lambda: processes_of(tmp_path) == [])


STUBBORN = """
import os, signal, subprocess, sys
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"], start_new_session=True)
while True:
    signal.pause()
"""


async def test_what_a_tool_left_in_sessions_of_its_own_ends_with_it(
    service: ToolService, tmp_path: Path
) -> None:
    service.projects.write_file("demo/stubborn.py", STUBBORN)
    done = await service.projects.run("demo", "python -S stubborn.py", timeout_s=1)
    assert done.exit_code == 124
    await becomes(lambda: processes_of(tmp_path) == [])


async def test_a_port_that_somebody_else_answers_on_is_not_taken_for_the_tool(
    service: ToolService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody binds the port between our look at it and the start: the next one is tried."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    other = await asyncio.start_server(answer, "127.0.0.1", 0)
    taken = other.sockets[0].getsockname()[1]
    monkeypatch.setattr("arp.tools.run.ports._can_be_bound", lambda port: True)
    tool = local(service)
    wanted = msgspec.structs.replace(tool.runtime, host_port=taken)
    made = await service.activate(msgspec.structs.replace(tool, runtime=wanted))
    assert made.runtime.host_port != taken
    assert (await service.call("double", {"n": 1})).result["double"] == 2
    other.close()
    await other.wait_closed()


async def test_a_tool_that_does_not_start_says_why_and_leaves_nothing(service: ToolService) -> None:
    service.projects.write_file("demo/server_broken.py", "raise SystemExit('no model file')")
    tool = local(service, "broken", "python server_broken.py")
    with pytest.raises(ToolCallFailed, match=r"ended with exit code 1 before.*no model file"):
        await service.activate(tool)
    assert service.registry.find("broken") is None
    assert service.ports.allocated == frozenset()
    assert service.resources.allocated().memory_mb == 0


async def test_a_replacement_that_fails_leaves_the_tool_as_it_was(service: ToolService) -> None:
    await service.activate(local(service))
    before = service.registry.get("double")
    with pytest.raises(ToolConflict, match="taken"):
        await service.activate(local(service))
    with pytest.raises(ToolCallFailed):
        await service.activate(local(service, entry="python no_server.py"), replace=True)
    after = service.registry.get("double")
    assert (after.status, after.runtime.entry) == (ToolStatus.ACTIVE, before.runtime.entry)
    assert (await service.call("double", {"n": 1})).result["double"] == 2


async def test_what_is_called_is_checked(service: ToolService) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    output = {"type": "object", "properties": {"double": {"maximum": 10}}}
    await service.activate(local(service, input_schema=schema, output_schema=output))
    for params, path in (({"n": "x"}, r"params\.n"), ({}, "params"), ([], "params")):
        with pytest.raises(InvalidToolCall, match=path):
            await service.call("double", params)  # type: ignore[arg-type] # what a caller sends
    with pytest.raises(ToolCallFailed, match=r"result\.double"):
        await service.call("double", {"n": 6})
    with pytest.raises(UnknownTool):
        await service.call("nobody", {})
    service.set_life("double", "disable")
    with pytest.raises(ToolConflict, match="inactive"):
        await service.call("double", {"n": 1})


@pytest.mark.parametrize(
    "env",
    [
        *({"LD_PRELOAD": "/tmp/x.so"}, {"ld_preload": "x"}, {"PYTHONPATH": "/tmp"}, {"PATH": "/x"}),
        *({"BASH_ENV": "x"}, {"GIT_SSH_COMMAND": "x"}, {"A=B": "x"}, {"A": "x\0"}, {"": "x"}),
        *({"NODE_OPTIONS": "--require x"}, {"HOME": "/root"}, {"UV_INDEX_URL": "http://x"}),
    ],
)
async def test_variables_that_change_what_is_loaded_are_refused(
    service: ToolService, env: dict[str, str]
) -> None:
    with pytest.raises(ToolRefused, match="env"):
        await service.activate(local(service, env=env))


@pytest.mark.parametrize(
    "host_dir", ["/", "/etc", "", "../demo", "{root}", "{root}/demo/..", "gone"]
)
async def test_a_tool_runs_in_a_project_of_ours_or_not_at_all(
    service: ToolService, host_dir: str
) -> None:
    tool = local(service)
    where = host_dir.replace("{root}", str(service.projects.root))
    runtime = msgspec.structs.replace(tool.runtime, host_dir=where)
    with pytest.raises(UnknownTool, match="no project of ours"):
        await service.activate(msgspec.structs.replace(tool, runtime=runtime))


async def test_no_shell_reads_an_entry(service: ToolService, tmp_path: Path) -> None:
    entry = f"{ONCE} ; touch {tmp_path}/pwned $(touch {tmp_path}/pwned) `id` | cat > pwned"
    await service.activate(local(service, "once", entry))
    assert (await service.call("once", {"n": 1})).result == {"double": 2}
    assert not (tmp_path / "pwned").exists()
    assert not (tmp_path / "data" / "projects" / "demo" / "pwned").exists()


@pytest.mark.parametrize("entry", ["", "python 'x", "\0", "x" * 9000])
async def test_an_entry_that_is_no_command_is_invalid(service: ToolService, entry: str) -> None:
    with pytest.raises(InvalidToolMeta):
        await service.activate(local(service, "once", entry))


async def test_a_tool_gets_its_own_environment_and_nothing_of_ours(
    service: ToolService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    code = "import json,os; print(json.dumps(dict(os.environ)))"
    service.projects.write_file("demo/env.py", code)
    await service.activate(local(service, "env", "python -S env.py", env={"MODEL": "small"}))
    found = (await service.call("env", {})).result
    assert "ANTHROPIC_API_KEY" not in found
    assert found["MODEL"] == "small"
    names = {"HOME", "LANG", "PATH", "MODEL", "PYTHONUNBUFFERED", "VIRTUAL_ENV", "PWD"}
    assert {name for name in found if not name.startswith("UV_")} <= names


async def test_what_is_no_json_is_an_error(service: ToolService) -> None:
    service.projects.write_file("demo/words.py", "print('just words')")
    await service.activate(local(service, "words", "python -S words.py"))
    with pytest.raises(ToolCallFailed, match="wrote no JSON"):
        await service.call("words", {})


async def test_a_large_result_of_a_process_is_complete_and_a_huge_one_is_refused(
    service: ToolService, tmp_path: Path
) -> None:
    code = "import json, sys; print(json.dumps('x' * json.load(sys.stdin)['size']))"
    service.projects.write_file("demo/large.py", code)
    await service.activate(local(service, "large", "python -S large.py"))
    result = (await service.call("large", {"size": 5_000_000})).result
    assert len(result) == 5_000_000
    assert (tmp_path / "data/projects/demo/last_run.log").stat().st_size < 1_100_000
    with pytest.raises(ToolCallFailed, match="wrote more than"):
        await service.call("large", {"size": 20_000_000})


async def test_a_log_that_a_tool_has_made_a_link_is_not_written_through(
    service: ToolService, tmp_path: Path
) -> None:
    (tmp_path / "target").write_text("ours")
    link = f"import os; os.symlink('{tmp_path}/target', 'last_run.log')"
    service.projects.write_file("demo/link.py", link)
    done = await service.projects.run("demo", "python -S link.py")
    assert done.exit_code == 0
    assert (tmp_path / "target").read_text() == "ours"


async def test_endless_output_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arp.process.program.MAX_WRITTEN", 4_000_000)
    async with serving(settings_in(tmp_path, call_timeout_s=20)) as service:
        done = await service.projects.run("demo", "yes", timeout_s=20)
        assert done.exit_code == -9
        assert "it wrote more than 4000000 bytes and was ended" in done.stderr
        assert len(done.stdout) < 2**20 + 100
        active(service, local(service, "yes", "yes"))
        with pytest.raises(ToolCallFailed):
            await service.call("yes", {})
    await becomes(lambda: processes_of(tmp_path) == [])


async def test_a_cancelled_call_ends_its_process(service: ToolService, tmp_path: Path) -> None:
    service.projects.write_file(
        "demo/sleeps.py", "open('begun', 'w').close(); import time\ntime.sleep(99)"
    )
    active(service, local(service, "sleeps", "python -S sleeps.py"))
    calling = asyncio.create_task(service.call("sleeps", {}))
    await becomes((tmp_path / "data" / "projects" / "demo" / "begun").exists)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await becomes(lambda: processes_of(tmp_path) == [])


async def test_tools_sleep_when_the_service_ends_and_wake_with_the_next(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    async with serving(settings) as service:
        await service.activate(local(service, mode=SchedulingMode.HOT))
    assert service.registry.get("double").scheduling.state is ToolState.SLEEPING
    await becomes(lambda: processes_of(tmp_path) == [])
    async with serving(settings) as again:
        assert (await again.call("double", {"n": 1})).result["double"] == 2


async def test_a_registry_that_a_crash_left_is_put_right(tmp_path: Path) -> None:
    """We were killed: the registry says that a tool runs, and its process is gone."""
    settings = settings_in(tmp_path)
    async with serving(settings) as service:
        made = await service.activate(local(service))
    service.registry.update("double", lambda tool: made)
    assert made.scheduling.state is ToolState.RUNNING
    async with serving(settings) as again:
        found = again.registry.get("double")
        assert found.scheduling.state is ToolState.SLEEPING
        assert found.runtime.host_port == 0
        assert found.runtime.type is RuntimeType.LOCAL
