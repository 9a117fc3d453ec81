"""`DockerRuntime`: tools that are programs in containers, called over HTTP on a published port."""

from __future__ import annotations

import asyncio
import shlex
from typing import Final

import httpx
from msgspec import structs

from arp.process.sandbox import check_environment
from arp.protocol.json_value import Json, JsonObject
from arp.tools.errors import InvalidToolMeta, ToolAgentError, ToolCallFailed, ToolRefused
from arp.tools.registry.models import RuntimeInfo, ToolMeta
from arp.tools.run.docker import DockerEngine
from arp.tools.run.http_call import HttpCall, call_http, check_answers
from arp.tools.run.runtime import OnChunk
from arp.tools.settings import LiveSettings

LISTEN_S: Final = 30.0
"""Time that a tool has to answer after its container was started, in seconds."""
HEALTH_S: Final = 5.0


class DockerRuntime:
    """Runtime for tools that are programs in containers.

    Args:
        engine: Container engine.
        settings: Time limit of a call.
    """

    def __init__(self, engine: DockerEngine, settings: LiveSettings) -> None:
        self._engine = engine
        self._settings = settings
        self._client: httpx.AsyncClient | None = None

    async def check(self) -> None:
        """See `ToolRuntime.check`."""
        await self._engine.check()

    async def start(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.start`. Runs `entry` if the started container has no server yet."""
        runtime = tool.runtime
        if not runtime.container_id or not runtime.internal_port:
            raise InvalidToolMeta(
                f"tool {tool.tool_id} needs container_id and internal_port: of a container made by "
                "create_docker_env, with its port"
            )
        container = await self._engine.wake(runtime.container_id)
        port = container.port_mapping.get(str(runtime.internal_port))
        if port is None:
            raise InvalidToolMeta(
                f"container {runtime.container_id:.12} does not publish port "
                f"{runtime.internal_port}; use rebuild_docker_ports"
            )
        found = structs.replace(runtime, host_port=port)
        await self._listening(structs.replace(tool, runtime=found))
        return found

    async def call(self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None) -> Json:
        """See `ToolRuntime.call`."""
        url = f"http://127.0.0.1:{tool.runtime.host_port}/{tool.runtime.endpoint_path.lstrip('/')}"
        call = HttpCall(tool.runtime.http_method, url, params, name=f"tool {tool.tool_id}")
        return await call_http(self._http(), call, on_chunk)

    async def healthy(self, tool: ToolMeta) -> None:
        """See `ToolRuntime.healthy`: its container runs, and `/health` gets an answer."""
        if not await self._engine.is_running(tool.runtime.container_id):
            raise ToolCallFailed(f"container {tool.runtime.container_id:.12} does not run")
        await self._answers(tool)

    async def sleep(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.sleep`: the container is stopped and keeps its ports."""
        if tool.runtime.container_id:
            await self._engine.pause(tool.runtime.container_id)
        return tool.runtime

    async def stop(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.stop`: the same as `sleep`, because the container holds the tool."""
        return await self.sleep(tool)

    async def aclose(self) -> None:
        """See `ToolRuntime.aclose`; containers outlive this process."""
        if self._client is not None:
            await self._client.aclose()

    async def _listening(self, tool: ToolMeta) -> None:
        """Wait until a tool answers; run its `entry` if it does not answer at first."""
        wait, started = 0.05, False
        try:
            async with asyncio.timeout(LISTEN_S):
                while True:
                    try:
                        return await self._answers(tool)
                    except ToolAgentError:
                        if not started and tool.runtime.entry:
                            started = True
                            await self._engine.run(
                                tool.runtime.container_id, _entry(tool), is_background=True
                            )
                    await asyncio.sleep(wait)
                    wait = min(wait * 1.5, 0.5)
        except TimeoutError:
            await self.sleep(tool)
            raise ToolCallFailed(
                f"tool {tool.tool_id} does not answer on port {tool.runtime.internal_port} of its "
                f"container after {LISTEN_S:g} s"
            ) from None

    async def _answers(self, tool: ToolMeta) -> None:
        url = f"http://127.0.0.1:{tool.runtime.host_port}/health"
        call = HttpCall("GET", url, {}, name=f"tool {tool.tool_id}")
        await check_answers(self._http(), call, HEALTH_S)

    def _http(self) -> httpx.AsyncClient:
        if self._client is None or self._client.is_closed:
            limits = httpx.Limits(max_connections=200, max_keepalive_connections=0)
            timeout_s = self._settings.current.call_timeout_s
            self._client = httpx.AsyncClient(timeout=timeout_s, limits=limits, trust_env=False)
        return self._client


def _entry(tool: ToolMeta) -> str:
    variables = {**tool.runtime.env, "PORT": str(tool.runtime.internal_port)}
    if refused := check_environment(variables):
        raise ToolRefused(f"env: {refused}")
    env = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    return f"cd {shlex.quote(tool.runtime.container_dir)} && exec env {env} {tool.runtime.entry}"
