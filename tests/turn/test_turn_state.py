"""What an agent keeps for a session: `turn.state` is durable, `turn.cache` is not."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from arp import Turn
from arp.hub.hub import Hub
from arp.hub.runner import HubApp
from arp.ledger.fact import Fact
from arp.ledger.fact_types import ProfileViolation
from arp.live.settings import HubSettings
from arp.protocol.errors import AgentFailed
from arp.store.blobs import MemoryBlobs
from arp.store.sqlite import SqliteStore
from tests.hub.rig import WAIT_S, HeldStore, Renderer, running, settled
from tests.hub.test_branches import BRANCHES, edits, talked, turns_to
from tests.live.test_states import gone

GITHUB = "ghp_" + "Q7" * 18


async def counts(turn: Turn) -> None:
    """Says how often it was asked in this session, and does what it is told."""
    turn.state["count"] = turn.state.get("count", 0) + 1
    await turn.say(str(turn.state["count"]))
    match turn.text:
        case "fail":
            raise AgentFailed("no")
        case "wait":
            await asyncio.Event().wait()
        case "large":
            turn.state["large"] = "x" * 70_000
        case "secret":
            turn.state["github"] = GITHUB
        case "live":
            turn.state["event"] = asyncio.Event()


def states(facts: list[Fact]) -> list[tuple[str | None, Any]]:
    """Return the turn and the state of each fact that has one."""
    changed = [fact for fact in facts if fact.type == "session.updated"]
    return [(fact.turn_id, fact.payload["state"]) for fact in changed]


async def test_state_is_recorded_once_a_turn_if_it_changed() -> None:
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        turn.state["seen"] = ["a"]
        await turn.say("x")
        turn.state["seen"] = [turn.text]
        turn.state["seen"].append("b")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        for number, text in enumerate(["one", "one", "two"], 1):
            await renderer.say(text)
            await renderer.ended(f"t{number}")
        await settled(hub)
        facts = await store.facts()
    assert states(facts) == [("t1", {"seen": ["one", "b"]}), ("t3", {"seen": ["two", "b"]})]
    types = [fact.type for fact in facts if fact.turn_id == "t1"]
    assert types[-2:] == ["session.updated", "turn.completed"]


async def test_turn_that_does_not_use_the_state_records_none() -> None:
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        assert turn.state == {}

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        await settled(hub)
        facts = await store.facts()
    assert states(facts) == []


async def test_each_session_has_its_own_state() -> None:
    async with running(counts) as hub:
        one, two = await Renderer(hub, "one").join(), await Renderer(hub, "two").join()
        for renderer, turn_id in ((one, "t1"), (one, "t2"), (two, "t1")):
            await renderer.say("go")
            await renderer.ended(turn_id)
    assert (one.box.said(), two.box.said()) == ("12", "1")


async def test_state_is_there_again_when_the_server_starts_on_the_same_file(tmp_path: Path) -> None:
    """Made of a stored state, or of all facts."""
    said: list[str] = []
    for _ in range(3):
        store = SqliteStore(tmp_path / "ledger.db")
        await store.open()
        hub = Hub(store, MemoryBlobs(), HubApp({"agent": counts}), HubSettings())
        await hub.start()
        renderer = await Renderer(hub).join()
        await renderer.say("go", id=f"go-{len(said)}")
        turn_id = (await renderer.box.has("ack", id=f"go-{len(said)}"))["turn_id"]
        await renderer.ended(turn_id)
        said.append(renderer.screen.text(turn_id))
        async with asyncio.timeout(WAIT_S):
            await hub.aclose()
    assert said == ["1", "2", "3"]


@pytest.mark.parametrize("text", ["fail", "wait"])
async def test_turn_that_fails_or_is_cancelled_keeps_what_it_changed(text: str) -> None:
    """As what it showed stays, what it keeps does too."""
    store = HeldStore()
    async with running(counts, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say(text)
        if text == "wait":
            await renderer.box.until(lambda: renderer.box.said() == "1")
            await renderer.cancel("t1")
        assert await renderer.ended("t1") == ("failed" if text == "fail" else "cancelled")
        await renderer.say("go")
        await renderer.ended("t2")
        await settled(hub)
        facts = await store.facts()
    assert states(facts) == [("t1", {"count": 1}), ("t2", {"count": 2})]


async def test_turn_that_the_stop_of_the_server_interrupts_keeps_what_it_changed() -> None:
    store = HeldStore()
    async with running(counts, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("wait")
        await renderer.box.until(lambda: renderer.box.said() == "1")
    await store.open()
    assert states(await store.facts()) == [("t1", {"count": 1})]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("large", "turn.state: 70"),
        ("secret", "turn.state['github'] holds a secret"),
        ("live", "turn.state: Event is not a JSON value; keep live objects in turn.cache"),
    ],
)
async def test_state_that_cannot_be_recorded_fails_the_turn_and_stays_what_it_was(
    text: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = HeldStore()
    async with running(counts, store=store) as hub:
        renderer = await Renderer(hub).join()
        for number, one in enumerate(["go", text, "go"], 1):
            await renderer.say(one)
            status = await renderer.ended(f"t{number}")
            assert status == ("failed" if one == text else "completed")
        await settled(hub)
        facts = await store.facts()
    assert states(facts) == [("t1", {"count": 1}), ("t3", {"count": 2})]
    assert told in caplog.text
    assert GITHUB not in caplog.text
    (error,) = renderer.box.of("error")
    assert GITHUB not in error["payload"]["error"]


async def test_cancelled_turn_whose_state_cannot_be_recorded_is_cancelled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def agent(turn: Turn) -> None:
        turn.state["event"] = asyncio.Event()
        await turn.say("x")
        await asyncio.Event().wait()

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.until(lambda: renderer.box.said() == "x")
        with caplog.at_level(logging.WARNING):
            await renderer.cancel("t1")
            assert await renderer.ended("t1") == "cancelled"
    assert "turn.state of turn t1 is not recorded" in caplog.text


async def test_each_branch_keeps_its_own_state() -> None:
    """An edit goes on from the state before the old version, which has its own again."""
    store = HeldStore()
    async with running(remembers, store=store) as hub:
        one = await talked(hub, "a", "b", "c")
        await edits(one, "t2", "B", "t4")
        assert one.screen.text("t4") == "a B"
        await turns_to(one, "arp.branch", "t2")
        await one.say("d")
        await one.ended("t5")
        assert one.screen.text("t5") == "a b c d"
        await turns_to(one, "arp.branch", "t4")
        await one.say("e")
        await one.ended("t6")
        assert one.screen.text("t6") == "a B e"
        await gone(hub, one)  # it comes into memory anew
        again = await Renderer(hub, features=BRANCHES).join()
        await again.say("f")
        await again.ended("t7")
        assert again.screen.text("t7") == "a B e f"


async def remembers(turn: Turn) -> None:
    """Says everything that was asked."""
    turn.state.setdefault("texts", []).append(turn.text)
    await turn.say(" ".join(turn.state["texts"]))


async def test_no_renderer_gets_the_state() -> None:
    """Neither while it happens, nor in a snapshot, nor on the page of an earlier turn."""

    async def agent(turn: Turn) -> None:
        turn.state["private"] = "only-the-agent"
        await turn.say("x")

    async with running(agent) as hub:
        first = await Renderer(hub).join()
        await first.say("go")
        await first.ended("t1")
        await settled(hub)
        session = first.box.of("session")[0]
        late = await Renderer(hub).join()
        back = await Renderer(hub).join(session["epoch"], 1)
        frames = [*first.box.frames, *late.box.frames, *back.box.frames]
    assert all(b"only-the-agent" not in frame for frame in frames)
    assert json.dumps(late.screen.text("t1")) == '"x"'


async def test_author_cannot_record_the_state_by_hand() -> None:
    """Else it would not be what `turn.state` says."""
    raised: list[str] = []

    async def agent(turn: Turn) -> None:
        try:
            turn.record("session.updated", {"state": {"a": 1}})
        except ProfileViolation as error:
            raised.append(str(error))

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
    assert raised == [
        "profile validation failed: session.updated is recorded by the session itself"
    ]


async def test_cache_holds_live_objects_per_session_in_memory() -> None:
    async def agent(turn: Turn) -> None:
        event: asyncio.Event = turn.cache.setdefault("event", asyncio.Event())
        await turn.say("set" if event.is_set() else "new")
        event.set()

    store = HeldStore()
    async with running(agent, store=store) as hub:
        one, two = await Renderer(hub, "one").join(), await Renderer(hub, "two").join()
        for renderer, turn_id in ((one, "t1"), (one, "t2"), (two, "t1")):
            await renderer.say("go")
            await renderer.ended(turn_id)
        await settled(hub)
        facts = await store.facts("one")
    assert (one.box.said(), two.box.said()) == ("newset", "new")
    assert states(facts) == []
