"""A recording happens again in a live session, for whoever is attached, each in its own way."""

from __future__ import annotations

import asyncio

import msgspec

from arp.access.principal import Principal
from arp.hub.readers.player import Player
from arp.ledger.fact import Fact
from arp.protocol.json_value import Json
from arp.turn.turn import Turn
from arp.ui import table, text
from tests.hub.rig import HeldStore, Renderer, running

LESSER = ["text"]


async def showing(turn: Turn) -> None:
    """Speaks, uses tools, shows and changes components, asks."""
    await turn.say("I look. ")
    async with turn.tool("read", {"path": "a"}) as tool:
        tool.result("3")
    turn.show(table(["a", "b"], [[1, 2]], id="numbers"), text("half", id="bar"))
    await turn.say("And so on. ")
    async with turn.frame():
        turn.patch("bar", "props.content", "whole")
        turn.append("numbers", "props.rows", [[3, 4]])
    turn.show(text("aside", id="note"), surface="side")
    answer = await turn.confirm("Sure?", id="sure")
    await turn.say(f"It is {answer}.")


async def recorded() -> tuple[list[Fact], Json, Json]:
    """Return the facts of a conversation, and what it shows on a whole and on a lesser screen."""
    store = HeldStore()
    async with running(showing, store=store) as hub:
        renderer = await Renderer(hub).join()
        lesser = await Renderer(hub, components=LESSER).join()
        await renderer.say("go")
        await renderer.box.has("turn", status="waiting")
        await renderer.send("action", {"action": "confirm"}, source_component="sure")
        assert await renderer.ended("t1") == "completed"
        await renderer.say("and again")
        await renderer.box.has("turn", status="waiting", turn_id="t2")
        await renderer.cancel()
        assert await renderer.ended("t2") == "cancelled"
        await lesser.ended("t2")
        return await store.facts(), renderer.screen.canonical(), lesser.screen.canonical()


async def test_who_was_there_from_the_beginning_and_who_comes_late_see_the_same() -> None:
    facts, shown, _ = await recorded()
    async with running() as hub:
        live = await hub.open("s", Principal(), "agent")
        early = await Renderer(hub).join()
        await Player(live).play(facts, 0)
        late = await Renderer(hub).join()
        assert early.screen.canonical() == shown
        assert late.screen.canonical() == shown


async def test_a_lesser_renderer_sees_what_it_would_have_seen() -> None:
    facts, _, shown = await recorded()
    async with running() as hub:
        live = await hub.open("s", Principal(), "agent")
        lesser = await Renderer(hub, components=LESSER).join()
        await Player(live).play(facts, 0)
        late = await Renderer(hub, components=LESSER).join()
        assert lesser.screen.canonical() == shown
        assert late.screen.canonical() == shown


async def test_nothing_can_be_put_into_a_recording() -> None:
    facts, shown, _ = await recorded()
    async with running() as hub:
        live = await hub.open("s", Principal(), "agent")
        renderer = await Renderer(hub).join()
        player = Player(live)
        waiting = next(place for place, fact in enumerate(facts) if fact.type == "action.required")
        await player.play(facts[: waiting + 1], 0)
        await renderer.send("action", {"action": "confirm"}, source_component="sure")
        await renderer.box.until(lambda: len(renderer.box.of("error")) == 1)
        await renderer.cancel()
        await player.play(facts[waiting + 1 :], 0)
        assert renderer.screen.canonical() == shown


async def test_a_recording_that_begins_in_the_middle_shows_what_it_can() -> None:
    facts, _, _ = await recorded()
    patched = next(place for place, fact in enumerate(facts) if "patch" in str(fact.payload))
    async with running() as hub:
        live = await hub.open("s", Principal(), "agent")
        renderer = await Renderer(hub).join()
        await Player(live).play(facts[patched:], 0)
        assert "It is True." in renderer.box.said()


async def test_it_takes_its_time() -> None:
    facts, shown, _ = await recorded()
    hour = "2026-01-02T03:04:{:02}.000000Z"
    paused = [
        msgspec.structs.replace(fact, timestamp=hour.format(min(number, 59)))
        for number, fact in enumerate(facts)
    ]
    async with running() as hub:
        live = await hub.open("s", Principal(), "agent")
        renderer = await Renderer(hub).join()
        async with asyncio.timeout(10):
            await Player(live).play(paused, 1000)
        assert renderer.screen.canonical() == shown
