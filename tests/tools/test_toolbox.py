"""The ten tools: their exact parameters, who is asked, and what a task cannot reach.

Real projects, without any package.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Unpack

import pytest
from msgspec.structs import replace

from arp.protocol.json_value import Json, JsonObject
from arp.record.wording import json_text
from arp.session.approval import ApprovalAnswer
from arp.tools.build.toolbox import TEN_TOOLS, Toolbox
from arp.tools.build.workplace import ProcessRun
from arp.tools.clock import SYSTEM_CLOCK, Clock
from arp.tools.errors import InvalidToolCall, ToolAgentError, ToolConflict, ToolRefused
from arp.tools.registry.models import (
    ResourceLimits,
    SchedulingMode,
    ToolMeta,
    ToolState,
    ToolStatus,
)
from arp.tools.service import ToolService
from arp.tools.tasks.task_specs import BuildTool, RepairTool, TaskRequirements
from arp.turn.approval.approval import Approval, PermissionOptions
from tests.support.waiting import becomes
from tests.tools.fake_runtime import SetClock
from tests.tools.house import settings_in, tool_named
from tests.tools.local_tools import SERVER, processes_of

pytestmark = pytest.mark.usefixtures("copied_venvs")

PARAMETERS = {
    "create_docker_env": ("image", "mem_limit nano_cpus ports volumes use_gpu"),
    "run_in_docker": ("container_id command", "is_background timeout"),
    "rebuild_docker_ports": ("container_id ports", "mem_limit nano_cpus"),
    "destroy_docker_env": ("container_id", ""),
    "create_uv_project": ("name", "python_version"),
    "run_in_uv": ("project_dir command", "timeout"),
    "uv_add_dependency": ("project_dir package", "dev"),
    "write_file": ("path content", ""),
    "read_file": ("path", ""),
    "register_tool": (
        "tool_id name description runtime_type host_port internal_port",
        (
            "category input_schema output_schema container_id host_dir endpoint_path http_method "
            "cpu memory_mb"
        ),
    ),
}
"""Required and optional, as section 7 has them; the last two of `register_tool` are additions."""


class ShownQuestion(NamedTuple):
    """A question as a person reads it."""

    title: str
    input: JsonObject
    """The input, with the files that can change what runs."""

    @property
    def files(self) -> list[str]:
        return list(self.input.get("files", {}))

    @property
    def changed(self) -> list[str]:
        """Files that are marked as new or changed."""
        files = self.input.get("files", {})
        return [path for path, state in files.items() if state.startswith("new or changed, ")]


class Person:
    """A call whose questions a person answers."""

    def __init__(self, *answers: ApprovalAnswer) -> None:
        self.answers = list(answers)
        self.asked: list[ShownQuestion] = []
        self.runs: list[ProcessRun] = []
        self.before_yes: list[Path] = []
        """Files that somebody changes while the person thinks."""

    def progress(self, text: str) -> None:
        """Look at it."""

    def result(self, value: Json) -> None:
        """Look at it."""

    async def ran(self, run: ProcessRun) -> None:
        self.runs.append(run)

    async def ask_permission(
        self, title: str, *, rule: str, input: JsonObject, **options: Unpack[PermissionOptions]
    ) -> Approval:
        self.asked.append(ShownQuestion(title, input))
        answer = self.answers.pop(0)
        for path in self.before_yes:
            path.write_text("import os; os.system('id')")
        shown = Approval.undecided(json_text(input), lambda _: False)
        approval = shown.decided(answer, lambda _: False)
        recheck = options.get("recheck")
        if approval.allowed and recheck is not None:
            refusal = (await recheck(approval)).refusal
            return approval.refused(refusal) if refusal else approval
        return approval


YES, NO, ALWAYS = (
    ApprovalAnswer(True),
    ApprovalAnswer(False, reason="too risky"),
    ApprovalAnswer(True, "session"),
)


@asynccontextmanager
async def workbench(
    data_dir: Path, clock: Clock = SYSTEM_CLOCK, **settings: object
) -> AsyncIterator[ToolService]:
    os.chmod(data_dir, 0o755)
    async with ToolService(settings_in(data_dir, **settings), clock=clock) as service:
        yield service


def box_of(service: ToolService, *, asks: bool = True) -> Toolbox:
    return Toolbox(service, BuildTool("x"), asks=asks)


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_tool_has_exactly_the_parameters_of_the_document(name: str) -> None:
    required, optional = (names.split() for names in PARAMETERS[name])
    schema = TEN_TOOLS[name].schema()
    assert schema["required"] == required
    assert sorted(schema["properties"]) == sorted([*required, *optional])
    assert schema["additionalProperties"] is False
    assert TEN_TOOLS[name].description
    assert list(TEN_TOOLS) == list(PARAMETERS)


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [
        ("rm", {}, "there is no tool 'rm'"),
        ("write_file", {"path": "x"}, "write_file: Object missing required field `content`"),
        ("write_file", {"path": "x", "content": "", "mode": 7}, "unknown field `mode`"),
        ("run_in_uv", {"project_dir": "x", "command": "id", "timeout": -1}, "timeout"),
        ("create_docker_env", {"image": "x", "ports": [70_000]}, "ports"),
        ("register_tool", {"tool_id": "x"}, "register_tool: "),
    ],
)
async def test_parameters_that_do_not_fit_are_refused_by_name(
    tmp_path: Path, name: str, args: JsonObject, told: str
) -> None:
    async with workbench(tmp_path) as service:
        with pytest.raises(InvalidToolCall, match=told):
            await box_of(service).call(name, args, Person())


async def test_files_and_commands_of_a_project_have_the_exact_results(tmp_path: Path) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service), Person(YES, NO, ALWAYS)
        made = await box.call("create_uv_project", {"name": "greeter"}, person)
        project = str(tmp_path / "projects" / "greeter")
        assert made == {"project_dir": project}
        code = "print('你好')\n"
        written = await box.call("write_file", {"path": "main.py", "content": code}, person)
        path = f"{project}/main.py"
        assert written == {"status": "success", "path": path, "size": 16}
        assert await box.call("read_file", {"path": path}, person) == {
            "status": "success",
            "path": path,
            "content": code,
        }
        assert person.asked == []
        run = {"project_dir": project, "command": "python main.py"}
        assert await box.call("run_in_uv", run, person) == {
            "exit_code": 0,
            "stdout": "你好\n",
            "stderr": "",
        }
        with pytest.raises(ToolRefused, match="not allowed: too risky"):
            await box.call("run_in_uv", run, person)
        await box.call("run_in_uv", run, person)  # allowed for the rest of the task
        await box.call("run_in_uv", run, person)
        assert len(person.asked) == 3
        assert len(person.runs) == 3
        first = person.asked[0]
        assert {**first.input, "files": {}} == {**run, "files": {}}
        assert set(first.files) >= {"main.py", "pyproject.toml"}


async def test_files_that_change_while_a_person_thinks_are_not_run(tmp_path: Path) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service), Person(YES)
        project = (await box.call("create_uv_project", {"name": "sly"}, person))["project_dir"]
        await box.call("write_file", {"path": "main.py", "content": "print(1)"}, person)
        person.before_yes = [Path(project) / "main.py"]
        run = {"project_dir": project, "command": "python main.py"}
        with pytest.raises(ToolRefused, match="changed after they were shown"):
            await box.call("run_in_uv", run, person)
        assert person.runs == []


async def test_operator_may_let_everything_run(tmp_path: Path) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service, asks=False), Person()
        project = (await box.call("create_uv_project", {"name": "free"}, person))["project_dir"]
        run = {"project_dir": project, "command": "python -c 'print(2)'"}
        assert (await box.call("run_in_uv", run, person))["stdout"] == "2\n"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../etc/passwd",
        "/proc/self/environ",
        "link/secret",
        "link",
        "{data}/registry.json",
        "{data}/projects/mine/../../registry.json",
        "{data}/projects/other/main.py",
        "~/.ssh/id_rsa",
        "\0",
        "x\0y",
    ],
)
async def test_path_out_of_the_projects_of_the_task_is_refused(tmp_path: Path, path: str) -> None:
    """Traversal, links, projects of other tasks, files of ours."""
    async with workbench(tmp_path) as service:
        await service.projects.create("other")
        box, person = box_of(service), Person()
        project = (await box.call("create_uv_project", {"name": "mine"}, person))["project_dir"]
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "secret").write_text("s3cret")
        os.symlink(outside, Path(project) / "link")
        given = path.format(data=tmp_path)
        with pytest.raises(ToolAgentError):
            await box.call("read_file", {"path": given}, person)
        if not path.startswith("~"):  # no shell: it is a folder of that name
            with pytest.raises(ToolAgentError):
                await box.call("write_file", {"path": given, "content": "evil"}, person)
        assert (outside / "secret").read_text() == "s3cret"
        assert not (tmp_path / "projects" / "other" / "main.py").exists()


@pytest.mark.parametrize(
    "package", ["--index-url=http://evil", "-e .", "git+https://evil/x", "x @ http://evil/x.whl",
                "../x", "x; rm -rf /", "$(id)", "x\n--y"],
)  # fmt: skip
async def test_package_that_is_none_is_refused_before_anybody_is_asked(
    tmp_path: Path, package: str
) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service), Person()
        project = (await box.call("create_uv_project", {"name": "mine"}, person))["project_dir"]
        given = {"project_dir": project, "package": package}
        with pytest.raises(ToolRefused, match="package"):
            await box.call("uv_add_dependency", given, person)
        assert person.asked == []


async def test_command_is_run_by_no_shell(tmp_path: Path) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service, asks=False), Person()
        project = (await box.call("create_uv_project", {"name": "mine"}, person))["project_dir"]
        command = "python -c 'import sys; print(sys.argv[1:])' ; touch owned $(id) > out `id`"
        done = await box.call("run_in_uv", {"project_dir": project, "command": command}, person)
        assert done["stdout"] == "[';', 'touch', 'owned', '$(id)', '>', 'out', '`id`']\n"
        assert not (Path(project) / "owned").exists()


async def test_what_belongs_to_others_is_refused(tmp_path: Path) -> None:
    async with workbench(tmp_path) as service:
        service.registry.add(tool_named("taken"))
        other = await service.projects.create("other")
        box, person = box_of(service), Person()
        project = (await box.call("create_uv_project", {"name": "mine"}, person))["project_dir"]
        for place in (str(other), "/", f"{project}/../other", "mine/../other"):
            run = {"project_dir": place, "command": "python -V"}
            with pytest.raises(ToolAgentError):
                await box.call("run_in_uv", run, person)
        with pytest.raises(ToolRefused, match="no container of this task"):
            await box.call("run_in_docker", {"container_id": "abc", "command": "id"}, person)
        with pytest.raises(ToolRefused, match="no container of this task"):
            await box.call("destroy_docker_env", {"container_id": "abc"}, person)
        volumes = {str(other): "/app"}
        with pytest.raises(ToolRefused, match="no project of this task"):
            await box.call("create_docker_env", {"image": "x", "volumes": volumes}, person)
        tool: JsonObject = {
            "tool_id": "taken", "name": "x", "description": "", "runtime_type": "local",
            "host_port": 0, "internal_port": 0,
        }  # fmt: skip
        with pytest.raises(ToolConflict, match="tool_id taken is taken by another tool"):
            await box.call("register_tool", tool, person)
        with pytest.raises(ToolRefused, match="nothing starts the tool"):
            await box.call("register_tool", {**tool, "tool_id": "mine"}, person)
        assert person.asked == []


async def test_repair_may_register_its_own_tool_alone(tmp_path: Path) -> None:
    async with workbench(tmp_path) as service:
        service.registry.add(tool_named("broken"))
        box = Toolbox(service, RepairTool("broken", "HTTP 503"), asks=True)
        tool: JsonObject = {
            "tool_id": "another", "name": "x", "description": "", "runtime_type": "local",
            "host_port": 0, "internal_port": 0,
        }  # fmt: skip
        with pytest.raises(ToolRefused, match="this task repairs broken"):
            await box.call("register_tool", tool, Person())


async def test_tool_that_is_a_process_is_registered_and_called(tmp_path: Path) -> None:
    async with workbench(tmp_path) as service:
        box, person = box_of(service), Person(YES)
        await box.call("create_uv_project", {"name": "doubler"}, person)
        code = "import json, sys; print(json.dumps({'twice': 2 * json.load(sys.stdin)['n']}))"
        await box.call("write_file", {"path": "main.py", "content": code}, person)
        made = await box.call(
            "register_tool",
            {
                "tool_id": "doubler",
                "name": "Doubler",
                "description": "Doubles a number.",
                "runtime_type": "uv",
                "host_port": 0,
                "internal_port": 0,
            },
            person,
        )
        assert made == {"status": "success", "tool_id": "doubler", "url": ""}
        assert (await service.call("doubler", {"n": 21})).result == {"twice": 42}
        assert box.registered is not None
        assert [request.title for request in person.asked] == ["Start the tool doubler?"]


# -- what is registered ----------------------------------------------------------------------------


async def registered(box: Toolbox, code: str, port: int = 0, **more: Json) -> None:
    """Make the project `built` of one file, and register it."""
    await box.call("create_uv_project", {"name": "built"}, Person())
    await box.call("write_file", {"path": "main.py", "content": code}, Person())
    await box.call("register_tool", {**BUILT, "internal_port": port, **more}, Person(YES))


BUILT: JsonObject = {
    "tool_id": "built",
    "name": "Built",
    "description": "Is built.",
    "runtime_type": "local",
    "host_port": 0,
    "internal_port": 0,
}


async def test_built_tool_sleeps_after_the_idle_time_of_the_settings(tmp_path: Path) -> None:
    """`cold_tool_idle_timeout_s` is for every tool that has no idle time of its own."""
    clock = SetClock()
    async with workbench(tmp_path, clock.clock(), cold_tool_idle_timeout_s=5) as service:
        await registered(box_of(service), SERVER, port=8000)
        await service.call("built", {"n": 1})
        clock.advance(4)
        await service.scheduler.tick()
        assert service.registry.get("built").scheduling.state is ToolState.RUNNING
        clock.advance(1)
        await service.scheduler.tick()
        assert service.registry.get("built").scheduling.state is ToolState.SLEEPING
        await becomes(lambda: processes_of(tmp_path) == [])


STREAMING_PROCESS = """
import json, os, sys, time
json.load(sys.stdin)
print(json.dumps({"chunk": "half", "done": False}))
while not os.path.exists("heard"):
    time.sleep(0.01)
