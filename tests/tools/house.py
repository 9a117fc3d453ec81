"""A service whose tools are functions of this process, for tests of what stands on the service."""

from __future__ import annotations

import base64
import io
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from PIL import Image

from arp.protocol.json_value import Json, JsonObject
from arp.tools.clock import SYSTEM_CLOCK, Clock
from arp.tools.errors import ToolCallFailed
from arp.tools.registry.models import (
    RuntimeInfo,
    RuntimeType,
    SchedulingMode,
    ToolMeta,
    ToolScheduling,
    ToolStatus,
)
from arp.tools.run.runtime import OnChunk
from arp.tools.service import ToolService
from arp.tools.settings import LiveSettings, ToolSettings

Function = Callable[[JsonObject, OnChunk | None], Awaitable[Json]]


class FunctionTools:
    """A `ToolRuntime` that calls functions by the id of the tool."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.started: list[str] = []
        self.sick: dict[str, str] = {}

    async def check(self) -> None:
        """Function tools always run."""

    async def start(self, tool: ToolMeta) -> RuntimeInfo:
        self.started.append(tool.tool_id)
        return tool.runtime

    async def call(self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None) -> Json:
        return await self.functions[tool.tool_id](params, on_chunk)

    async def healthy(self, tool: ToolMeta) -> None:
        if tool.tool_id in self.sick:
            raise ToolCallFailed(self.sick[tool.tool_id])

    async def sleep(self, tool: ToolMeta) -> RuntimeInfo:
        return tool.runtime

    async def stop(self, tool: ToolMeta) -> RuntimeInfo:
        return tool.runtime

    async def aclose(self) -> None:
        """Nothing runs."""


def settings_in(data_dir: Path, **more: object) -> LiveSettings:
    """Settings that read no environment."""
    return LiveSettings(ToolSettings.model_validate({"data_dir": data_dir, **more}))


def house(
    data_dir: Path, clock: Clock = SYSTEM_CLOCK, **more: Any
) -> tuple[ToolService, FunctionTools]:
    """A service with the tools `add` (checked), `count` (streams), `fail` and `picture`."""
    runtime = FunctionTools()
    settings = settings_in(data_dir, **more)
    service = ToolService(settings, runtimes={RuntimeType.API: runtime}, clock=clock)

    async def add(params: JsonObject, on_chunk: OnChunk | None) -> Json:
        return {"sum": params["a"] + params["b"]}

    async def count(params: JsonObject, on_chunk: OnChunk | None) -> Json:
        for number in range(3):
            if on_chunk is not None:
                await on_chunk(f"{number}\n")
        return {"counted": 3}

    async def fail(params: JsonObject, on_chunk: OnChunk | None) -> Json:
        raise ToolCallFailed("the disk is full")

    async def picture(params: JsonObject, on_chunk: OnChunk | None) -> Json:
        return {"image": f"data:image/png;base64,{base64.b64encode(png()).decode()}"}

    async def rows(params: JsonObject, on_chunk: OnChunk | None) -> Json:
        return {"rows": [{"name": "tea", "count": 3}, {"name": "jam", "count": 0}]}

    for function in (add, count, fail, picture, rows):
        runtime.functions[function.__name__] = function
        service.registry.add(tool_named(function.__name__), replace=True)
    return service, runtime


NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


def tool_named(tool_id: str, status: ToolStatus = ToolStatus.ACTIVE) -> ToolMeta:
    """A tool that a function carries out."""
    return ToolMeta(
        tool_id,
        tool_id.title(),
        "numbers" if tool_id in ("add", "count") else "other",
        f"Does {tool_id}.",
        input_schema=NUMBERS if tool_id == "add" else {"type": "object"},
        stream_support=tool_id == "count",
        runtime=RuntimeInfo(RuntimeType.API, "https://tools.example.org"),
        scheduling=ToolScheduling(SchedulingMode.STATELESS),
        status=status,
    )


def png(width: int = 3, height: int = 2) -> bytes:
    """A small picture."""
    out = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(out, "PNG")
    return out.getvalue()
