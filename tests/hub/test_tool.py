"""Every tool that is seen to begin is seen to end."""

from __future__ import annotations

import asyncio

import pytest

from arp import ToolFailed, Turn, ui
from arp.protocol.errors import (
    InvalidComponent,
    InvalidPatch,
)
from arp.record.wording import PREVIEW_CHARACTERS
from tests.hub.rig import HeldStore, Renderer, played, running


async def test_tool_shows_that_it_runs_and_how_it_ended() -> None:
    """protocol.md 2.1: `args` is a JSON string; what is shown after it names it."""

    async def agent(turn: Turn) -> None:
        async with turn.tool("query", {"sql": "select 1"}) as tool:
            tool.progress("half")
            tool.result([1])
        turn.show(ui.text("x", id="x"))

    renderer = await played(agent)
    start, end = renderer.box.of("tool_start")[0], renderer.box.of("tool_end")[0]
    assert start["payload"] == {"tool": "query", "args": '{"sql":"select 1"}', "call_id": "t1.1"}
    assert end["payload"] == {"tool": "query", "ok": True, "call_id": "t1.1"}
    assert renderer.box.of("render")[0]["tool_name"] == "query"


async def test_tool_that_raises_is_shown_as_failed_and_the_error_goes_up() -> None:
    """The kind of the error is told; its text is the agent's own."""

    async def agent(turn: Turn) -> None:
        with pytest.raises(KeyError):
            async with turn.tool("lookup", None):
                raise KeyError("secret")
        with pytest.raises(InvalidComponent):
            async with turn.tool("draw", "raw"):
                raise InvalidComponent("no such colour")

    renderer = await played(agent)
    ends = [one["payload"] for one in renderer.box.of("tool_end")]
    assert [(one["ok"], one["error"]) for one in ends] == [
        (False, "KeyError"),
        (False, "no such colour"),
    ]
    assert [one["payload"]["args"] for one in renderer.box.of("tool_start")] == ["{}", '"raw"']
    assert "secret" not in str(renderer.box.messages)


async def test_tool_that_fails_by_its_authors_word_shows_the_word() -> None:
    """`ToolCall.fail`: caught, the agent goes on."""

    async def agent(turn: Turn) -> None:
        try:
            async with turn.tool("query") as tool:
                tool.fail("no table of that name\ud800")
        except ToolFailed as error:
            await turn.say(f"Sorry: {error.message}")

    renderer = await played(agent)
    end = renderer.box.of("tool_end")[0]["payload"]
    assert (end["ok"], end["error"]) == (False, "no table of that name\ufffd")
    assert renderer.box.of("turn")[-1]["status"] == "completed"
    assert renderer.screen.text("t1") == "Sorry: no table of that name\ufffd"


async def test_failed_tool_that_nobody_catches_ends_the_turn_with_its_message() -> None:
    """The author has said it for everyone; every other exception stays in the log."""

    async def agent(turn: Turn) -> None:
        async with turn.tool("query") as tool:
            tool.fail("no table of that name")

    renderer = await played(agent)
    error = renderer.box.of("error")[0]["payload"]
    assert error == {"error": "no table of that name", "code": 18}
    assert renderer.box.of("turn")[-1]["status"] == "failed"


async def test_tool_that_is_cancelled_ends_as_such() -> None:
    """Every tool that began has an end."""

    async def agent(turn: Turn) -> None:
        async with turn.tool("slow"):
            await asyncio.Event().wait()

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("tool_start")
        await renderer.cancel()
        await renderer.ended("t1")
    assert renderer.box.of("tool_end")[0]["payload"]["error"] == "cancelled"


async def test_tool_whose_last_change_is_refused_is_failed() -> None:
    """What it showed was refused: it did not do what it says."""

    async def agent(turn: Turn) -> None:
        with pytest.raises(InvalidPatch):
            async with turn.tool("draw"):
                turn.patch("nobody", "props.content", "?")

    renderer = await played(agent)
    assert renderer.box.of("tool_end")[0]["payload"]["ok"] is False


async def test_confirm_shows_what_it_was_given_and_nothing_more() -> None:
    """Left out, or `None`: the renderer's own words."""

    async def agent(turn: Turn) -> None:
        await turn.confirm("Delete?", "12 rows", id="q", destructive=True, deny_label=None)

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("turn", status="waiting")
    (shown,) = renderer.box.of("render")[0]["components"]
    assert shown["props"] == {
        "title": "Delete?",
        "message": "12 rows",
        "destructive": True,
        "state": "open",
    }


async def test_preview_is_looked_through_before_it_is_cut() -> None:
    """Half a secret at the end of a preview would not look like one."""
    token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"

    async def agent(turn: Turn) -> None:
        async with turn.tool("read", {"api_key": "k"}) as tool:
            tool.result("x" * (PREVIEW_CHARACTERS - 21) + f" {token} " + "y" * 10_000)

    store = HeldStore()
    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        facts = await store.facts()
    kept = {fact.type: fact.payload for fact in facts}
    assert kept["tool.args"] == {"tool": "read", "args": '{"api_key":"[redacted]"}'}
    preview = kept["tool.result"]["preview"]
    assert preview.endswith("x ghp_[redacted] yyyyy")
    assert len(preview) == PREVIEW_CHARACTERS
    assert kept["tool.result"]["characters"] == PREVIEW_CHARACTERS - 21 + 42 + 10_000
    told = [fact.payload for fact in facts if fact.type == "output.redacted"]
    assert told == [
        {"findings": [{"rule": "secret-field", "count": 1}]},
        {"findings": [{"rule": "github-token", "count": 1}]},
    ]