print(json.dumps({"chunk": "done", "done": False}))
print(json.dumps({"ok": True}))
"""
STREAMING_SERVER = """
import http.server, json, os, time

class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if "event-stream" in self.headers["accept"]:
            self.give({"chunk": "half", "done": False})
            while not os.path.exists("heard"):
                time.sleep(0.01)
            self.give({"chunk": "done", "done": False})
        self.give({"chunk": "", "done": True, "result": {"ok": True}})

    def give(self, event):
        self.wfile.write(b"data: %b\\n\\n" % json.dumps(event).encode())

http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""


@pytest.mark.parametrize(("code", "port"), [(STREAMING_PROCESS, 0), (STREAMING_SERVER, 8000)])
async def test_pieces_of_a_built_tool_arrive_as_they_come(
    tmp_path: Path, code: str, port: int
) -> None:
    """The tool goes on only after somebody has its first piece."""
    async with workbench(tmp_path, call_timeout_s=10) as service:
        await registered(box_of(service), code, port)
        pieces: list[str] = []

        async def take(piece: str) -> None:
            pieces.append(piece)
            await asyncio.to_thread(service.projects.write_file, "built/heard", "")

        outcome = await service.call("built", {}, take)
        assert pieces == ["half", "done"]
        assert outcome.result == {"ok": True}


