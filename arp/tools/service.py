"""`ToolService`: all parts of the Tool Agent except those that build tools."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Self, TypeAlias

import msgspec

from arp.protocol.json_value import JsonObject
from arp.tools.belongings import Belongings, ToolRemoval
from arp.tools.budget import Budget, Reservation
from arp.tools.clock import SYSTEM_CLOCK, Clock
from arp.tools.errors import (
    DataFileDamaged,
    RuntimeMissing,
    ToolAgentError,
    ToolCallFailed,
    ToolConflict,
)
from arp.tools.projects.projects import LocalProjects
from arp.tools.registry.models import RuntimeType, ToolMeta, ToolStatus
from arp.tools.registry.registry import ToolRegistry
from arp.tools.registry.states import LifeEvent, with_life, with_state
from arp.tools.run.api import ApiRuntime
from arp.tools.run.browser import BrowserRuntime
from arp.tools.run.containers import ContainerTable
from arp.tools.run.docker import DockerEngine
from arp.tools.run.docker_runtime import DockerRuntime
from arp.tools.run.local import LocalRuntime
from arp.tools.run.ports import Ports
from arp.tools.run.resources import Resources, ThisMachine
from arp.tools.run.runtime import CallOutcome, OnChunk, RuntimeTable, ToolRuntime
from arp.tools.run.scheduler import OnAlert, Scheduler
from arp.tools.settings import LiveSettings

logger = logging.getLogger(__name__)

OnRemoved: TypeAlias = Callable[[ToolMeta], Awaitable[None]]


class ToolService:
    """Registry, containers, runtimes, scheduler, resources and budget of one data directory.

    Each command that starts, stops, registers or removes a tool holds the lock of its id
    (`_commands`), so commands for one tool run one after the other.

    Args:
        settings: Settings; `None` means those of the environment.
        runtimes: Runtimes; `None` means `local`, `docker`, `api` and `browser`.
        clock: Source of the time.
    """

    def __init__(
        self,
        settings: LiveSettings | None = None,
        *,
        runtimes: Mapping[RuntimeType, ToolRuntime] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.settings = settings or LiveSettings()
        data_dir = self.settings.data_dir
        self.registry = ToolRegistry(data_dir)
        self.containers = ContainerTable(data_dir, clock)
        self.budget = Budget(self.settings, clock)
        self.resources = Resources(ThisMachine(data_dir))
        self.ports = Ports(
            lambda: self.settings.current.docker_port_start, lambda: self.containers.ports()
        )
        self.projects = LocalProjects(self.settings)
        self.docker = DockerEngine(
            self.settings, self.containers, self.ports, self._containers_of_tools
        )
        own: Mapping[RuntimeType, ToolRuntime] = {
            RuntimeType.LOCAL: LocalRuntime(self.projects, self.ports, self.settings),
            RuntimeType.DOCKER: DockerRuntime(self.docker, self.settings),
            RuntimeType.API: ApiRuntime(self.settings),
            RuntimeType.BROWSER: BrowserRuntime(self.settings),
        }
        self.runtimes = RuntimeTable(own if runtimes is None else runtimes)
        self.scheduler = Scheduler(
            self.registry, self.runtimes, self.settings, self.resources, clock
        )
        self.scheduler.on_tick(self.docker.clean_up)
        self.belongings = Belongings(self.registry, self.projects, self.containers, self.docker)
        self._commands: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._on_removed: list[OnRemoved] = []

    async def start(self) -> None:
        """Correct the records that the previous run left, and begin health checks and clean-up.

        Raises:
            DataFileDamaged: A file cannot be read; the message says what to do. If only the budget
                file is damaged, only spending is refused.
            InvalidToolMeta: `config.json` is invalid, so the limits are unknown.
        """
        self.settings.check()
        self._commands.clear()  # locks are bound to an event loop, and this may be a new one
        for left in self._recovered():
            logger.warning(
                "$%s to %s is reserved since %s, and it is unknown whether it was paid: "
                "arp tools budget --settle or --cancel %s",
                left.amount_usd,
                left.provider,
                left.at.isoformat(timespec="seconds"),
                left.id,
            )
        for name in await asyncio.to_thread(self.projects.clean_up):
            logger.warning("project %s was not finished when its maker ended; it is removed", name)
        for tool in self.registry.tools(ToolStatus.BUILDING):
            self.set_life(tool.tool_id, "fail")  # its build ended with the previous service
        await self.scheduler.start()

    def _recovered(self) -> list[Reservation]:
        """Return the remaining reservations; empty if the budget cannot be read.

        Nothing is spent while the budget cannot be read.
        """
        try:
            return self.budget.recover()
        except DataFileDamaged as damaged:
            logger.error("nothing can be spent: %s", damaged.message)
            return []

    async def aclose(self) -> None:
        """End all tools that cannot outlive this process. May be repeated."""
        await self.scheduler.aclose()
        await self.runtimes.aclose()
        await self.docker.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def on_alert(self, callback: OnAlert) -> None:
        """Call `callback` when a tool is no longer healthy."""
        self.scheduler.on_alert(callback)

    def on_removed(self, callback: OnRemoved) -> None:
        """Call `callback` after a tool was removed, so that records about it can be dropped."""
        self._on_removed.append(callback)

    async def call(
        self, tool_id: str, params: JsonObject, on_chunk: OnChunk | None = None
    ) -> CallOutcome:
        """Check parameters, start the tool if it does not run, call it, and check the result.

        If the tool fails, its `fallback_strategy` is followed. An error of the caller is raised at
        once.

        Args:
            tool_id: Id of an active tool.
            params: Parameters, checked against the tool's `input_schema`.
            on_chunk: Receives pieces of the result as they arrive, if the tool sends any.

        Raises:
            ToolAgentError: One class for each kind of failure (see `errors`).

        Cancel: Safe: a process that serves only this call is ended.
        """
        return await self.scheduler.call(tool_id, params, on_chunk)

    async def activate(self, tool: ToolMeta, replace: bool = False) -> ToolMeta:
        """Register a tool, start it, check its health, and make it active.

        Args:
            tool: Tool to register; its status, state and statistics are ignored.
            replace: Whether it may replace a tool with the same id and keep its statistics.

        Returns:
            The tool as stored in the registry: active, and running unless it is stateless.

        Raises:
            ToolConflict: The id is taken, or the tool to replace is disabled or being built.
            ToolAgentError: The tool did not start or is unhealthy. It is stopped and not
                registered. An earlier tool with this id is registered as before, but stopped.
        """
        async with self._commands[tool.tool_id]:
            before = self.registry.find(tool.tool_id)
            if before is not None:
                if not replace:
                    raise ToolConflict(f"tool_id {tool.tool_id} is taken; choose another one")
                with_life(before, "build")  # raises if the tool's status does not permit a build
                await self.scheduler.stop_tool(tool.tool_id)
            self.registry.add(_built(tool, before), replace=True)
            try:
                await self._started(tool.tool_id, "was started")
            except BaseException:
                await self._undo_activation(tool.tool_id, before)
                raise
            return self.set_life(tool.tool_id, "activate")

    async def _started(self, tool_id: str, how: str) -> None:
        """Start a tool and check its health; a stateless one is stopped afterwards.

        Raises:
            ToolAgentError: It did not start, or is unhealthy.
        """
        await self.scheduler.start_tool(tool_id)
        problem = await self.scheduler.check_now(tool_id)
        if problem is not None:
            raise ToolCallFailed(f"tool {tool_id} {how} and is not healthy: {problem}")
        await self.scheduler.end_stateless(tool_id)

    def set_life(self, tool_id: str, event: LifeEvent) -> ToolMeta:
        """Apply an event of the life cycle (`states.LIFE`) to a tool; return the tool.

        Raises:
            ToolConflict: The tool's status does not permit the event.
        """
        return self.registry.update(tool_id, lambda tool: with_life(tool, event))

    async def restart(self, tool_id: str) -> ToolMeta:
        """Stop a tool, start it, check its health, and return it.

        Raises:
            ToolConflict: A person disabled it.
            ToolAgentError: It did not start, or is unhealthy.
        """
        async with self._commands[tool_id]:
            if self.registry.get(tool_id).status is ToolStatus.INACTIVE:
                raise ToolConflict(f"tool {tool_id} was disabled by a person, so it does not start")
            await self.scheduler.stop_tool(tool_id)
            await self._started(tool_id, "was started again")
            return self.registry.get(tool_id)

    # -- commands of people ----------------------------------------------------------------------

    async def stop(self, tool_id: str) -> ToolMeta:
        """Stop a tool when its calls have ended, and return it. Its next call starts it again.

        Raises:
            UnknownTool: No tool has this id.

        Cancel: Safe: it keeps running, or has stopped.
        """
        async with self._command(tool_id):
            return await self.scheduler.stop_when_idle(tool_id)

    async def disable(self, tool_id: str) -> ToolMeta:
        """Refuse new calls of a tool, stop it when its calls have ended, and return it.

        It stays disabled until `enable`, even after a restart of the service, and no task registers
        or repairs it. May be repeated.

        Raises:
            UnknownTool: No tool has this id.
            ToolConflict: The tool is neither active nor disabled.

        Cancel: Safe: the tool may be disabled already. Then the scheduler stops it once it is idle.
        """
        async with self._command(tool_id) as tool:
            if tool.status is not ToolStatus.INACTIVE:
                self.set_life(tool_id, "disable")
            return await self.scheduler.stop_when_idle(tool_id)

    async def enable(self, tool_id: str) -> ToolMeta:
        """Make a disabled tool active again, and return it. May be repeated.

        Raises:
            UnknownTool: No tool has this id.
            ToolConflict: The tool is in the status `staging` or `building`; a task must register
                it.
        """
        async with self._command(tool_id) as tool:
            return tool if tool.status is ToolStatus.ACTIVE else self.set_life(tool_id, "enable")

    async def remove(self, tool_id: str) -> ToolRemoval:
        """Remove a tool with its files and its container, when its calls have ended.

        Its costs stay in the budget, and its tasks in the list of tasks. If the removal is
        interrupted, the tool is disabled and may be removed again.

        Raises:
            UnknownTool: No tool has this id.
            ToolCallFailed: Some of its files cannot be removed.

        Cancel: The tool is disabled, and may be removed again.
        """
        async with self._command(tool_id) as tool:
            if tool.status is ToolStatus.ACTIVE:
                self.set_life(tool_id, "disable")
            # A container engine that does not answer must not prevent the removal.
            with suppress(RuntimeMissing):
                await self.scheduler.stop_when_idle(tool_id)
            removal = await self.belongings.remove_of_tool(tool)
            self.registry.remove(tool_id)
            self.scheduler.forget(tool_id)
            if tool_id in self.settings.current.network_tools:
                removal.kept.append(f"setting network_tools: a new tool {tool_id} has the network")
            for callback in self._on_removed:
                try:
                    await callback(tool)
                except Exception:  # the tool is removed already; the other callbacks must still run
                    logger.exception("tool %s is still remembered", tool_id)
            return removal

    async def switch_off(self, tool_id: str) -> ToolMeta:
        """Stop a tool, even during calls, because a task changes its program; return it.

        Raises:
            UnknownTool: No tool has this id.
        """
        async with self._command(tool_id) as tool:
            if tool.status is ToolStatus.ACTIVE:
                self.set_life(tool_id, "change")
            return await self.scheduler.stop_tool(tool_id)

    @asynccontextmanager
    async def _command(self, tool_id: str) -> AsyncIterator[ToolMeta]:
        """Yield a tool under its lock; no other command starts, stops or removes it meanwhile.

        Raises:
            UnknownTool: No tool has this id.
        """
        self.registry.get(tool_id)  # raises for an unknown id, which must not get a lock
        async with self._commands[tool_id]:
            yield self.registry.get(tool_id)

    def _containers_of_tools(self) -> list[str]:
        return [one.runtime.container_id for one in self.registry if one.runtime.container_id]

    async def _undo_activation(self, tool_id: str, before: ToolMeta | None) -> None:
        """Stop a tool after a failed activation, and restore the earlier entry of the registry."""
        try:
            await self.scheduler.stop_tool(tool_id)
        except ToolAgentError:
            logger.exception("tool %s could not be stopped", tool_id)
        if before is None:
            self.registry.remove(tool_id)
        else:
            self.registry.add(with_state(before, "stop"), replace=True)


def _built(tool: ToolMeta, before: ToolMeta | None) -> ToolMeta:
    """Return a tool as it is during a build: it does not run and cannot be called."""
    stopped = with_state(tool, "stop")
    stats = tool.stats if before is None else before.stats
    return msgspec.structs.replace(stopped, status=ToolStatus.BUILDING, stats=stats)
