"""Sessions are found by those to whom they belong, made once, and come back from the store."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arp import Turn, ui
from arp.access.principal import Principal
from arp.hub.directory import utc_now
from arp.hub.hub import Hub
from arp.hub.runner import HubApp
from arp.ledger.fact import decode
from arp.live.delivery import Viewer
from arp.live.settings import HubSettings
from arp.protocol.errors import RateLimited, SessionNotFound
from arp.protocol.messages import Input
from arp.store.blobs import MemoryBlobs
from arp.store.errors import StoreDamaged
from arp.store.memory import MemoryStore
from arp.store.sqlite import SqliteStore
from arp.store.store import SessionWrite
from tests.hub.rig import Box, HeldStore, Renderer, running, settled, started
from tests.support.waiting import becomes

ADA, BOB = Principal("ada"), Principal("bob")


def evicted(hub: Hub) -> int:
    """Lets every session go that may go now."""
    return hub.lifetimes.evict(asyncio.get_running_loop().time() + 1)


@pytest.mark.parametrize("where", ["memory", "store"])
async def test_session_of_somebody_else_is_answered_as_one_that_is_not(where: str) -> None:
    """architecture.md, invariant 10; T05: the same error for both."""
    async with running() as hub:
        await hub.open("hers", ADA, "agent")
        await settled(hub)
        if where == "store":
            assert evicted(hub) == 1
        errors: list[SessionNotFound] = []
        for session_id in ("hers", "none"):
            with pytest.raises(SessionNotFound) as caught:
                await hub.find(session_id, BOB)
            errors.append(caught.value)
        with pytest.raises(SessionNotFound):
            await hub.open("hers", BOB, "agent")
        loaded = list(hub.sessions)
        mine = await hub.find("hers", ADA)
    assert errors[0].message.replace("hers", "…") == errors[1].message.replace("none", "…")
    assert errors[0].code == errors[1].code
    assert loaded == (["hers"] if where == "memory" else [])
    assert mine.id == "hers"


async def test_session_is_made_once_however_many_ask_at_once() -> None:
    """A page opens its stream and posts its first input at the same time."""
    async with running() as hub:
        lives = await asyncio.gather(*[hub.open("s", ADA, "agent") for _ in range(5)])
        await settled(hub)
        created = [fact.type for fact in await facts(hub, "s")]
    assert len({id(live) for live in lives}) == 1
    assert created == ["session.created"]


async def test_session_is_read_once_however_many_ask_at_once() -> None:
    """Loading is shared."""
    store = HeldStore()
    reads: list[str] = []
    read = store.read

    async def counted(session_id: str, after: int = 0, limit: int = 1000) -> Any:
        reads.append(session_id)
        await asyncio.sleep(0)
        return await read(session_id, after, limit)

    async with running(store=store) as hub:
        await hub.open("s", ADA, "agent")
        await settled(hub)
        evicted(hub)
        store.read = counted  # type: ignore[method-assign]  # counts
        lives = await asyncio.gather(*[hub.find("s", ADA) for _ in range(5)])
    assert len({id(live) for live in lives}) == 1
    assert len(reads) == 2, "one chunk, and the empty one that ends it"


async def facts(hub: Hub, session_id: str) -> list[Any]:
    return [decode(body) for _, body in await hub.store.read(session_id)]


async def test_new_session_without_a_name_gets_one_that_nobody_guesses() -> None:
    """T05: at least 128 random bits."""
    async with running() as hub:
        ids = {(await hub.open(None, ADA, "agent")).id for _ in range(50)}
    assert len(ids) == 50
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{22}", name) for name in ids)


async def test_more_sessions_than_are_allowed_are_refused() -> None:
    """RATE_LIMITED, retryable; those that are there go on."""
    settings = HubSettings(max_sessions=2, stop_grace_s=0.05)
    async with running(settings=settings) as hub:
        await hub.open("a", ADA, "agent")
        await hub.open("b", ADA, "agent")
        with pytest.raises(RateLimited):
            await hub.open("c", ADA, "agent")
        again = await hub.open("a", ADA, "agent")
    assert again.id == "a"
    assert RateLimited.retryable


async def test_idle_sessions_leave_a_full_memory_the_longest_unused_first() -> None:
    settings = HubSettings(max_sessions=2, stop_grace_s=0.05)
    async with running(settings=settings) as hub:
        for name, seconds_ago in (("a", 20), ("b", 30)):
            live = await hub.open(name, ADA, "agent")
            await live.written()
            live.used_at -= seconds_ago
        await hub.open("c", ADA, "agent")
        assert sorted(hub.sessions) == ["a", "c"]
        assert (await hub.open("a", ADA, "agent")).id == "a"


async def test_session_in_use_does_not_leave_a_full_memory() -> None:
    settings = HubSettings(max_sessions=1, stop_grace_s=0.05)
    async with running(settings=settings) as hub:
        await Renderer(hub).join()
        (live,) = hub.sessions.values()
        live.used_at -= 30
        with pytest.raises(RateLimited):
            await hub.open("c", ADA, "agent")
        assert list(hub.sessions.values()) == [live]


async def test_idle_session_leaves_the_memory_and_comes_back_the_same() -> None:
    """Eviction of idle sessions; they come back from the store."""

    async def agent(turn: Turn) -> None:
        await turn.say(f"re {turn.text}")
        turn.show(ui.table(["n"], [[1]], id=f"table-{turn.id}"))

    async with running(agent) as hub:
        first = await Renderer(hub).join()
        await first.say("one", id="i1")
        await first.ended("t1")
        first.leave()
        await settled(hub)
        gone = evicted(hub)
        left = list(hub.sessions)
        second = await Renderer(hub).join()
        same = second.screen.canonical() == first.screen.canonical()
        await second.say("one", id="i1")
        await second.say("two")
        await second.ended("t2")
    assert (gone, left) == (1, [])
    assert same
    assert [one["turn_id"] for one in second.box.of("ack")] == ["t1"]
    assert second.screen.text("t2") == "re two"


async def test_question_outlives_a_restart_and_an_idle_time(tmp_path: Path) -> None:
    """It is open with its id, in a file too, until somebody answers it; then the agent hears it."""

    async def agent(turn: Turn) -> None:
        if turn.input.input_type == "text":
            await turn.confirm("Sure?", id="q")
        await turn.say(f"late {turn.input.data['action']}")

    store = SqliteStore(tmp_path / "ledger.db")
    await store.open()
    hub = Hub(store, MemoryBlobs(), HubApp({"agent": agent}), HubSettings(stop_grace_s=0.05))
    await hub.start()
    first = await Renderer(hub).join()
    await first.say("go")
    await first.box.has("turn", status="waiting")
    stays = evicted(hub)
    await hub.aclose()
    again = SqliteStore(tmp_path / "ledger.db")
    await again.open()
    hub = Hub(again, MemoryBlobs(), HubApp({"agent": agent}), HubSettings(stop_grace_s=0.05))
    await hub.start()
    (await Renderer(hub).join()).leave()
    await settled(hub)
    gone = evicted(hub)
    second = await Renderer(hub).join()
    open_again = second.screen.surfaces["main"].component("q").props["state"]
    questions = list(hub.sessions["s"].session.questions)
    await second.send("action", {"action": "confirm"}, source_component="q")
    await second.ended("t2")
    await second.send("action", {"action": "deny"}, source_component="q")
    refused = await second.box.has("error")
    await hub.aclose()
    assert (stays, gone, questions) == (0, 1, [("main", "q")])
    assert open_again == "open"
    assert second.box.said() == "late confirm"
    assert second.screen.turns["t1"].status == "completed"
    assert ("turn_id" in refused, refused["payload"]["code"]) == (False, 11)


async def test_session_in_use_stays_in_memory() -> None:
    """Somebody watches, an agent works, or something is not written yet."""
    store = HeldStore()
    released = asyncio.Event()

    async def agent(_: Turn) -> None:
        await released.wait()

    async with running(agent, store=store) as hub:
        watched = await Renderer(hub, "watched").join()
        working = await Renderer(hub, "working").join()
        await working.say("go")
        await working.box.has("turn", status="running")
        working.leave()
        await settled(hub)
        store.hold()
        await hub.open("new", Principal(), "agent")
        await store.waiting.wait()
        await asyncio.sleep(0)
        gone = evicted(hub)
        left = sorted(hub.sessions)
        store.release()
        released.set()
        watched.leave()
        await settled(hub)
        await settled(hub)
        later = evicted(hub)
    assert (gone, left) == (0, ["new", "watched", "working"])
    assert later == 3


async def test_session_used_lately_stays_in_memory() -> None:
    """Idle means for a while."""
    async with running() as hub:
        await hub.open("s", ADA, "agent")
        await settled(hub)
        assert hub.lifetimes.evict(asyncio.get_running_loop().time() - 60) == 0


async def test_sweeper_lets_idle_sessions_go_by_itself() -> None:
    """`idle_s` of the settings."""
    settings = HubSettings(idle_s=0.02, stop_grace_s=0.05)
    async with running(settings=settings) as hub:
        await hub.open("s", ADA, "agent")
        await becomes(lambda: not hub.sessions)
        back = await hub.find("s", ADA)
    assert back.id == "s"


async def test_a_thousand_sessions_go_and_come_back() -> None:
    """Each keeps its own; none is mixed up with another."""

    async def agent(turn: Turn) -> None:
        await turn.say(turn.session_id)

    async with running(agent) as hub:
        for number in range(1000):
            viewer, said = an_input(f"s{number}")
            await hub.receive(viewer, said, Principal(), "agent")
            hub.detach(viewer)
        while hub.runner.tasks:
            await asyncio.wait(hub.runner.tasks)
        await settled(hub)
        await settled(hub)
        gone = evicted(hub)
        texts = []
        for number in range(1000):
            live = await hub.find(f"s{number}", Principal())
            texts.append(live.session.screen.text("t1"))
        listed = await count(hub)
    assert gone == 1000
    assert texts == [f"s{number}" for number in range(1000)]
    assert listed == 1000


def an_input(session_id: str) -> tuple[Viewer, Input]:
    viewer = Viewer(f"v-{session_id}", Box(), "json")
    return viewer, Input(input_type="text", data={"text": "go"}, session_id=session_id)


async def count(hub: Hub) -> int:
    """Counts sessions page by page."""
    seen: set[str] = set()
    before: str | None = None
    while page := await hub.metas(Principal(), before=before, limit=300):
        assert seen.isdisjoint(meta.id for meta in page)
        seen.update(meta.id for meta in page)
        before = page[-1].cursor
    return len(seen)


async def test_damaged_session_keeps_no_other_from_being_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F06: the session is set aside, others run; the log says what to do."""

    class Damaged(MemoryStore):
        async def read(self, session_id: str, after: int = 0, limit: int = 1000) -> Any:
            if session_id == "bad" and self.bad:
                raise StoreDamaged(session_id, after)
            return await super().read(session_id, after, limit)

        bad = False

    async def forever(_: Turn) -> None:
        await asyncio.Event().wait()

    store = Damaged()
    hub = await started(forever, store=store)
    for name in ("bad", "good"):
        renderer = await Renderer(hub, name).join()
        await renderer.say("go")
        await renderer.box.has("turn", status="running")
    copy = Damaged()
    copy._facts = {name: list(kept) for name, kept in store._facts.items()}
    copy._metas = dict(store._metas)
    await hub.aclose()
    copy.bad = True
    async with running(store=copy) as again:
        good = await Renderer(again, "good").join()
        status = good.screen.turns["t1"].status
        bad = Renderer(again, "bad")
        with pytest.raises(StoreDamaged):
            await again.hello(bad.viewer, bad.hello, Principal(), "agent")
    assert status == "failed"
    assert "facts after sequence 0 are damaged" in caplog.text


