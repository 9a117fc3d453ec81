"""`LocalRuntime`: tools that are processes of this machine.

Theory of operation. A tool with a port is a server. It is started once, receives the port as `PORT`
in its environment, listens on 127.0.0.1, and is called over HTTP until it is put to sleep or
stopped. A tool without a port is started for each call. It reads one JSON object from standard
input and writes its result as JSON to standard output; lines `{"chunk": "…", "done": false}` before
the result are pieces of it. The log is `last_run.log` of the project, as for every command.

Both kinds run in the tool's project, confined as `projects` describes. A server has network access,
because it is called over the network. A process for one call has no network access unless the
operator lists the tool in `network_tools`. The next call or health check notices that a server has
ended by itself; its port is released when the tool is started again or stopped.
"""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import suppress
from typing import Final

import httpx
import msgspec

from arp.process.program import TIMED_OUT, ProgramResult, ProgramStart, ServingProgram
from arp.process.sandbox import ProcessLimits, sandbox_works
from arp.protocol.json_value import Json, JsonObject
from arp.tools.errors import InvalidToolMeta, ToolCallFailed, ToolTimeout, extra_missing
from arp.tools.projects.program import run_in_project, serve_in_project
from arp.tools.projects.project_table import Project
from arp.tools.projects.projects import LocalProjects
from arp.tools.registry.models import RuntimeInfo, ToolMeta
from arp.tools.run.http_call import MAX_ANSWER, HttpCall, call_http, check_answers, event_of
from arp.tools.run.ports import Ports
from arp.tools.run.runtime import OnChunk
from arp.tools.settings import LiveSettings, ToolSettings

logger = logging.getLogger(__name__)

START_S: Final = 30.0
"""Time that a server has to listen, in seconds."""
PORT_TRIES: Final = 3
"""Number of ports that are tried; another program may bind a port between our check and the
start."""
HEALTH_S: Final = 5.0
END_S: Final = 0.5
"""Time in seconds between the end of a server's connections and the end of its process."""
LIMITS: Final = ProcessLimits()
NO_NETWORK: Final = re.compile(
    r"Network is unreachable|name resolution|Name or service not known|getaddrinfo|ENETUNREACH"
    r"|EAI_AGAIN|ECONNREFUSED|Connection refused|Could not resolve host"
)
"""Error texts of programs that cannot reach the network."""


