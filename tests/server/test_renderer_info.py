"""What a renderer says of itself reaches the agent, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest

from arp import App, Turn, ui
from tests.server.sockets import raw
from tests.support.serving import Serving, serving

app = App(title="Places")


@app.agent
async def agent(turn: Turn) -> None:
    """Says what it knows of who asked, or how its picture is shown."""
    if turn.text == "shown":
        turn.show(ui.chart("bar", labels=["a"], datasets=[ui.dataset("d", [1])], id="c"))
        await asyncio.wait_for(turn.ask(ui.text_input("Seen?", id="q")), 10)
        await turn.say(" ".join(sorted(turn.shown_as("c").values())))
        return
    told = turn.renderer
    size = f"{told.viewport.width}x{told.viewport.height}" if told.viewport else "-"
    await turn.say(f"{told.locale} {told.time_zone} {told.theme} {size}")


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving(app) as running:
        yield running


SWISS = {
    "locale": "de-CH",
    "time_zone": "Europe/Zurich",
    "theme": "dark",
    "viewport": {"width": 800, "height": 600},
}


async def test_agent_knows_of_the_renderer_whose_input_began_the_turn(server: Serving) -> None:
    """protocol.md 2.2: `viewport`, `locale`, `time_zone`, `theme`; others on the session do not
    count, whoever came last."""
    async with raw(server) as swiss, raw(server) as plain:
        await swiss.hello("two", ["text"], "input", **SWISS)
        await plain.hello("two", ["text"], "input", locale="en")
        await swiss.say("two", "go")
        await swiss.until_final("t1")
        await plain.say("two", "go")
        await swiss.until_final("t2")
    texts = {one["turn_id"]: one["payload"]["delta"] for one in swiss.of("delta")}
    assert texts == {"t1": "de-CH Europe/Zurich dark 800x600", "t2": "en None None -"}


async def test_of_several_renderers_nobody_knows_which_has_posted(server: Serving) -> None:
    """An input beside a connection names none: what it came from is told if all say the same."""
    body = {"v": 1, "type": "input", "session_id": "post", "input_type": "text"}

    async def post(number: int) -> None:
        async with httpx.AsyncClient(base_url=server.http) as client:
            said = {**body, "id": f"i{number}", "data": {"text": "go"}}
            (await client.post("/_arp/v1/input", json=said)).raise_for_status()

    async with raw(server) as swiss:
        await swiss.hello("post", ["text"], "input", **SWISS)
        await post(1)
        await swiss.until_final("t1")
        async with raw(server) as plain:
            await plain.hello("post", ["text"], "input", locale="en")
            await post(2)
            await swiss.until_final("t2")
    texts = {one["turn_id"]: one["payload"]["delta"] for one in swiss.of("delta")}
    assert texts == {"t1": "de-CH Europe/Zurich dark 800x600", "t2": "None None None -"}


async def test_resize_changes_the_viewport_of_what_comes(server: Serving) -> None:
    """protocol.md 2.2: `resize` has `{width, height}`."""
    async with raw(server) as client:
        await client.hello("resize", ["text"], "input", **SWISS)
        body = {"v": 1, "type": "input", "input_type": "resize", "id": "r"}
        await client.send({**body, "data": {"width": -1, "height": 5}})
        refused = await client.until("error")
        await client.send({**body, "data": {"width": 320, "height": 240}})
        await client.until("ack", id="r")
        await client.say("resize", "go")
        said = await client.until("delta")
    assert "data.width: expected a number in 0…100000" in refused["payload"]["error"]
    assert said["payload"]["delta"] == "de-CH Europe/Zurich dark 320x240"


async def test_draft_client_has_said_nothing(server: Serving) -> None:
    """Each is `None`."""
    async with raw(server) as client:
        await client.say("draft", "go")
        said = await client.until("delta")
    assert said["payload"]["delta"] == "None None None -"


async def test_how_a_renderer_has_drawn_a_component_is_known_to_the_agent(
    server: Serving,
) -> None:
    """protocol.md 2.2: `ack` has `presented`; agents can ask how a component is shown."""
    async with raw(server) as chart, raw(server) as plain:
        ready = await chart.hello("acks", ["text", "chart", "text-input"], "input", "frame-ack")
        await plain.hello("acks", ["text"], "input", "frame-ack")
        assert ready["resume"] == "new"
        await chart.say("acks", "shown")
        commit = await chart.until("commit")
        presented = {"c": "fallback", "nothing": "failed"}
        await chart.send({"v": 1, "type": "ack", "seq": commit["seq"], "presented": presented})
        await plain.until("commit")
        await plain.send({"v": 1, "type": "ack", "seq": commit["seq"], "presented": {}})
        waiting = await chart.until("turn", status="waiting")
        await chart.send({"v": 1, "type": "ack", "seq": waiting["seq"]})
        body = {"v": 1, "type": "input", "input_type": "text", "source_component": "q"}
        await chart.send({**body, "data": {"text": "yes"}, "id": "a", "session_id": "acks"})
        await chart.until("ack", id="a")
        said = await chart.until("delta")
    assert said["payload"]["delta"] == "fallback text"
