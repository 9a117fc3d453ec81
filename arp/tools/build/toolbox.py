"""`Toolbox`: the ten tools with which a coding agent carries out one task.

Theory of operation. Each tool is a row of `TEN_TOOLS`: its parameters, as in the document, and the
method that carries it out. Before generated code runs, a person is asked (`toolbox_approval`). The
question shows the command and the digests of the project's files; after a yes the files are
compared again before anything runs. The person may also allow everything that the task runs in that
project; then the task asks no further question there. A task that changes a file of an active tool
switches the tool off until it is registered again, because its next call would run unapproved code.
A task can use only its own resources: projects and containers that it has created or received, and
the tool id that belongs to it.

A registered local tool is started by the first of `ENTRIES` that exists in its project.

Source: internal_api.md 7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from arp.process.memory import MIB
from arp.process.program import ProgramResult
from arp.process.sandbox import sandbox_works
from arp.protocol.json_value import JsonObject
from arp.tools.build.toolbox_approval import Approvals, RunRequest
from arp.tools.build.workplace import ProcessRun, WorkCall
from arp.tools.errors import InvalidToolCall, ToolConflict, ToolRefused
from arp.tools.projects.projects import DEFAULT_TIMEOUT_S
from arp.tools.registry.models import (
    ContainerInfo,
    ResourceLimits,
    RuntimeInfo,
    RuntimeType,
    SchedulingMode,
    ToolMeta,
    ToolScheduling,
    ToolStatus,
    runtime_type_of,
)
from arp.tools.registry.registry import url_of
from arp.tools.run.container_rules import EnvRequest, memory_of
from arp.tools.service import ToolService
from arp.tools.tasks.task_specs import RepairTool, TaskSpec, check_package

ENTRIES: Final = ("main.py", "app.py", "server.py")
"""Files that can start a local tool, as in `python main.py`; the first that exists is used.

The interface document gives `register_tool` no parameter for a command.
"""
MAX_COMMAND: Final = 20_000
MAX_CONTENT: Final = 2 << 20
"""Maximum length of a file that is written, in characters."""

Command: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_COMMAND)]
RunSeconds: TypeAlias = Annotated[float, Meta(gt=0, le=3_600)]
OpenPort: TypeAlias = Annotated[int, Meta(ge=1, le=65535)]
AnyPort: TypeAlias = Annotated[int, Meta(ge=0, le=65535)]


class BoxArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of one of the ten tools."""


class CreateDockerEnv(BoxArgs, frozen=True):
    """Create a container to work in. Ports of the container get ports of this machine."""

    image: Annotated[str, Meta(min_length=1, max_length=256)]
    mem_limit: str | None = None
    nano_cpus: Annotated[int, Meta(ge=1)] | None = None
    ports: Annotated[list[OpenPort], Meta(max_length=32)] = field(default_factory=list)
    volumes: dict[str, str] = field(default_factory=dict)
    use_gpu: bool = False


class RunInDocker(BoxArgs, frozen=True):
    """Run a command in a container; in the background it returns at once, with a log file."""

    container_id: str
    command: Command
    is_background: bool = False
    timeout: RunSeconds | None = None


class RebuildDockerPorts(BoxArgs, frozen=True):
    """Replace a container by one with other ports and limits; its files stay."""

    container_id: str
    ports: Annotated[list[OpenPort], Meta(max_length=32)]
    mem_limit: str | None = None
    nano_cpus: Annotated[int, Meta(ge=1)] | None = None


class DestroyDockerEnv(BoxArgs, frozen=True):
    """Destroy a container and what is in it."""

    container_id: str


class CreateUvProject(BoxArgs, frozen=True):
    """Create a Python project with an environment of its own."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    python_version: Annotated[str, Meta(pattern=r"^3\.\d{1,2}\Z")] | None = None


class RunInUv(BoxArgs, frozen=True):
    """Run a command in a project's environment, such as `python main.py`."""

    project_dir: str
    command: Command
    timeout: RunSeconds | None = None


class UvAddDependency(BoxArgs, frozen=True):
    """Add a package to a project, such as `pillow` or `pillow>=11`."""

    project_dir: str
    package: str
    dev: bool = False