async def test_session_whose_facts_make_no_sense_keeps_no_other_from_being_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An older version let something pass that this one cannot make a session of."""
    store = HeldStore()
    hub = await started(store=store)
    for name in ("bad", "good"):
        await Renderer(hub, name).join()
    await hub.aclose()
    await store.open()
    at = (await store.facts("bad"))[-1].sequence
    start = msgspec.json.encode(strange_fact(at + 1))
    active = msgspec.structs.replace(store._metas["bad"], active=True)
    await store.append([SessionWrite("bad", at, [start], active)])
    async with running(store=store) as again:
        await Renderer(again, "good").join()
        bad = await Renderer(again, "bad").join()
        refused = await bad.box.has("error")
    assert f"fact {at + 1} cannot be read (it makes no sense here" in refused["payload"]["error"]
    assert f"session bad: fact {at + 1} cannot be read" in caplog.text


def strange_fact(sequence: int) -> dict[str, Any]:
    """A turn starts that was never submitted."""
    return {
        "schemaVersion": "lime-profile-0.4.0",
        "runtimeId": "arp",
        "sessionId": "bad",
        "threadId": "main",
        "turnId": "t9",
        "eventId": f"bad-{sequence}",
        "timestamp": "2026-01-02T03:04:05.000000Z",
        "sequence": sequence,
        "type": "turn.started",
        "payload": {},
    }


def test_times_sort_as_they_pass() -> None:
    """RFC 3339 with microseconds, always with as many digits."""
    times = [utc_now() for _ in range(100)]
    assert times == sorted(times)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", one) for one in times)