class LocalRuntime:
    """Runtime for local tools.

    Args:
        projects: Projects of the tools.
        ports: Allocator of their ports.
        settings: Time limit of a call.
    """

    def __init__(self, projects: LocalProjects, ports: Ports, settings: LiveSettings) -> None:
        self._projects = projects
        self._ports = ports
        self._settings = settings
        self._running: dict[str, tuple[ServingProgram, int]] = {}
        self._client: httpx.AsyncClient | None = None

    async def check(self) -> None:
        """See `ToolRuntime.check`."""
        await asyncio.to_thread(self._projects.check)

    def pid_of(self, tool_id: str) -> int | None:
        """Return the process id of a tool's server; `None` if the server does not run."""
        running = self._running.get(tool_id)
        return running[0].pid if running and running[0].exit_code is None else None

    async def start(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.start`."""
        if not tool.runtime.entry:
            raise InvalidToolMeta(f"tool {tool.tool_id} has no entry: the command that starts it")
        project = self._projects.project_of(tool.runtime.host_dir)
        if not is_server(tool):
            self._process_of(tool)
            return tool.runtime
        running = self._running.get(tool.tool_id)
        if running is not None and running[0].exit_code is None:
            return _with_port(tool, running[1])
        await self.sleep(tool)  # releases the port of a server that has ended by itself
        failed: list[int] = []
        while True:
            port = self._port_for(tool, failed)
            env = {**tool.runtime.env, "PORT": str(port), "HOST": "127.0.0.1"}
            try:
                start = self._projects.program(project, tool.runtime.entry, env, limits_of(tool))
                program = await self._started(tool, start, port)
            except BaseException as error:
                self._ports.release(port)
                failed.append(port)
                # Another program may have bound the port since the check. Any other error would
                # recur on another port.
                taken = isinstance(error, ToolCallFailed) and "in use" in error.message
                if not taken or len(failed) >= PORT_TRIES:
                    raise
                continue
            self._running[tool.tool_id] = (program, port)
            return _with_port(tool, port)

    async def call(self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None) -> Json:
        """See `ToolRuntime.call`."""
        if not is_server(tool):
            return await self._run_once(tool, params, on_chunk)
        port = self._alive(tool)
        url = f"http://127.0.0.1:{port}/{tool.runtime.endpoint_path.lstrip('/')}"
        call = HttpCall(tool.runtime.http_method, url, params, name=f"tool {tool.tool_id}")
        try:
            return await call_http(self._http(), call, on_chunk)
        except ToolCallFailed as error:
            if isinstance(error.__cause__, httpx.TransportError):
                await self._check_end(tool)
            raise

    async def healthy(self, tool: ToolMeta) -> None:
        """See `ToolRuntime.healthy`.

        A server is asked for `/health`, which it need not have: any answer below 500 counts as
        healthy. A tool that is started for each call is healthy if its project exists.
        """
        if not is_server(tool):
            self._projects.project_of(tool.runtime.host_dir)
            return
        port = self._alive(tool)
        call = HttpCall("GET", f"http://127.0.0.1:{port}/health", {}, name=f"tool {tool.tool_id}")
        await check_answers(self._http(), call, HEALTH_S)

    async def sleep(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.sleep`. The port is released; the next start may use another one."""
        running = self._running.pop(tool.tool_id, None)
        if running is not None:
            program, port = running
            try:
                await program.stop()
            finally:
                self._ports.release(port)
        if not is_server(tool):
            return tool.runtime
        kept = tool.runtime.internal_port or tool.runtime.host_port
        return msgspec.structs.replace(tool.runtime, host_port=0, internal_port=kept)

    async def stop(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.stop`."""
        return await self.sleep(tool)

    async def aclose(self) -> None:
        """See `ToolRuntime.aclose`."""
        running, self._running = dict(self._running), {}
        for program, port in running.values():
            await program.stop()
            self._ports.release(port)
        if self._client is not None:
            await self._client.aclose()

    def _port_for(self, tool: ToolMeta, failed: list[int]) -> int:
        wanted = tool.runtime.host_port
        if wanted and wanted not in failed and self._ports.try_allocate(wanted):
            return wanted
        return self._ports.allocate(failed)

    async def _started(self, tool: ToolMeta, start: ProgramStart, port: int) -> ServingProgram:
        """Start a server and wait until it listens.

        Raises:
            ToolCallFailed: It ended, or did not listen in time; all its processes are ended.
        """
        program = await serve_in_project(start)
        try:
            async with asyncio.timeout(START_S):
                await self._listening(tool, program, port)
        except TimeoutError:
            await program.stop()
            raise ToolCallFailed(
                f"tool {tool.tool_id} does not listen on 127.0.0.1:{port} after {START_S:g} s; "
                f"its port is in the variable PORT. {_last_words(program)}"
            ) from None
        except BaseException:
            await program.stop()
            raise
        return program

    async def _listening(self, tool: ToolMeta, program: ServingProgram, port: int) -> None:
        wait = 0.01
        while not (await _accepts(port) and await asyncio.to_thread(_listens, program.pid, port)):
            if program.exit_code is not None:
                raise ToolCallFailed(
                    f"tool {tool.tool_id} ended with exit code {program.exit_code} before it "
                    f"listened. {_last_words(program)}"
                )
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, 0.25)

    def _alive(self, tool: ToolMeta) -> int:
        """Return the port of a running server.

        Raises:
            ToolCallFailed: The server does not run.
        """
        running = self._running.get(tool.tool_id)
        if running is None:
            raise ToolCallFailed(f"tool {tool.tool_id} does not run")
        program, port = running
        if program.exit_code is not None:
            by = "was ended" if program.why_ended else "ended by itself"
            raise ToolCallFailed(
                f"tool {tool.tool_id} {by} with exit code {program.exit_code}. "
                f"{_last_words(program)}"
            )
        return port

    async def _check_end(self, tool: ToolMeta) -> None:
        """Check that a server has not ended after its connection broke.

        Waits up to `END_S`, because the connections of a server end before its process does.

        Raises:
            ToolCallFailed: It has ended.
        """
        running = self._running.get(tool.tool_id)
        if running is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(running[0].wait(), END_S)
        self._alive(tool)

    async def _run_once(self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None) -> Json:
        project, start = self._process_of(tool)
        chunks: asyncio.Queue[str | None] = asyncio.Queue()

        def line(data: bytes) -> None:
            event = event_of(data)
            if event and not event["done"] and event.get("chunk"):
                chunks.put_nowait(str(event["chunk"]))

        telling = asyncio.create_task(_tell(chunks, on_chunk), name="pieces of a local tool")
        try:
            result = await run_in_project(
                start,
                self._settings.current.call_timeout_s,
                stdin=msgspec.json.encode(params) + b"\n",
                kept_output=2 * MAX_ANSWER,  # one half keeps the end of the output: the result
                on_line=line,
            )
            chunks.put_nowait(None)
            await telling
        finally:
            telling.cancel()
        self._projects.write_log(project, tool.runtime.entry, result)
        try:
            return _result_of(tool, result)
        except ToolCallFailed as error:
            if not start.has_network and NO_NETWORK.search(result.stderr):
                raise ToolCallFailed(
                    f"{error.message}\n{tool.tool_id} has no network: add it to network_tools in "
                    "data/config.json, or let it be a server on the port in PORT"
                ) from error
            raise

    def _process_of(self, tool: ToolMeta) -> tuple[Project, ProgramStart]:
        """Return the start options for the process of a call, with or without network access."""
        project = self._projects.project_of(tool.runtime.host_dir)
        network = _may_reach_network(tool, self._settings.current)
        entry, env = tool.runtime.entry, tool.runtime.env
        return project, self._projects.program(project, entry, env, limits_of(tool), network)

    def _http(self) -> httpx.AsyncClient:
        if self._client is None or self._client.is_closed:
            # A tool may close an idle connection at any time, so each call opens its own.
            limits = httpx.Limits(max_connections=200, max_keepalive_connections=0)
            timeout_s = self._settings.current.call_timeout_s
            self._client = httpx.AsyncClient(timeout=timeout_s, limits=limits, trust_env=False)
        return self._client