class WriteFile(BoxArgs, frozen=True):
    """Write a text file of a project; folders are made. `path` is absolute or in the project."""

    path: Annotated[str, Meta(min_length=1, max_length=4_096)]
    content: Annotated[str, Meta(max_length=MAX_CONTENT)]


class ReadFile(BoxArgs, frozen=True):
    """Read a text file of a project."""

    path: Annotated[str, Meta(min_length=1, max_length=4_096)]


class RegisterTool(BoxArgs, frozen=True):
    """Start a tool, check that it answers, and register it; it can be called from then on.

    A local tool is started by `python main.py` in its project. With an `internal_port` it is a
    server: it listens on 127.0.0.1 and the port in the environment variable PORT, and takes the
    parameters as a JSON object. Without one (0) it is started for each call, reads the parameters
    as one JSON object from standard input, and writes one JSON object to standard output; lines
    `{"chunk": "…", "done": false}` before it are passed on as they come. `cpu` (cores, default
    1) and `memory_mb` (default 512) are its limits; a container has its own limits.
    """

    tool_id: str
    name: Annotated[str, Meta(min_length=1, max_length=200)]
    description: Annotated[str, Meta(max_length=20_000)]
    runtime_type: str
    host_port: AnyPort
    internal_port: AnyPort
    category: Annotated[str, Meta(min_length=1, max_length=60)] = "general"
    input_schema: JsonObject = field(default_factory=lambda: {"type": "object"})
    output_schema: JsonObject = field(default_factory=lambda: {"type": "object"})
    container_id: str = ""
    host_dir: str = ""
    endpoint_path: Annotated[str, Meta(pattern=r"^/[A-Za-z0-9._~/-]*\Z", max_length=200)] = "/"
    http_method: Annotated[str, Meta(pattern=r"^(GET|POST|PUT|PATCH|DELETE)\Z")] = "POST"
    cpu: Annotated[float, Meta(ge=0.001, le=1_024)] | None = None
    memory_mb: Annotated[int, Meta(ge=1, le=1 << 24)] | None = None


