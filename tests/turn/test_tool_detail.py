"""What renderers with the feature `tool-detail` are sent of a tool: progress, result, duration."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from arp import Turn
from arp.live.settings import HubSettings
from arp.protocol.errors import InvalidPatch
from arp.protocol.json_value import JsonObject
from arp.protocol.limits import Limits, RendererLimits
from tests.hub.rig import FEATURES, HeldStore, Renderer, played, running, settled
from tests.support.restoring import restore

DETAIL = [*FEATURES, "tool-detail"]


def ends(renderer: Renderer) -> list[JsonObject]:
    return [one["payload"] for one in renderer.box.of("tool_end")]


async def looks(turn: Turn) -> None:
    async with turn.tool("look", {"n": 3}) as tool:
        tool.progress("opening")
        tool.progress("reading", done=1, total=3)
        tool.result({"rows": [1, 2]})


async def test_progress_result_and_duration_go_to_who_asks_for_them() -> None:
    """protocol.md 2.1."""
    renderer = await played(looks, features=DETAIL)
    assert [one["payload"] for one in renderer.box.of("tool_progress")] == [
        {"call_id": "t1.1", "text": "opening"},
        {"call_id": "t1.1", "text": "reading", "done": 1, "total": 3},
    ]
    (end,) = ends(renderer)
    assert 0 <= end.pop("duration_ms") < 60_000
    assert end == {"tool": "look", "ok": True, "call_id": "t1.1", "result": '{"rows":[1,2]}'}


async def test_nobody_else_is_sent_them() -> None:
    """Optional additions: older renderers get what they knew."""
    renderer = await played(looks)
    assert renderer.box.of("tool_progress") == []
    assert ends(renderer) == [{"tool": "look", "ok": True, "call_id": "t1.1"}]


async def test_who_comes_later_is_sent_the_newest_progress_and_then_the_result() -> None:
    """A screen equals one that was there all the time, by snapshot and by catch-up."""
    told, released = asyncio.Event(), asyncio.Event()

    async def agent(turn: Turn) -> None:
        async with turn.tool("look") as tool:
            tool.progress("opening", done=0, total=2)
            tool.progress("reading", done=1, total=2)
            told.set()
            await released.wait()
            tool.result("found")

    async with running(agent) as hub:
        first = await Renderer(hub, features=DETAIL).join()
        await first.say("go")
        await told.wait()
        await first.box.until(lambda: len(first.box.of("tool_progress")) == 2)
        late = await Renderer(hub, features=DETAIL).join()
        await late.box.has("tool_progress")
        assert [one["payload"]["text"] for one in late.box.of("tool_progress")] == ["reading"]
        assert late.screen.canonical() == first.screen.canonical()
        released.set()
        await first.ended("t1")
        await late.ended("t1")
        latest = await Renderer(hub, features=DETAIL).join()
        await latest.ended("t1")
    assert latest.box.of("tool_progress") == []
    assert late.screen.canonical() == first.screen.canonical() == latest.screen.canonical()
    assert latest.screen.turns["t1"].tools[0].result == "found"
    shown = {one.screen.turns["t1"].tools[0].duration_ms for one in (first, late, latest)}
    assert len(shown) == 1  # the same for everybody


async def test_a_long_result_is_a_preview_and_the_address_of_the_whole() -> None:
    async def agent(turn: Turn) -> None:
        async with turn.tool("read it/all") as tool:
            tool.result("語" * 3_000)

    renderer = await played(agent, features=DETAIL)
    (end,) = ends(renderer)
    result = end["result"]
    assert isinstance(result, str)
    assert result == "語" * 681 + "…"
    assert str(end["result_ref"]).startswith("/_api/blobs/scw/")
    assert str(end["result_ref"]).endswith("/read-it-all.txt")


async def test_a_result_that_cannot_be_kept_whole_says_that_it_is_cut() -> None:
    async def agent(turn: Turn) -> None:
        async with turn.tool("read") as tool:
            tool.result("x" * 5_000)

    async with running(agent, settings=HubSettings(max_output_bytes=4_000)) as hub:
        renderer = await Renderer(hub, features=DETAIL).join()
        await renderer.say("go")
        await renderer.ended("t1")
    (end,) = ends(renderer)
    assert (end["result"], "result_ref" in end) == ("x" * 2_000 + "…", False)


async def test_a_secret_in_a_result_or_in_progress_reaches_nobody() -> None:
    secret = "sk-" + "a1B2" * 12

    async def agent(turn: Turn) -> None:
        async with turn.tool("read") as tool:
            tool.progress(f"with {secret}")
            tool.result({"key": secret})
        async with turn.tool("read") as tool:
            tool.result("x " * 995 + secret)

    renderer = await played(agent, features=DETAIL)
    assert secret not in str(renderer.box.messages)
    assert secret[:8] not in str(renderer.box.messages)
    assert "redacted" in str(renderer.box.of("tool_progress")[0])


async def test_a_tool_that_fails_has_a_duration_and_no_result() -> None:
    async def agent(turn: Turn) -> None:
        with suppress(KeyError):
            async with turn.tool("read") as tool:
                tool.result("half")
                raise KeyError

    renderer = await played(agent, features=DETAIL)
    (end,) = ends(renderer)
    assert isinstance(end.pop("duration_ms"), int)
    assert end == {"tool": "read", "ok": False, "call_id": "t1.1", "error": "KeyError"}


async def test_a_kept_result_of_a_tool_that_then_fails_is_no_file_of_the_session() -> None:
    """As its facts say: made again from them, the session holds the same files."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        with suppress(InvalidPatch):
            async with turn.tool("read") as tool:
                tool.result("x" * 5_000)
                turn.patch("nobody", "props.content", "?")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub, features=DETAIL).join()
        await renderer.say("go")
        await renderer.ended("t1")
        await settled(hub)
        live = hub.sessions["s"].session
        again = restore(live.head, await store.facts(), Limits())
        assert list(live.input_log.files) == list(again.input_log.files) == []
    assert [one["ok"] for one in ends(renderer)] == [False]


