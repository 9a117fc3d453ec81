"""`ToolService`: everything of the Tool Agent that is below the message bus, put together."""

from __future__ import annotations

from collections.abc import Mapping

from arp.protocol.json_value import JsonObject
from arp.tools.clock import SYSTEM_CLOCK, Clock
from arp.tools.models import RuntimeType
from arp.tools.registry import ToolRegistry
from arp.tools.runtime import CallOutcome, OnChunk, RuntimeTable, ToolRuntime
from arp.tools.settings import LiveSettings


class ToolService:
    """Registry, containers, runtimes, scheduler, resources and budget of one data directory.

    Args:
        settings: `None`: those of the environment.
        runtimes: `None`: `local`, `docker`, `api` and `browser`.
        clock: What time it is.
    """

    def __init__(
        self,
        settings: LiveSettings | None = None,
        *,
        runtimes: Mapping[RuntimeType, ToolRuntime] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.settings = settings or LiveSettings()
        self.registry = ToolRegistry(self.settings.data_dir)
        self.runtimes = RuntimeTable(runtimes or {})

    async def start(self) -> None:
        """Bring the registry in line with what runs, and begin health checks and clean-up."""

    async def aclose(self) -> None:
        """End all tools that would not outlive us."""

    async def call(
        self, tool_id: str, params: JsonObject, on_chunk: OnChunk | None = None
    ) -> CallOutcome:
        """Check parameters, start the tool if it does not run, call it, check the result.

        Args:
            tool_id: An active tool.
            params: Checked against the tool's `input_schema`.
            on_chunk: Gets pieces of the result while the tool works, if it has `stream_support`.

        Raises:
            ToolAgentError: One class for each way in which it can fail (see `errors`).

        Cancel: Safe: a process that works for this call alone is ended.
        """
        raise NotImplementedError