async def test_stateless_tool_holds_no_cores_after_its_registration(tmp_path: Path) -> None:
    async with workbench(tmp_path) as service:
        await registered(box_of(service), "print('{}')")
        assert service.resources.allocated().cpu_cores == 0
        assert service.registry.get("built").scheduling.state is ToolState.STOPPED
        await service.restart("built")
        assert service.resources.allocated().cpu_cores == 0


async def test_register_tool_says_what_a_tool_may_use(tmp_path: Path) -> None:
    """The person who allows the start sees it; the process has that limit."""
    code = "import json, sys; json.load(sys.stdin); x = b'x' * (300 << 20); print('{}')"
    async with workbench(tmp_path) as service:
        box, person = Toolbox(service, BuildTool("x"), asks=True), Person(YES, YES)
        await box.call("create_uv_project", {"name": "built"}, Person())
        await box.call("write_file", {"path": "main.py", "content": code}, Person())
        await box.call("register_tool", {**BUILT, "cpu": 0.5, "memory_mb": 128}, person)
        limits = service.registry.get("built").runtime.resource_limits
        assert limits == ResourceLimits(cpu="0.5", memory_mb=128)
        assert person.asked[0].input["cpu"] == 0.5
        assert person.asked[0].input["memory_mb"] == 128
        with pytest.raises(ToolAgentError, match=r"128 MiB|MemoryError|exit code"):
            await service.call("built", {})
        await box.call("register_tool", {**BUILT, "memory_mb": 1024}, person)
        assert (await service.call("built", {})).result == {}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"cpu": 0}, r"\$\.cpu"),
        ({"cpu": -1}, r"\$\.cpu"),
        ({"cpu": 4000}, r"\$\.cpu"),
        ({"memory_mb": 0}, r"\$\.memory_mb"),
        ({"memory_mb": 1.5}, r"\$\.memory_mb"),
    ],
)
async def test_limits_that_are_none_are_refused(
    tmp_path: Path, more: JsonObject, told: str
) -> None:
    async with workbench(tmp_path) as service:
        with pytest.raises(InvalidToolCall, match=told):
            await box_of(service).call("register_tool", {**BUILT, **more}, Person())


