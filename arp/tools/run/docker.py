"""`DockerEngine`: containers for builds and tools.

Theory of operation. The Docker SDK blocks, so each call runs in a thread. The main process of a
container that we create is idle. Other programs run in the container either in the foreground with
a time limit, or in the background with a log file. Background commands are recorded in
`container_commands.json` and started again after the container has slept or got other ports. Ports
are published on 127.0.0.1. A container has the limits of its request, few capabilities and no way
to gain privileges, and sees only directories that may be mounted.

If this process was killed before a container was added to `containers.json`, the next clean-up
finds the container by its label and removes it. The clean-up also removes containers that no tool
uses and that were idle for `docker_ttl_seconds`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import field

from arp.process.bounded_output import BoundedOutput
from arp.process.program import KEPT_OUTPUT, MAX_WRITTEN, TIMED_OUT, ProgramResult
from arp.tools.errors import (
    InvalidToolMeta,
    RuntimeMissing,
    ToolAgentError,
    ToolCallFailed,
    UnknownTool,
    extra_missing,
)
from arp.tools.projects.projects import MAX_COMMAND, MAX_TIMEOUT_S
from arp.tools.registry.json_table import JsonTable, TableDocument
from arp.tools.registry.models import ContainerInfo, ContainerStatus
from arp.tools.run.container_rules import EnvRequest, container_options
from arp.tools.run.containers import ContainerTable
from arp.tools.run.ports import Ports
from arp.tools.settings import LiveSettings, docker_environment

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

API_S: Final = 60
"""Time limit of a call to the container engine, in seconds."""
STOP_S: Final = 2
"""Time that a container has to end before it is killed, in seconds."""
CLEAN_UP_S: Final = 30.0
"""Shortest time between two clean-ups, in seconds."""
MAX_PROCESSES: Final = 512
DEFAULT_HOST: Final = "unix:///var/run/docker.sock"
LABEL: Final = "arp.tool-agent"
CAPABILITIES: Final = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"]
"""Capabilities that package managers need; none for raw packets, devices or other users'
processes."""

FRAME_HEAD: Final = struct.Struct(">BxxxL")
"""Header of each piece of output: its stream and its length."""

_KEEP_ALIVE: Final = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"
_IN_BACKGROUND: Final = 'ulimit -f 2097152; exec sh -c "$1" >>"$2" 2>&1 </dev/null'
"""Shell command that limits a log to 1 GiB, because the log uses the machine's disk."""
_IN_FOREGROUND: Final = 'echo $$ >"$2"; exec sh -c "$1" </dev/null'


class BackgroundCommand(msgspec.Struct, frozen=True):
    """Command that was started in the background of a container."""

    container_id: str
    command: str
    log_file: str


class CommandsDocument(TableDocument[BackgroundCommand], frozen=True):
    """Content of `container_commands.json`; a container may have several commands."""

    rows: list[BackgroundCommand] = field(default_factory=list, name="commands")