def is_server(tool: ToolMeta) -> bool:
    """Return whether a local tool is called on a port."""
    return bool(tool.runtime.host_port or tool.runtime.internal_port)


def has_network(tool: ToolMeta, settings: ToolSettings) -> bool:
    """Return whether a local tool has network access."""
    return (
        is_server(tool)
        or _may_reach_network(tool, settings)
        or settings.sandbox == "off"
        or not sandbox_works(network=False)
    )


def _may_reach_network(tool: ToolMeta, settings: ToolSettings) -> bool:
    return tool.tool_id in settings.network_tools or "*" in settings.network_tools


def limits_of(tool: ToolMeta) -> ProcessLimits:
    """Return the limits of a tool's processes."""
    return msgspec.structs.replace(LIMITS, memory_mb=tool.runtime.resource_limits.memory_mb)


async def _tell(chunks: asyncio.Queue[str | None], on_chunk: OnChunk | None) -> None:
    while (chunk := await chunks.get()) is not None:
        if on_chunk is not None:
            await on_chunk(chunk)


async def _accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


def _listens(pid: int, port: int) -> bool:
    """Return whether a process or one of its descendants listens on a port.

    A successful connection does not prove this: another program may have bound the port.
    """
    try:
        import psutil
    except ImportError as error:
        raise extra_missing("psutil") from error
    try:
        top = psutil.Process(pid)
        for process in [top, *top.children(recursive=True)]:
            for connection in process.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                    return True
    except psutil.NoSuchProcess:  # it has just ended
        return False
    except psutil.AccessDenied:  # unknown; a wrong answer will reveal the problem
        return True
    return False


def _with_port(tool: ToolMeta, port: int) -> RuntimeInfo:
    return msgspec.structs.replace(tool.runtime, host_port=port, internal_port=port)


def _last_words(program: ServingProgram) -> str:
    if program.why_ended:
        return f"Because {program.why_ended}."
    text = program.tail().strip()
    return f"It wrote: {text[-500:]}" if text else "It wrote nothing."


def _result_of(tool: ToolMeta, result: ProgramResult) -> Json:
    """Return the JSON value that a process wrote: its whole output, or else the last line.

    If the value is an event (see `event_of`) with a `result`, return this result.

    Raises:
        ToolTimeout: The process took too long.
        ToolCallFailed: The process ended with an error, wrote too much, or wrote no JSON.
    """
    if result.exit_code == TIMED_OUT:
        raise ToolTimeout(f"tool {tool.tool_id} took too long and was ended")
    if result.exit_code:
        output = (result.stderr or result.stdout).strip()[-500:]
        raise ToolCallFailed(
            f"tool {tool.tool_id} ended with exit code {result.exit_code}: {output or 'no output'}"
        )
    if len(result.stdout) > MAX_ANSWER:
        raise ToolCallFailed(f"tool {tool.tool_id} wrote more than {MAX_ANSWER} characters")
    text = result.stdout.strip()
    for candidate in (text, text.rpartition("\n")[2]):
        with suppress(msgspec.DecodeError, RecursionError):
            value = msgspec.json.decode(candidate)
            event = event_of(candidate.encode())
            return value if event is None or "result" not in event else event["result"]
    raise ToolCallFailed(f"tool {tool.tool_id} wrote no JSON to standard output: {text[-200:]!r}")