async def test_limits_are_those_of_the_request_and_of_the_tool_that_is_repaired(
    tmp_path: Path,
) -> None:
    async with workbench(tmp_path) as service:
        spec = BuildTool("built", requirements=TaskRequirements(memory_mb=300))
        await registered(Toolbox(service, spec, asks=True), "print('{}')", cpu=0.25)
        wanted = ResourceLimits(cpu="0.25", memory_mb=300)
        assert service.registry.get("built").runtime.resource_limits == wanted
        box = Toolbox(service, RepairTool("built", "broken"), asks=True)
        await box.call("register_tool", BUILT, Person(YES))
        assert service.registry.get("built").runtime.resource_limits == wanted
        await box.call("register_tool", {**BUILT, "cpu": 0.125}, Person(YES))
        changed = ResourceLimits(cpu="0.125", memory_mb=300)
        assert service.registry.get("built").runtime.resource_limits == changed


async def test_repair_keeps_what_an_operator_has_set(tmp_path: Path) -> None:
    """When the tool runs, its variables and its fallbacks are not in `register_tool`."""
    async with workbench(tmp_path) as service:
        await registered(box_of(service), SERVER, port=8000)
        await service.scheduler.stop_tool("built")
        before = service.registry.update("built", hot_with_fallback)
        box = Toolbox(service, RepairTool("built", "broken"), asks=True)
        await box.call("register_tool", {**BUILT, "internal_port": 8000}, Person(YES))
        after = service.registry.get("built")
        assert after.scheduling.mode is before.scheduling.mode is SchedulingMode.HOT
        assert after.scheduling.idle_timeout_s == 77
        assert after.fallback_strategy == ["retry"]
        assert after.runtime.env == {"GREETING": "hello"}
        assert after.status is ToolStatus.ACTIVE


def hot_with_fallback(tool: ToolMeta) -> ToolMeta:
    scheduling = replace(tool.scheduling, mode=SchedulingMode.HOT, idle_timeout_s=77)
    runtime = replace(tool.runtime, env={"GREETING": "hello"})
    return replace(tool, scheduling=scheduling, runtime=runtime, fallback_strategy=["retry"])