class DockerEngine:
    """Containers of one data directory, on the engine that `DOCKER_HOST` names.

    Args:
        settings: Defaults, and the directories that may be mounted.
        containers: Table of the containers that we created.
        ports: Allocator of published ports.
        in_use: Returns the containers of registered tools, which are not cleaned up.
    """

    def __init__(
        self,
        settings: LiveSettings,
        containers: ContainerTable,
        ports: Ports,
        in_use: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._settings = settings
        self._containers = containers
        self._ports = ports
        self._in_use = in_use
        self._commands = JsonTable(
            settings.data_dir / "container_commands.json",
            CommandsDocument,
            key=lambda command: command.container_id,
        )
        data_dir = os.path.abspath(settings.data_dir)
        self._owner = hashlib.sha256(data_dir.encode()).hexdigest()[:16]
        self._client: Any = None
        self._connecting = threading.Lock()
        self._cleaned_at: float | None = None

    async def check(self) -> None:
        """Check that the engine answers.

        Raises:
            RuntimeMissing: The engine does not answer, or the SDK is not installed.
        """
        await self._do(lambda client: client.ping())

    async def create_env(self, request: EnvRequest) -> ContainerInfo:
        """Create a container that runs until it is stopped, and return it.

        Raises:
            InvalidToolMeta: The request is invalid; the message names the field.
            ToolRefused: A volume or a variable is refused.
            ToolCallFailed: The engine could not create it, for instance because the image is
                missing.
            RuntimeMissing: The engine does not answer.

        Cancel: Safe: the container is removed, at the latest by the next clean-up.
        """
        options = container_options(request, self._settings)
        options["labels"] = {LABEL: self._owner}
        mapping = {str(port): self._ports.allocate() for port in request.ports}
        try:
            published = {f"{one}/tcp": ("127.0.0.1", port) for one, port in mapping.items()}
            container_id = await self._do(lambda client: _run(client, options, published))
        except BaseException:
            self._release_ports(mapping)
            raise
        info = ContainerInfo(
            container_id=container_id,
            tool_id=request.tool_id,
            image=options["image"],
            port_mapping=mapping,
            volumes={**request.volumes},
            mem_limit=request.mem_limit or self._settings.current.docker_mem_limit,
            nano_cpus=options["nano_cpus"],
            use_gpu=request.use_gpu,
            gpu_count=request.gpu_count,
        )
        return await asyncio.to_thread(self._containers.add, info)

    async def run(
        self, container_id: str, command: str, is_background: bool = False, timeout_s: float = 120.0
    ) -> ProgramResult | str:
        """Run a shell command in a container.

        Args:
            container_id: Id of a container that we created.
            command: Command for `sh` in the container.
            is_background: Whether to return at once, with the path of the log file.
            timeout_s: Time limit of a foreground command, in seconds. A command that exceeds it is
                killed, with exit code 124.

        Returns:
            The outcome, or for a background command the path of its log file in the container.

        Raises:
            UnknownTool: We created no such container.
            ToolCallFailed: The engine could not run the command.

        Cancel: A foreground command is killed.
        """
        info = self._containers.get(container_id)
        if not command or len(command) > MAX_COMMAND or "\0" in command:
            raise InvalidToolMeta(f"a command has 1 to {MAX_COMMAND} characters, and no NUL")
        if not 0 < timeout_s <= MAX_TIMEOUT_S:
            raise InvalidToolMeta(f"timeout is {timeout_s:g}; it is 1 to {MAX_TIMEOUT_S:g} seconds")
        await asyncio.to_thread(self._containers.touch, container_id)
        if is_background:
            log_file = f"/tmp/arp-{secrets.token_hex(4)}.log"
            made = BackgroundCommand(container_id, command, log_file)
            await self._do(lambda client: _start_in_background(client, made))
            await asyncio.to_thread(self._record_command, made)
            return log_file
        return await self._run_to_end(info.container_id, command, timeout_s)

    async def rebuild_ports(
        self,
        container_id: str,
        ports: Sequence[int],
        mem_limit: str | None = None,
        nano_cpus: int | None = None,
    ) -> ContainerInfo:
        """Replace a container with a copy that has other ports, and destroy the old one.

        Background commands are started again. If one cannot be started, the new container is
        destroyed and the old one is unchanged.

        Returns:
            The new container.

        Raises:
            ToolAgentError: As for `create_env`, or a background command could not be started again.

        Cancel: Safe; the effect is that of a failure.
        """
        old = self._containers.get(container_id)
        image = f"arp-tool-agent/{self._owner}:{secrets.token_hex(6)}"
        await self._do(lambda client: _commit(client, container_id, image))
        request = EnvRequest(
            image,
            mem_limit or old.mem_limit,
            nano_cpus or old.nano_cpus,
            ports,
            old.volumes,
            old.use_gpu,
            old.gpu_count,
            tool_id=old.tool_id,
        )
        try:
            new = await self.create_env(request)
        except BaseException:
            with suppress(ToolAgentError):
                await self._do(lambda client: client.images.remove(image, force=True))
            raise
        try:
            for one in self._commands_of(container_id):
                await self.run(new.container_id, one.command, is_background=True)
        except BaseException:
            await asyncio.shield(self._discard(new.container_id))
            raise
        await self.destroy(container_id)
        return new

    async def _discard(self, container_id: str) -> None:
        """Destroy a container that no caller received; if that fails, the clean-up does it."""
        try:
            await self.destroy(container_id)
        except ToolAgentError as error:
            logger.warning("container %.12s is left for the clean-up: %s", container_id, error)

    async def destroy(self, container_id: str) -> ContainerInfo:
        """Remove a container with its content, and return its row of the table. May be repeated.

        Raises:
            UnknownTool: We created no container with this id.
            ToolCallFailed: The engine could not remove it.
        """
        known = {one.container_id: one for one in self._containers.containers()}
        info = known.get(container_id)
        if info is None:
            raise UnknownTool(f"there is no container {container_id!r:.80} of ours")
        if info.status is ContainerStatus.DESTROYED:
            return info
        await self._do(lambda client: _remove(client, container_id))
        if info.image.startswith("arp-tool-agent/"):
            with suppress(ToolAgentError):
                await self._do(lambda client: client.images.remove(info.image, force=True))
        return await asyncio.to_thread(self._record_destroyed, info)

    async def wake(self, container_id: str) -> ContainerInfo:
        """Start a sleeping container and its background commands, and return it.

        Raises:
            UnknownTool: We created no such container, or the engine has lost it.
        """
        info = self._containers.get(container_id)
        if not await self.is_running(container_id):
            await self._do(lambda client: client.containers.get(container_id).start())
            for one in self._commands_of(container_id):
                await self._do(partial(_start_in_background, made=one))
        for port in info.port_mapping.values():
            self._ports.claim(port)
        return info

    async def pause(self, container_id: str) -> None:
        """Stop a container that `wake` can start again. May be repeated.

        The container keeps its ports.
        """
        with suppress(UnknownTool):
            await self._do(lambda client: client.containers.get(container_id).stop(timeout=STOP_S))

    async def is_running(self, container_id: str) -> bool:
        """Return whether a container runs.

        Raises:
            UnknownTool: The engine no longer has it; it is recorded as destroyed.
        """
        try:
            state = await self._do(lambda client: client.containers.get(container_id).status)
        except UnknownTool:
            for one in self._containers.containers(ContainerStatus.RUNNING):
                if one.container_id == container_id:
                    await asyncio.to_thread(self._record_destroyed, one)
            raise
        return bool(state == "running")

    async def clean_up(self) -> None:
        """Destroy unused containers, at most once every `CLEAN_UP_S`."""
        now = time.monotonic()
        is_early = self._cleaned_at is not None and now - self._cleaned_at < CLEAN_UP_S
        if is_early or not self._containers.containers(ContainerStatus.RUNNING):
            return
        self._cleaned_at = now
        await self.clean_up_now()

    async def clean_up_now(self) -> list[str]:
        """Destroy unused containers and return their ids.

        A container is unused if no tool uses it and it was idle for `docker_ttl_seconds`, or if it
        has our label but is neither in the table nor used by a tool.
        """
        in_use = set(self._in_use())
        idle = self._containers.unused_since(self._settings.current.docker_ttl_seconds)
        destroyed = []
        for one in idle:
            if one.container_id not in in_use:
                await self.destroy(one.container_id)
                destroyed.append(one.container_id)
        known = {one.container_id for one in self._containers.containers()}
        for container_id in await self._do(lambda client: _labelled(client, self._owner)):
            # A container that is being created is not in the table yet either. `_labelled` omits
            # it, because it is younger than a minute.
            if container_id not in known and container_id not in in_use:
                await self._do(partial(_remove, container_id=container_id))
                destroyed.append(container_id)
        return destroyed

    async def aclose(self) -> None:
        """Close the connection to the engine. Containers keep running."""
        client, self._client = self._client, None
        if client is not None:
            await asyncio.to_thread(client.close)

    async def _do(self, call: Callable[[Any], Result]) -> Result:
        """Call the engine in a thread, and convert its errors to those of the Tool Agent."""
        return await asyncio.to_thread(self._call, call)

    def _call(self, call: Callable[[Any], Result]) -> Result:
        errors, requests = _libraries()
        try:
            return call(self._connected())
        except errors.ImageNotFound as error:
            raise ToolCallFailed(f"there is no such image: {error.explanation}") from error
        except errors.NotFound as error:
            raise UnknownTool(f"the engine has no such container: {error.explanation}") from error
        except errors.APIError as error:
            raise ToolCallFailed(f"the container engine refused: {error.explanation}") from error
        except (errors.DockerException, requests.exceptions.RequestException, OSError) as error:
            raise _no_engine(error) from error

    def _connected(self) -> Any:
        with self._connecting:
            if self._client is None:
                import docker

                environment = docker_environment()
                _check_socket(environment.get("DOCKER_HOST", DEFAULT_HOST))
                self._client = docker.from_env(timeout=API_S, environment=environment)
            return self._client

    async def _run_to_end(self, container_id: str, command: str, timeout_s: float) -> ProgramResult:
        running = _RunningCommand(container_id, command)
        following = asyncio.ensure_future(self._do(running.follow))
        timed_out = False
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(following)
        except TimeoutError:
            timed_out = True
        finally:
            if not following.done():
                await asyncio.shield(self._do(running.kill))
                await asyncio.wait([following], timeout=API_S)
        if timed_out:
            running.errors.add(
                f"\narp: it took longer than {timeout_s:g} s and was ended\n".encode()
            )
            return ProgramResult(TIMED_OUT, running.output.text(), running.errors.text())
        code = await self._do(running.exit_code)
        return ProgramResult(code, running.output.text(), running.errors.text())

    def _record_command(self, made: BackgroundCommand) -> None:
        self._commands.change(lambda rows: ([*rows, made], None))

    def _commands_of(self, container_id: str) -> list[BackgroundCommand]:
        return [one for one in self._commands.rows() if one.container_id == container_id]

    def _record_destroyed(self, info: ContainerInfo) -> ContainerInfo:
        """Record that a container is destroyed, and release its ports and commands."""
        self._release_ports(info.port_mapping)
        self._commands.remove(info.container_id)
        return self._containers.record_destroyed(info.container_id)

    def _release_ports(self, mapping: Mapping[str, int]) -> None:
        for port in mapping.values():
            self._ports.release(port)


class _RunningCommand:
    """Foreground command in a container, followed by a thread."""

    def __init__(self, container_id: str, command: str) -> None:
        self._container_id = container_id
        self._command = command
        self._pid_file = f"/tmp/.arp-{secrets.token_hex(8)}"
        self._exec_id: str | None = None
        self.output = BoundedOutput(KEPT_OUTPUT)
        self.errors = BoundedOutput(KEPT_OUTPUT)

    def follow(self, client: Any) -> None:
        """Run the command and read its output to the end."""
        words = ["sh", "-c", _IN_FOREGROUND, "sh", self._command, self._pid_file]
        self._exec_id = exec_id = str(client.api.exec_create(self._container_id, words)["Id"])
        with closing(_streamed(client, exec_id)) as pieces:
            for is_error, data in pieces:
                (self.errors if is_error else self.output).add(data)
                if max(self.output.written, self.errors.written) > MAX_WRITTEN:
                    self.errors.add(f"\narp: it wrote more than {MAX_WRITTEN} bytes\n".encode())
                    self.kill(client)
                    break
        _exec(client, self._container_id, ["rm", "-f", self._pid_file])

    def kill(self, client: Any) -> None:
        """Kill the command and its process group."""
        script = f'read pid <{self._pid_file} && {{ kill -9 -"$pid" || kill -9 "$pid"; }}'
        _exec(client, self._container_id, ["sh", "-c", script])

    def exit_code(self, client: Any) -> int:
        """Return the exit code of the command."""
        code = client.api.exec_inspect(self._exec_id)["ExitCode"]
        return -1 if code is None else int(code)


def _run(client: Any, options: Mapping[str, Any], published: Mapping[str, Any]) -> str:
    """Create and start a container that runs until it is stopped; return its id."""
    container = client.containers.create(
        **options,
        entrypoint=["sh", "-c", _KEEP_ALIVE],
        command=[],
        ports=published,
        cap_drop=["ALL"],
        cap_add=CAPABILITIES,
        security_opt=["no-new-privileges"],
        pids_limit=MAX_PROCESSES,
        memswap_limit=options["mem_limit"],
    )
    try:
        container.start()
    except BaseException:
        container.remove(force=True, v=True)
        raise
    return str(container.id)


def _start_in_background(client: Any, made: BackgroundCommand) -> None:
    words = ["sh", "-c", _IN_BACKGROUND, "sh", made.command, made.log_file]
    started = client.api.exec_create(made.container_id, words, stdout=False, stderr=False)
    client.api.exec_start(started["Id"], detach=True)


def _commit(client: Any, container_id: str, image: str) -> None:
    repository, _, tag = image.partition(":")
    client.containers.get(container_id).commit(repository=repository, tag=tag)


def _remove(client: Any, container_id: str) -> None:
    errors, _ = _libraries()
    with suppress(errors.NotFound):
        client.api.remove_container(container_id, force=True, v=True)


def _labelled(client: Any, owner: str) -> list[str]:
    """Return the labelled containers of this data directory that are older than a minute."""
    found = client.api.containers(all=True, filters={"label": f"{LABEL}={owner}"})
    return [str(one["Id"]) for one in found if time.time() - float(one["Created"]) > API_S]


def _exec(client: Any, container_id: str, words: list[str]) -> None:
    with suppress(_libraries()[0].APIError):
        exec_id = client.api.exec_create(container_id, words)["Id"]
        with closing(_streamed(client, exec_id)) as pieces:
            for _ in pieces:
                pass


def _streamed(client: Any, exec_id: str) -> Generator[tuple[bool, bytes], None, None]:
    """Start a command and yield its output, each piece with a flag for standard error.

    The SDK's own reader reads from the bare socket and loses data that arrived in the same packet
    as the response head. For a fast command that is all of its output. This reader continues where
    the head was read. It also closes the connection, which the SDK leaves to the garbage collector.
    """
    from docker.utils.socket import STDERR

    connection = client.api.exec_start(exec_id, socket=True)
    inner, response = getattr(connection, "_sock", None), connection._response
    try:
        client.api._disable_socket_timeout(connection)
        stream = response.raw._fp.fp
        while len(head := stream.read(FRAME_HEAD.size)) == FRAME_HEAD.size:
            kind, size = FRAME_HEAD.unpack(head)
            yield kind == STDERR, stream.read(size)
    finally:
        # The response first: closing it flushes the layers below.
        for one in (response, connection, inner):
            if one is not None:
                with suppress(OSError, ValueError):
                    one.close()


def _libraries() -> tuple[Any, Any]:
    """Return the error module of the SDK and its HTTP library.

    Raises:
        RuntimeMissing: The SDK is not installed.
    """
    try:
        import docker.errors
        import requests
    except ImportError as error:
        raise extra_missing("docker") from error
    return docker.errors, requests


def _check_socket(host: str) -> None:
    """Raise an `OSError` if no server listens at a Unix socket.

    Without this check, the SDK would leak the socket of its failed connection.
    """
    if host.startswith("unix://"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(host.removeprefix("unix://"))


def _no_engine(error: Exception) -> RuntimeMissing:
    host = docker_environment().get("DOCKER_HOST", DEFAULT_HOST)
    return RuntimeMissing(
        f"no container engine answers at {host}: {str(error)[:200]}; start Docker or "
        "`podman system service`, or set DOCKER_HOST"
    )