class Toolbox:
    """The ten tools for one task.

    Args:
        service: Service that carries them out.
        spec: Spec of the task.
        asks: Whether a person must approve the execution of generated code.
    """

    def __init__(self, service: ToolService, spec: TaskSpec, *, asks: bool) -> None:
        self._service = service
        self._spec = spec
        self._approvals = Approvals(service.projects, asks=asks)
        self.projects: list[Path] = []
        """Project directories of the task, newest last."""
        self._borrowed_projects: list[Path] = []
        """Project directories of the tool that the task repairs."""
        self.containers: set[str] = set()
        self.registered: ToolMeta | None = None
        """Tool that the task has registered, while it is active and answers."""
        self.own_ids: list[str] = []
        """Ids of all tools that the task has registered, newest last; some may be switched off."""
        self.note: Callable[[], None] = lambda: None
        """Callback that records the task's resources, called before a new project is finished."""
        if isinstance(spec, RepairTool):
            self._adopt_resources(spec)

    def _adopt_resources(self, spec: RepairTool) -> None:
        """Add the project and the container of the repaired tool to those of the task."""
        runtime = self._service.registry.get(spec.tool_id).runtime
        if runtime.type is RuntimeType.LOCAL and runtime.host_dir:
            self.projects.append(Path(runtime.host_dir))
            self._borrowed_projects.append(Path(runtime.host_dir))
        if runtime.container_id:
            self.containers.add(runtime.container_id)

    @property
    def made_projects(self) -> list[Path]:
        """Projects that the task has created."""
        return [project for project in self.projects if project not in self._borrowed_projects]

    async def call(self, name: str, args: JsonObject, shown: WorkCall) -> JsonObject:
        """Carry out one of the ten tools; return its result.

        Raises:
            ToolAgentError: There is no such tool, the parameters are invalid (the message names the
                path), a person or a rule refuses it, or it failed.

        Cancel: Safe; everything that the call has started is ended.
        """
        self._check_repaired()
        row = TEN_TOOLS.get(name)
        if row is None:
            raise InvalidToolCall(
                f"there is no tool {name!r:.60}; there are {', '.join(TEN_TOOLS)}"
            )
        try:
            arguments = msgspec.convert(args, row.args)
        except msgspec.ValidationError as error:
            raise InvalidToolCall(f"{name}: {error}") from None
        return await row.carry_out(self, arguments, shown)

    # -- Docker ----------------------------------------------------------------------------------

    async def _create_docker_env(self, args: CreateDockerEnv, shown: WorkCall) -> JsonObject:
        for host_dir in args.volumes:
            if Path(host_dir).is_relative_to(self._service.projects.root):
                self._own_project(host_dir)  # the settings decide about all other directories
        request = EnvRequest(
            args.image,
            mem_limit=args.mem_limit,
            nano_cpus=args.nano_cpus,
            ports=args.ports,
            volumes=args.volumes,
            use_gpu=args.use_gpu,
        )
        container: ContainerInfo = await self._service.docker.create_env(request)
        self.containers.add(container.container_id)
        return {"container_id": container.container_id, "port_mapping": container.port_mapping}

    async def _run_in_docker(self, args: RunInDocker, shown: WorkCall) -> JsonObject:
        container_id = self._own_container(args.container_id)
        given = {"container_id": container_id, "command": args.command}
        title = f"Run in container {container_id:.12}?"
        mounted = await self._mounted_projects(container_id)
        request = RunRequest(title, given, container_id, mounted)
        async with self._approvals.approved(request, shown):
            result = await self._service.docker.run(
                container_id, args.command, args.is_background, args.timeout or DEFAULT_TIMEOUT_S
            )
        if isinstance(result, str):
            return {"log_file": result}
        await self._record_run(shown, args.command, container_id, result, "docker")
        return {"exit_code": result.exit_code, "stdout": result.stdout, "stderr": result.stderr}

    async def _rebuild_docker_ports(self, args: RebuildDockerPorts, shown: WorkCall) -> JsonObject:
        old = self._own_container(args.container_id)
        container: ContainerInfo = await self._service.docker.rebuild_ports(
            old, args.ports, args.mem_limit, args.nano_cpus
        )
        self.containers.discard(old)
        self.containers.add(container.container_id)
        self._approvals.moved(old, container.container_id)
        await self._disable_tools_of(old)
        return {"new_container_id": container.container_id, "port_mapping": container.port_mapping}

    async def _destroy_docker_env(self, args: DestroyDockerEnv, shown: WorkCall) -> JsonObject:
        container_id = self._own_container(args.container_id)
        await self._service.docker.destroy(container_id)
        self.containers.discard(container_id)
        await self._disable_tools_of(container_id)
        return {"status": "success", "message": f"container {container_id:.12} is destroyed"}

    async def _disable_tools_of(self, container_id: str) -> None:
        """Switch off the tools of a removed container, until they are registered again."""
        for tool in list(self._service.registry):
            if tool.runtime.container_id == container_id:
                await self._switch_off(tool)

    async def _switch_off(self, tool: ToolMeta) -> None:
        """Stop a tool; an active one must be registered again."""
        await self._service.switch_off(tool.tool_id)
        if self.registered is not None and self.registered.tool_id == tool.tool_id:
            self.registered = None

    async def _mounted_projects(self, container_id: str) -> list[Path]:
        """Return the projects that are mounted into a container."""
        projects = self._service.projects
        info = await asyncio.to_thread(self._service.containers.get, container_id)
        places = [Path(host_dir) for host_dir in info.volumes]
        names = {
            place.relative_to(projects.root).parts[0]
            for place in places
            if place != projects.root and place.is_relative_to(projects.root)
        }
        return [projects.root / name for name in sorted(names)]

    # -- projects --------------------------------------------------------------------------------

    async def _create_uv_project(self, args: CreateUvProject, shown: WorkCall) -> JsonObject:
        create = self._service.projects.create
        made = await create(args.name, args.python_version or "", self.add_project)
        await self._approvals.learn(made)
        return {"project_dir": str(made)}

    def add_project(self, project_dir: Path) -> None:
        """Add a new project to those of the task, and record it."""
        self.projects.append(project_dir)
        self.note()

    async def _run_in_uv(self, args: RunInUv, shown: WorkCall) -> JsonObject:
        project = self._own_project(args.project_dir)
        given = {"project_dir": str(project), "command": args.command}
        request = RunRequest(f"Run this in {project.name}?", given, str(project), [project])
        timeout_s = args.timeout or DEFAULT_TIMEOUT_S
        async with self._approvals.approved(request, shown):
            result = await self._service.projects.run(project, args.command, timeout_s)
        await self._record_run(shown, args.command, project, result, self._sandbox())
        return {"exit_code": result.exit_code, "stdout": result.stdout, "stderr": result.stderr}

    async def _uv_add_dependency(self, args: UvAddDependency, shown: WorkCall) -> JsonObject:
        project = self._own_project(args.project_dir)
        try:
            package = check_package(args.package, "package")
        except ValueError as error:
            raise ToolRefused(str(error)) from None
        # A package may run code during its installation, so this needs approval too.
        given = {"project_dir": str(project), "package": package, "dev": args.dev}
        title = f"Add the package {package} to {project.name}?"
        request = RunRequest(title, given, str(project), [project])
        async with self._approvals.approved(request, shown):
            done = await self._service.projects.add_dependency(project, package, args.dev)
        await self._record_run(shown, f"add {package}", project, done, self._sandbox())
        return {"status": "success", "message": f"{package} is added"}

    async def _write_file(self, args: WriteFile, shown: WorkCall) -> JsonObject:
        path = self._own_path(args.path)
        projects = self._service.projects
        directory = projects.root / projects.locate(path)[0].name
        async with self._approvals.writing(directory):
            self._check_not_disabled(directory)
            if self._approvals.asks_in(str(directory)):
                await self._switch_off_tools_in(directory)
            written, size = await asyncio.to_thread(projects.write_file, path, args.content)
        return {"status": "success", "path": str(written), "size": size}

    async def _switch_off_tools_in(self, directory: Path) -> None:
        """Switch off the active tools of a project, which would run unapproved code."""
        for tool in list(self._service.registry):
            if tool.runtime.host_dir == str(directory) and tool.status is ToolStatus.ACTIVE:
                await self._switch_off(tool)

    def _check_not_disabled(self, directory: Path) -> None:
        """Check that no disabled tool uses the files of a project.

        A person who enables the tool again relies on its files being unchanged.

        Raises:
            ToolConflict: A disabled tool uses them.
        """
        for tool in self._service.registry.tools(ToolStatus.INACTIVE):
            if tool.runtime.host_dir == str(directory):
                raise ToolConflict(
                    f"tool {tool.tool_id}, which has its files in {directory.name}, was disabled "
                    "by a person: nothing is written there until a person enables it"
                )

    async def _read_file(self, args: ReadFile, shown: WorkCall) -> JsonObject:
        path = self._own_path(args.path)
        content = await asyncio.to_thread(self._service.projects.read_file, path)
        return {"status": "success", "path": path, "content": content}

    # -- registration ----------------------------------------------------------------------------

    async def _register_tool(self, args: RegisterTool, shown: WorkCall) -> JsonObject:
        tool = self._tool_of(args)
        runtime = tool.runtime
        place = runtime.container_id or runtime.host_dir
        limits = runtime.resource_limits
        given = {
            "tool_id": tool.tool_id,
            "command": runtime.entry or "what the image starts",
            "cpu": limits.cores,
            "memory_mb": limits.memory_mb,
        }
        async with AsyncExitStack() as approved:
            if runtime.type in (RuntimeType.LOCAL, RuntimeType.DOCKER):
                mounted = (
                    await self._mounted_projects(runtime.container_id)
                    if (runtime.container_id)
                    else [Path(runtime.host_dir)]
                )
                title = f"Start the tool {tool.tool_id}?"
                request = RunRequest(title, given, place, mounted)
                await approved.enter_async_context(self._approvals.approved(request, shown))
            self._check_repaired()  # it may have been removed while the person decided
            shown.progress("starting it, and checking that it answers")
            self.registered = await self._service.activate(tool, replace=True)
        registered = self.registered
        self.own_ids = [one for one in self.own_ids if one != tool.tool_id] + [tool.tool_id]
        return {"status": "success", "tool_id": registered.tool_id, "url": url_of(registered)}

    def _tool_of(self, args: RegisterTool) -> ToolMeta:
        """Return the tool to register.

        Raises:
            ToolAgentError: The id, project or container belongs to another task, or the project
                has none of `ENTRIES`.
        """
        self._check_own_id(args.tool_id)
        kind = runtime_type_of(args.runtime_type)
        host_dir, entry = args.host_dir, ""
        if kind is RuntimeType.LOCAL:
            project = self._own_project(args.host_dir or str(self._project()))
            host_dir, entry = str(project), f"python {_entry_of(project)}"
        elif kind is RuntimeType.DOCKER:
            self._own_container(args.container_id)
        is_server = bool(args.internal_port or args.host_port)
        repaired = self._repaired()
        runtime = RuntimeInfo(
            kind,
            entry,
            container_id=args.container_id,
            host_dir=host_dir,
            # The scheduler chooses the port of a local server, so that no two tools share one.
            host_port=0 if kind is RuntimeType.LOCAL else args.host_port,
            internal_port=(args.internal_port or args.host_port) if is_server else 0,
            endpoint_path=args.endpoint_path,
            http_method=args.http_method,
            env=repaired.runtime.env if repaired is not None else {},
            resource_limits=self._limits(args, kind),
        )
        return ToolMeta(
            args.tool_id,
            args.name,
            args.category,
            args.description,
            args.input_schema,
            args.output_schema,
            stream_support=repaired is not None and repaired.stream_support,
            runtime=runtime,
            scheduling=_scheduling(is_server, repaired),
            fallback_strategy=repaired.fallback_strategy if repaired is not None else [],
        )

    # -- what belongs to the task ----------------------------------------------------------------

    def _repaired(self) -> ToolMeta | None:
        """Return the tool that the task repairs; `None` if it builds one."""
        spec = self._spec
        return self._service.registry.get(spec.tool_id) if isinstance(spec, RepairTool) else None

    def _check_repaired(self) -> None:
        """Check that the tool under repair still exists and was not disabled.

        Raises:
            UnknownTool, ToolConflict: A person has removed or disabled it.
        """
        tool = self._repaired()
        if tool is not None and tool.status is ToolStatus.INACTIVE:
            raise ToolConflict(f"tool {tool.tool_id} was disabled by a person: repair it no more")

    def _check_own_id(self, tool_id: str) -> None:
        known = self._service.registry.find(tool_id)
        is_own = tool_id in self.own_ids
        is_repaired = isinstance(self._spec, RepairTool) and self._spec.tool_id == tool_id
        if isinstance(self._spec, RepairTool) and not is_repaired:
            raise ToolRefused(
                f"this task repairs {self._spec.tool_id}; it cannot register {tool_id}"
            )
        if known is not None and not (is_own or is_repaired):
            raise ToolConflict(f"tool_id {tool_id} is taken by another tool; choose another one")

    def _project(self) -> Path:
        if not self.projects:
            raise ToolRefused("there is no project yet; create_uv_project makes one")
        return self.projects[-1]

    def _own_project(self, project_dir: str) -> Path:
        project = self._service.projects.project_of(project_dir)
        path = self._service.projects.root / project.name
        if path not in self.projects:
            raise ToolRefused(f"{project_dir!r:.200} is no project of this task")
        return path

    def _own_path(self, path: str) -> str:
        """Return a path in a project of the task; a relative path is below the newest project."""
        full_path = path if Path(path).is_absolute() else f"{self._project()}/{path}"
        project, _ = self._service.projects.locate(full_path)
        if self._service.projects.root / project.name not in self.projects:
            raise ToolRefused(f"{path!r:.200} is in no project of this task")
        return full_path

    def _own_container(self, container_id: str) -> str:
        if container_id not in self.containers:
            raise ToolRefused(f"{container_id!r:.80} is no container of this task")
        return container_id

    def _limits(self, args: RegisterTool, kind: RuntimeType) -> ResourceLimits:
        """Return the limits of a tool: from the arguments, the request or the repaired tool.

        Raises:
            InvalidToolCall: The arguments have limits, but the tool runs in a container, which has
                its own.
        """
        if isinstance(self._spec, RepairTool):
            limits = self._service.registry.get(self._spec.tool_id).runtime.resource_limits
        else:
            needs = self._spec.requirements
            limits = ResourceLimits(memory_mb=needs.memory_mb or 512, gpu=bool(needs.gpu))
        if kind is RuntimeType.DOCKER:
            if args.cpu is not None or args.memory_mb is not None:
                raise InvalidToolCall(
                    "register_tool: cpu and memory_mb of a container are those with which it was "
                    "made; rebuild_docker_ports changes them (nano_cpus, mem_limit)"
                )
            info = self._service.containers.get(args.container_id)
            memory_mb = -(-memory_of(info.mem_limit) // MIB)
            return ResourceLimits(_cores(info.nano_cpus / 1e9), memory_mb, limits.gpu)
        cpu = limits.cpu if args.cpu is None else _cores(args.cpu)
        return ResourceLimits(cpu, args.memory_mb or limits.memory_mb, limits.gpu)

    # -- what ran ---------------------------------------------------------------------------------

    def _sandbox(self) -> str:
        """Return the sandbox of programs in projects; empty if there is none."""
        is_on = self._service.settings.current.sandbox != "off" and sandbox_works()
        return "bubblewrap" if is_on else ""

    async def _record_run(
        self, shown: WorkCall, command: str, cwd: str | Path, done: ProgramResult, sandbox: str
    ) -> None:
        run = ProcessRun(command, str(cwd), done.exit_code, done.stdout, done.stderr, sandbox)
        await shown.ran(run)


class BoxTool(NamedTuple):
    """Tool of the toolbox."""

    args: type[BoxArgs]
    carry_out: Callable[[Toolbox, Any, WorkCall], Awaitable[JsonObject]]

    @property
    def description(self) -> str:
        """Description for models."""
        return " ".join((self.args.__doc__ or "").split())

    def schema(self) -> JsonObject:
        """JSON Schema of the parameters."""
        schema = msgspec.json.schema(self.args)
        found: JsonObject = dict(schema["$defs"][self.args.__name__])
        return {**found, "additionalProperties": False}


TEN_TOOLS: Final[dict[str, BoxTool]] = {
    "create_docker_env": BoxTool(CreateDockerEnv, Toolbox._create_docker_env),
    "run_in_docker": BoxTool(RunInDocker, Toolbox._run_in_docker),
    "rebuild_docker_ports": BoxTool(RebuildDockerPorts, Toolbox._rebuild_docker_ports),
    "destroy_docker_env": BoxTool(DestroyDockerEnv, Toolbox._destroy_docker_env),
    "create_uv_project": BoxTool(CreateUvProject, Toolbox._create_uv_project),
    "run_in_uv": BoxTool(RunInUv, Toolbox._run_in_uv),
    "uv_add_dependency": BoxTool(UvAddDependency, Toolbox._uv_add_dependency),
    "write_file": BoxTool(WriteFile, Toolbox._write_file),
    "read_file": BoxTool(ReadFile, Toolbox._read_file),
    "register_tool": BoxTool(RegisterTool, Toolbox._register_tool),
}
"""The ten tools, in the order of the document."""


def _cores(cpu: float) -> str:
    """Return a number of cores in the format of a tool's description: at least a thousandth."""
    return f"{max(cpu, 0.001):.3f}".rstrip("0").rstrip(".")


def _scheduling(is_server: bool, repaired: ToolMeta | None) -> ToolScheduling:
    """Return the scheduling of a tool; a repair keeps the earlier settings as far as they fit."""
    mode = SchedulingMode.COLD if is_server else SchedulingMode.STATELESS
    if repaired is None:
        return ToolScheduling(mode, idle_timeout_s=0)
    before = repaired.scheduling
    if is_server and before.mode is not SchedulingMode.STATELESS:
        mode = before.mode
    return ToolScheduling(mode, idle_timeout_s=before.idle_timeout_s)


def _entry_of(project: Path) -> str:
    for name in ENTRIES:
        if (project / name).is_file():
            return name
    raise ToolRefused(f"nothing starts the tool: write one of {', '.join(ENTRIES)} in {project}")
