"""`ToolRuntime`: the interface of everything that can run a tool.

`local`, `docker`, `api` and `browser` are its implementations; another one is registered by the
scheme of `RuntimeInfo.entry` (`RuntimeTable.add_scheme`). The scheduler alone calls `start`,
`sleep`, `stop` and `call` of a runtime: it knows when.
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
"""Gets each piece of a result, while the tool works."""

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+-]{1,30}):")


class ToolRuntime(Protocol):
    """Runs tools of one type. Every method may be called for several tools at the same time."""

    async def check(self) -> None:
        """Check that tools can run here.

        Raises:
            RuntimeMissing: Something is missing; the message says what, and how to get it.
        """

    async def start(self, tool: ToolMeta) -> RuntimeInfo:
        """Start a tool, or find that it runs; return when it takes calls.

        Returns:
            The tool's `runtime` as it is now: with its port and its container.

        Raises:
            ToolAgentError: It did not start; nothing of it is left running.

        Cancel: Safe: nothing of it is left running.
        """

    async def call(self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None) -> Json:
        """Call a tool that has been started; return its result.

        Raises:
            ToolAgentError: It failed; the tool may have ended.

        Cancel: Safe: a process that works for this call alone is ended.
        """

    async def healthy(self, tool: ToolMeta) -> None:
        """Check that the tool runs and answers.

        Raises:
            ToolAgentError: It does not; the message says what it answered.
        """

    async def sleep(self, tool: ToolMeta) -> RuntimeInfo:
        """Free what the tool uses, so that `start` brings it back as it was. May be repeated.

        Returns:
            The tool's `runtime` as it is now.
        """

    async def stop(self, tool: ToolMeta) -> RuntimeInfo:
        """End a tool and all that it has started; `start` starts it from nothing. May be repeated.

        Returns:
            The tool's `runtime` as it is now.
        """

    async def aclose(self) -> None:
        """End all tools of this runtime that cannot outlive this process."""


class CallOutcome(msgspec.Struct, frozen=True):
    """The result of a call of a tool; a failed call raises instead."""

    result: Json
    tool_id: str
    """The tool that answered: a fallback has another id than the tool that was called."""
    latency_ms: float
    attempts: int = 1


class HealthAlert(msgspec.Struct, frozen=True):
    """A tool is not healthy any more (`health_alert` of the message bus)."""

    tool_id: str
    container_id: str
    error: str
    last_healthy: str | None
    """ISO 8601 with `Z`; `None`: it never was while this service ran."""


class RuntimeReport(msgspec.Struct, frozen=True):
    """Whether a runtime can be used (`/health/runtimes`)."""

    type: str
    available: bool
    error: str | None = None


class RuntimeTable:
    """The runtimes of a service, by type, and by the scheme of `entry` for further ones.

    Args:
        runtimes: One for each type that can be used.
    """

    def __init__(self, runtimes: Mapping[RuntimeType, ToolRuntime]) -> None:
        self._by_type = dict(runtimes)
        self._by_scheme: dict[str, ToolRuntime] = {}

    def add_scheme(self, scheme: str, runtime: ToolRuntime) -> None:
        """Let a runtime run all tools whose `entry` begins with `scheme:`."""
        self._by_scheme[scheme] = runtime

    def of(self, tool: ToolMeta) -> ToolRuntime:
        """Return the runtime that runs a tool.

        Raises:
            RuntimeMissing: This service has none for it.
        """
        match = _SCHEME.match(tool.runtime.entry)
        if match and match[1] in self._by_scheme:
            return self._by_scheme[match[1]]
        runtime = self._by_type.get(tool.runtime.type)
        if runtime is None:
            raise RuntimeMissing(f"this service runs no {tool.runtime.type} tools")
        return runtime

    async def reports(self) -> list[RuntimeReport]:
        """Return for each runtime whether it can be used, in the order of `RuntimeType`."""
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
