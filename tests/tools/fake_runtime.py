"""A runtime of values, for what the scheduler does; and clocks that tests set."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.tools.clock import Clock
from arp.tools.errors import ToolCallFailed
from arp.tools.registry.models import (
    ResourceLimits,
    RuntimeInfo,
    RuntimeType,
    SchedulingMode,
    ToolMeta,
    ToolScheduling,
    ToolStatus,
)
from arp.tools.registry.registry import ToolRegistry
from arp.tools.run.resources import Resources
from arp.tools.run.runtime import OnChunk, RuntimeTable
from arp.tools.run.scheduler import Scheduler
from arp.tools.settings import LiveSettings, ToolSettings


class SetClock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.at = datetime(2026, 3, 20, 10, tzinfo=UTC)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds
        self.at += timedelta(seconds=seconds)

    def clock(self) -> Clock:
        """Return it as the code under test takes it."""
        return Clock(now=lambda: self.at, monotonic=lambda: self.seconds)


class ValueRuntime:
    """Runs tools as values; what is called is written down."""

    def __init__(self, clock: SetClock) -> None:
        self._clock = clock
        self.running: set[str] = set()
        self.most = 0
        """So many ran at the same time."""
        self.done: list[str] = []
        self.fails: dict[str, list[Exception]] = {}
        """Errors of the next calls of a tool."""
        self.start_fails: dict[str, Exception] = {}
        self.ill: dict[str, str] = {}
        """What a health check says."""
        self.waits: dict[str, asyncio.Event] = {}
        """Calls wait for these."""

    async def check(self) -> None:
        """See `ToolRuntime`."""

    async def start(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime`."""
        if tool.tool_id not in self.running:
            self.done.append(f"start {tool.tool_id}")
            if tool.tool_id in self.start_fails:
                raise self.start_fails[tool.tool_id]
            await asyncio.sleep(0)
            self.running.add(tool.tool_id)
            self.most = max(self.most, len(self.running))
        return msgspec.structs.replace(tool.runtime, host_port=9000)

    async def call(self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None) -> Json:
        """See `ToolRuntime`."""
        assert tool.tool_id in self.running
        self._clock.advance(0.25)
        if on_chunk is not None:
            await on_chunk("working")
        if tool.tool_id in self.waits:
            await self.waits[tool.tool_id].wait()
        if self.fails.get(tool.tool_id):
            raise self.fails[tool.tool_id].pop(0)
        return {"by": tool.tool_id, **params}

    async def healthy(self, tool: ToolMeta) -> None:
        """See `ToolRuntime`."""
        if tool.tool_id in self.ill:
            raise ToolCallFailed(self.ill[tool.tool_id])
        if tool.tool_id not in self.running:
            raise ToolCallFailed("it does not run")

    async def sleep(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime`."""
        return await self._end("sleep", tool)

    async def stop(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime`."""
        return await self._end("stop", tool)

    async def _end(self, word: str, tool: ToolMeta) -> RuntimeInfo:
        if tool.tool_id in self.running:
            self.done.append(f"{word} {tool.tool_id}")
            self.running.discard(tool.tool_id)
        return msgspec.structs.replace(tool.runtime, host_port=0)

    async def aclose(self) -> None:
        """See `ToolRuntime`."""
        self.running.clear()


class Scheduled:
    """A scheduler with tools that are values."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.clock = SetClock()
        self.runtime = ValueRuntime(self.clock)
        self.settings = LiveSettings(ToolSettings(data_dir=folder, **settings))
        self.registry = ToolRegistry(folder)
        self.resources = Resources(_Large())
        self.scheduler = self.again()
        self.alerts: list[Any] = []
        self.scheduler.on_alert(self._take)

    def again(self) -> Scheduler:
        """Return a scheduler as after a restart of the service."""
        return Scheduler(
            self.registry,
            RuntimeTable(dict.fromkeys(RuntimeType, self.runtime)),
            self.settings,
            self.resources,
            self.clock.clock(),
        )

    def add(self, tool_id: str, mode: SchedulingMode = SchedulingMode.COLD, **changes: Any) -> None:
        """Add an active tool."""
        idle_s = changes.pop("idle_timeout_s", 300)
        kind = changes.pop("type", RuntimeType.LOCAL)
        limits = changes.pop("limits", ResourceLimits(cpu="0.1", memory_mb=10))
        status = changes.pop("status", ToolStatus.ACTIVE)
        self.registry.add(
            ToolMeta(
                tool_id,
                tool_id,
                status=status,
                scheduling=ToolScheduling(mode=mode, idle_timeout_s=idle_s),
                runtime=RuntimeInfo(type=kind, resource_limits=limits),
                **changes,
            )
        )

    def state(self, tool_id: str) -> str:
        """Return what a tool does, as the registry says."""
        return str(self.registry.get(tool_id).scheduling.state)

    async def _take(self, alert: Any) -> None:
        self.alerts.append(alert)


class _Large:
    """A machine on which everything has room."""

    def system(self) -> Any:
        from arp.tools.registry.models import SystemInfo

        return SystemInfo(64, 0.0, 64_000, 64_000, 0.0, 1.0, 1.0)

    def gpu_memory_mb(self) -> float:
        return 0.0
