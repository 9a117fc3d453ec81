"""`ToolRuntime`: the interface of everything that can run a tool.

It is implemented by `local`, `docker_runtime`, `api` and `browser`. A further runtime is registered
for a scheme of `RuntimeInfo.entry` (`RuntimeTable.add_scheme`). Only the scheduler calls `start`,
`sleep`, `stop` and `call` of a runtime, because it decides when a tool runs.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeAlias

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.tools.errors import RuntimeMissing, ToolAgentError
from arp.tools.registry.models import RuntimeInfo, RuntimeType, ToolMeta

OnChunk: TypeAlias = Callable[[str], Awaitable[None]]
"""Receives each piece of a result while the tool works."""

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+-]{1,30}):")


class ToolRuntime(Protocol):
    """Runs tools of one type. Each method may be called for several tools at the same time."""

    async def check(self) -> None:
        """Check that tools can run here.

        Raises:
            RuntimeMissing: A requirement is missing; the message names it and how to install it.
        """

    async def start(self, tool: ToolMeta) -> RuntimeInfo:
        """Start a tool unless it runs, and return when it accepts calls.

        Returns:
            The current `runtime` of the tool, with its port and its container.

        Raises:
            ToolAgentError: The tool did not start, and none of its processes runs.

        Cancel: Safe: none of its processes runs.
        """

    async def call(self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None) -> Json:
        """Call a started tool and return its result.

        Raises:
            ToolAgentError: The call failed; the tool may have ended.

        Cancel: Safe: a process that serves only this call is ended.
        """

    async def healthy(self, tool: ToolMeta) -> None:
        """Check that the tool runs and answers.

        Raises:
            ToolAgentError: The tool is not healthy; the message says why.
        """

    async def sleep(self, tool: ToolMeta) -> RuntimeInfo:
        """Free the resources of a tool, but keep what the next `start` needs. May be repeated.

        Returns:
            The current `runtime` of the tool.
        """

    async def stop(self, tool: ToolMeta) -> RuntimeInfo:
        """End a tool and all processes that it has started; `start` begins afresh. May be repeated.

        Returns:
            The current `runtime` of the tool.
        """

    async def aclose(self) -> None:
        """End all tools of this runtime that cannot outlive this process."""


class CallOutcome(msgspec.Struct, frozen=True):
    """Result of a successful call of a tool."""

    result: Json
    tool_id: str
    """Id of the tool that answered; a fallback has another id than the tool that was called."""
    latency_ms: float
    attempts: int = 1


class HealthAlert(msgspec.Struct, frozen=True):
    """Alert that a tool is no longer healthy (`health_alert` of the interface document)."""

    tool_id: str
    container_id: str
    error: str
    last_healthy: str | None
    """Time in ISO 8601 with `Z`; `None` if it was never healthy while this service ran."""


class RuntimeReport(msgspec.Struct, frozen=True):
    """Availability of a runtime (`/health/runtimes`)."""

    type: str
    available: bool
    error: str | None = None


class RuntimeTable:
    """Runtimes of a service: one for each type, and further ones for schemes of `entry`.

    Args:
        runtimes: Runtime for each type that can be used.
    """

    def __init__(self, runtimes: Mapping[RuntimeType, ToolRuntime]) -> None:
        self._by_type = dict(runtimes)
        self._by_scheme: dict[str, ToolRuntime] = {}

    def add_scheme(self, scheme: str, runtime: ToolRuntime) -> None:
        """Register a runtime for all tools with an `entry` that begins with `scheme:`."""
        self._by_scheme[scheme] = runtime

    def of(self, tool: ToolMeta) -> ToolRuntime:
        """Return the runtime that runs a tool.

        Raises:
            RuntimeMissing: This service has no runtime for it.
        """
        match = _SCHEME.match(tool.runtime.entry)
        if match and match[1] in self._by_scheme:
            return self._by_scheme[match[1]]
        runtime = self._by_type.get(tool.runtime.type)
        if runtime is None:
            raise RuntimeMissing(f"this service runs no {tool.runtime.type} tools")
        return runtime

    async def reports(self) -> list[RuntimeReport]:
        """Return the availability of the runtimes: first by type, then by scheme."""
        reports = []
        named = [(str(kind), self._by_type[kind]) for kind in RuntimeType if kind in self._by_type]
        for name, runtime in [*named, *self._by_scheme.items()]:
            try:
                await runtime.check()
            except ToolAgentError as error:
                reports.append(RuntimeReport(name, False, error.message))
            else:
                reports.append(RuntimeReport(name, True))
        return reports

    async def aclose(self) -> None:
        """Close all runtimes."""
        for runtime in [*self._by_type.values(), *self._by_scheme.values()]:
            await runtime.aclose()
