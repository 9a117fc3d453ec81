"""`ToolCatalog`: offers the active tools to an app (`App(tools=…)`) and to models.

A call is shown as a tool call of its turn, with the rule that allowed it, its sandbox, and the
pieces of its result as progress. The result is shown as a table if possible, and pictures as
pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from arp.process.sandbox import sandbox_works
from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp.record.processes import RecordedProcess
from arp.tools.errors import ToolAgentError
from arp.tools.faces.pictures import pictures_in, without_pictures
from arp.tools.registry.models import RuntimeType, ToolMeta, ToolStatus
from arp.tools.run.local import has_network
from arp.tools.service import ToolService
from arp.turn.tool import ToolCall, ToolCaller, ToolFailed, ToolOutput, ToolSpec

MAX_ROWS: Final = 1_000
"""Maximum number of rows of a result that is shown as a table."""
MAX_CELL: Final = 500
"""Maximum length of a value that is shown, in characters; the tool's result has the whole value."""
MAX_TEXT: Final = 20_000
"""Maximum length of a result for a model, in characters."""
RULE: Final = "active-tool"
"""Rule that allows a call without a question, because the tool's registration was approved."""


class ToolCatalog:
    """Active tools of a service.

    Args:
        service: Service that calls them.
        asks: Whether a person must allow each call.
    """

    runs_commands = True
    """Always true: tools run code that agents wrote, which could send requests to this server."""

    def __init__(self, service: ToolService, *, asks: bool = False) -> None:
        self._service = service
        self._asks = asks

    def tools(self) -> Sequence[ToolSpec]:
        """Return the active tools."""
        return [
            ToolSpec(tool.tool_id, tool.description or tool.name, tool.input_schema)
            for tool in self._service.registry.tools(ToolStatus.ACTIVE)
        ]

    async def call(self, tool: ToolCall, args: JsonObject, /) -> Json:
        """Carry out a call, and show its result.

        Raises:
            ToolFailed: A person did not allow it, or it failed.
        """
        meta = self._found(tool.name)
        await self._permitted(tool, meta)
        process = self._record_place(tool, meta)

        async def progressed(piece: str) -> None:
            tool.progress(piece[:MAX_CELL])

        try:
            outcome = await self._service.call(tool.name, args, progressed)
        except ToolAgentError as failed:
            if process is not None:
                process.failed(failed.message)
            raise ToolFailed(failed.message) from failed
        if process is not None:
            process.completed(0)
        _record_cost(tool, outcome.result)
        for picture in pictures_in(outcome.result):
            alt = f"{picture.path or 'picture'} from {meta.name}"
            await tool.show_image(picture.content, picture.mime, alt=alt)
        plain = without_pictures(outcome.result)
        shown = component_of_result(plain, meta.name)
        if shown is not None:
            tool.show(shown)
        return outcome.result

    async def run(self, name: str, args: JsonObject, caller: ToolCaller) -> ToolOutput:
        """Carry out a call by a model, which receives `text_of_result` and the pictures.

        Raises:
            ToolFailed: The call failed, or needs a person's approval.
        """
        if self._asks:
            raise ToolFailed(f"{name}: a person has to allow each call, and a model cannot ask")
        meta = self._found(name)
        count = 0

        async def progressed(piece: str) -> None:
            nonlocal count
            count += 1
            caller.progress(piece[:MAX_CELL], float(count), None)

        try:
            outcome = await self._service.call(name, args, progressed)
        except ToolAgentError as failed:
            raise ToolFailed(failed.message) from failed
        plain = without_pictures(outcome.result)
        images = [(picture.content, picture.mime) for picture in pictures_in(outcome.result)]
        component = component_of_result(plain, meta.name)
        return ToolOutput(text_of_result(plain), plain, images, shown=component)

    def _found(self, name: str) -> ToolMeta:
        meta = self._service.registry.find(name)
        if meta is None or meta.status is not ToolStatus.ACTIVE:
            raise ToolFailed(f"there is no active tool {name!r:.60}")
        return meta

    async def _permitted(self, tool: ToolCall, meta: ToolMeta) -> None:
        if not self._asks:
            tool.record.permission(tool.name).evaluated("allow", "rule", RULE)
            return
        title = f"Use {meta.name}?"
        rule = f"Every use of {meta.tool_id} in this session"
        if not await tool.approve(title, rule="tool-use", session_rule=rule):
            raise ToolFailed(tool.denial or f"{meta.name} was not allowed")

    def _record_place(self, tool: ToolCall, meta: ToolMeta) -> RecordedProcess | None:
        """Record where a tool runs and its sandbox; return the process if the call has its own."""
        runtime = meta.runtime
        if runtime.type is RuntimeType.DOCKER:
            name = f"container {runtime.container_id:.12}"
            tool.record("sandbox.applied", {"sandbox": name, "mode": "docker"})
        elif runtime.type is RuntimeType.LOCAL:
            mode = self._service.settings.current.sandbox
            if mode != "off" and sandbox_works():
                network = has_network(meta, self._service.settings.current)
                place = {"sandbox": "bubblewrap", "mode": mode, "network": network}
                tool.record("sandbox.applied", place)
            if not (runtime.host_port or runtime.internal_port):
                return tool.record.process(runtime.entry, cwd=runtime.host_dir)
        return None


