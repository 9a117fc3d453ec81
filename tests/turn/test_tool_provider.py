"""Tools of the app: listed with their schemas, called by name, shown and recorded as any tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from arp import App, ToolFailed, ToolProvider, ToolSpec, Turn
from arp.protocol.json_value import Json, JsonObject
from arp.turn.tool import ToolCall
from tests.hub.rig import HeldStore, Renderer, played, running

SEARCH = ToolSpec(
    "search",
    "Finds rows.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
DELETE = ToolSpec("delete", "Deletes a row.")


class Registry:
    """A provider of two tools."""

    def __init__(self) -> None:
        self.specs = [SEARCH, DELETE]

    def tools(self) -> Sequence[ToolSpec]:
        """Return what there is."""
        return self.specs

    async def call(self, tool: ToolCall, args: JsonObject) -> Json:
        """Searches, or deletes where somebody allows it."""
        if tool.name == "delete":
            if not await tool.approve("Delete the row?", rule="deleting-needs-permission"):
                tool.fail("nobody allowed it")
            return None
        if "query" not in args:
            tool.fail("query: missing")
        tool.progress("searching", done=1, total=2)
        tool.record("context.resolved", {"tokens": 1})
        found: JsonObject = {"rows": [args["query"]]}
        args["query"] = "changed"
        return found


async def run(agent: Any, provider: ToolProvider | None) -> tuple[Renderer, list[Any]]:
    """Runs a turn in an app with tools, and gives what was seen and recorded; says yes once."""
    store = HeldStore()
    async with running(agent, store=store, tools=provider) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        facts = await store.facts()
    return renderer, facts


async def test_tools_are_listed_with_description_and_schema() -> None:
    seen: list[Sequence[ToolSpec]] = []

    async def agent(turn: Turn) -> None:
        seen.append(turn.tools)

    await run(agent, Registry())
    await run(agent, None)
    assert seen == [[SEARCH, DELETE], ()]


async def test_call_is_seen_and_recorded_as_a_tool_with_what_its_provider_tells_of_it() -> None:
    results: list[Json] = []
    args: JsonObject = {"query": "x"}

    async def agent(turn: Turn) -> None:
        results.append(await turn.use("search", args))

    renderer, facts = await run(agent, Registry())
    assert results == [{"rows": ["x"]}]
    assert args == {"query": "x"}, "the provider has a copy of its own"
    (started,) = renderer.box.of("tool_start")
    assert started["payload"] == {"tool": "search", "args": '{"query":"x"}', "call_id": "t1.1"}
    assert renderer.box.of("tool_end")[0]["payload"]["ok"] is True
    of_call = [fact.type for fact in facts if fact.tool_call_id == "t1.1"]
    assert of_call == [
        "tool.started",
        "tool.args",
        "tool.progress",
        "context.resolved",
        "tool.result",
    ]
    assert facts[-2].payload["preview"] == '{"rows":["x"]}'


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("search", "query: missing"),
        ("sort", "no tool 'sort'. Available: search, delete."),
    ],
)
async def test_call_that_fails_is_seen_as_failed_and_raises(name: str, told: str) -> None:
    async def agent(turn: Turn) -> None:
        with pytest.raises(ToolFailed, match=told):
            await turn.use(name)
        await turn.say("on")

    renderer, facts = await run(agent, Registry())
    assert renderer.screen.text("t1") == "on"
    (failed,) = [fact for fact in facts if fact.type == "tool.failed"]
    assert (failed.payload["tool"], failed.payload["error"]) == (name, told)


async def test_app_without_tools_has_none_to_call() -> None:
    async def agent(turn: Turn) -> None:
        await turn.use("search", {"query": "x"})

    renderer = await played(agent)
    (error,) = renderer.box.of("error")
    assert error["payload"]["error"] == "no tool 'search'. Available: none."


async def test_provider_asks_for_permission_in_the_call() -> None:
    async def agent(turn: Turn) -> None:
        await turn.use("delete", {"row": 1})

    async with running(agent, tools=Registry()) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("turn", turn_id="t1", status="waiting")
        await renderer.send("action", {"action": "deny"}, source_component="t1-1")
        assert await renderer.ended("t1") == "failed"
    assert renderer.box.of("error")[-1]["payload"]["error"] == "nobody allowed it"


def test_app_hands_its_tools_to_the_server_and_refuses_what_is_no_provider() -> None:
    registry = Registry()
    assert App(tools=registry).served().tools is registry
    with pytest.raises(TypeError, match=r"tools: expected a ToolProvider, got list"):
        App(tools=[SEARCH])  # type: ignore[arg-type]