@pytest.mark.parametrize(
    ("numbers", "error", "words"),
    [
        ({"done": -1}, ValueError, "done: expected a number from 0 to 9007199254740991"),
        ({"done": 2**53}, ValueError, "done: expected a number from 0 to 9007199254740991"),
        ({"total": 10**400}, ValueError, "total: expected a number from 0 to 9007199254740991"),
        ({"done": 1.5}, TypeError, "done: expected a whole number, got float"),
        ({"total": "3"}, TypeError, "total: expected a whole number, got str"),
        ({"done": True}, TypeError, "done: expected a whole number, got bool"),
        ({"done": 4, "total": 3}, ValueError, "done: 4 is more than the total of 3"),
    ],
)
async def test_progress_that_makes_no_sense_is_refused_at_the_authors_line(
    numbers: dict[str, Any], error: type[Exception], words: str
) -> None:
    async def agent(turn: Turn) -> None:
        async with turn.tool("count") as tool:
            with pytest.raises(error, match=words):
                tool.progress("counting", **numbers)
        await turn.say("on")

    renderer = await played(agent, features=DETAIL)
    assert renderer.box.of("tool_progress") == []
    assert renderer.screen.text("t1") == "on"


async def test_a_small_renderer_is_sent_a_shorter_result() -> None:
    """`max_message_bytes`: nothing is left out but the rest of the text."""

    async def agent(turn: Turn) -> None:
        async with turn.tool("read") as tool:
            tool.progress("y" * 1_900)
            tool.result("x" * 1_900)

    renderer = await played(agent, features=DETAIL, limits=RendererLimits(max_message_bytes=1024))
    assert max(map(len, renderer.box.frames[1:])) <= 1024
    (end,) = ends(renderer)
    assert "more characters not shown" in str(end["result"])
    assert "more characters not shown" in renderer.box.of("tool_progress")[0]["payload"]["text"]
    assert renderer.box.of("error") == []