def _record_cost(tool: ToolCall, result: Json) -> None:
    """Record the cost of a call, if its result reports one as `cost_usd`."""
    cost = result.get("cost_usd") if isinstance(result, dict) else None
    if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e6:
        used = {"amount": float(cost), "currency": "USD"}
        tool.record("cost.recorded", {"model": tool.name, **used})


def component_of_result(value: Json, title: str) -> Component | None:
    """Return a component for a result: a table for a list of objects, key-values for an object.

    An object with exactly one list of objects is shown as the table of that list. The return value
    is `None` for other results, such as a text or a number, which the tool call shows already.
    """
    rows = value
    if isinstance(value, dict):
        lists = [one for one in value.values() if _is_table(one)]
        rows = lists[0] if len(lists) == 1 else None
    if _is_table(rows):
        headers = list(dict.fromkeys(name for row in rows[:MAX_ROWS] for name in row))
        cells = [[_cell(row.get(name)) for name in headers] for row in rows[:MAX_ROWS]]
        if len(rows) > MAX_ROWS:
            title = f"{title} ({MAX_ROWS:,} of {len(rows):,} rows)"
        return Component("", "table", {"title": title, "headers": headers, "rows": cells})
    if isinstance(value, dict) and value:
        items = [{"key": name, "value": _cell(one)} for name, one in value.items()]
        return Component("", "key-value", {"title": title, "items": items})
    return None


def text_of_result(value: Json) -> str:
    """Return a result for a model: JSON of at most `MAX_TEXT` characters.

    A list of objects is written with its column names once: `{"columns": ["name"], "rows":
    [["tea"]]}`. A long list is reduced to its first rows and the number of the others. Any other
    long text is truncated, with a note.
    """
    if isinstance(value, str):
        return _cut(value)
    most = MAX_ROWS
    text = _compact(value, most)
    while len(text) > MAX_TEXT and most > 1 and _has_table(value):
        # Estimate from the average length of a row, minus 5 %, because lengths differ.
        most = max(1, min(most - 1, most * MAX_TEXT * 95 // (len(text) * 100)))
        text = _compact(value, most)
    return _cut(text)


def _compact(value: Json, most: int) -> str:
    """Return JSON with at most `most` rows in each table."""
    if _is_table(value):
        value = _columns(value, most)
    elif isinstance(value, dict):
        value = {
            name: _columns(one, most) if _is_table(one) else one for name, one in value.items()
        }
    return msgspec.json.encode(value).decode()


def _columns(rows: Json, most: int) -> JsonObject:
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells: list[Json] = [[_cell_told(row.get(name)) for name in names] for row in rows[:most]]
    more = len(rows) - len(cells)
    return {"columns": names, "rows": cells, **({"more_rows": more} if more else {})}


def _cell_told(value: Json) -> Json:
    is_long = isinstance(value, str) and len(value) > MAX_CELL
    return f"{value[:MAX_CELL]}…" if is_long else value


def _has_table(value: Json) -> bool:
    return _is_table(value) or (isinstance(value, dict) and any(map(_is_table, value.values())))


def _cut(text: str) -> str:
    more = len(text) - MAX_TEXT
    return text if more <= 0 else f"{text[:MAX_TEXT]}… ({more} more characters)"


def _is_table(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _cell(value: Json) -> Json:
    if isinstance(value, dict | list):
        value = msgspec.json.encode(value).decode()
    return f"{value[:MAX_CELL]}…" if isinstance(value, str) and len(value) > MAX_CELL else value
