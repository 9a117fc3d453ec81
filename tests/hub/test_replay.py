"""A renderer that comes back is told what it missed, each message once, in order."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

import pytest

from arp import Turn, ui
from arp.hub.hub import Hub
from arp.live.settings import HubSettings
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.messages import RendererHello, Resume
from arp.session.tracking import window
from arp.store.errors import StoreDamaged
from tests.hub.object_rig import Display
from tests.hub.rig import ALL, FEATURES, HeldStore, Renderer, running, settled
from tests.support.waiting import becomes


async def lively(turn: Turn) -> None:
    """Text, tool, thinking, components, patches."""
    await turn.say("one ")
    turn.think("hm")
    async with turn.tool("look"):
        turn.show(ui.table(["n"], [[1]], id=f"table-{turn.id}"))
    await turn.say("two ")
    turn.patch(f"table-{turn.id}", "props.title", "T")
    turn.append(f"table-{turn.id}", "props.rows", [[2]])
    await turn.say("three")


PROFILES: dict[str, dict[str, Any]] = {
    "everything": {"components": ALL, "features": [*FEATURES, "thinking", "tool-detail"]},
    "no append": {"components": ALL, "features": ["streaming", "input", "resume"]},
    "text": {"components": ["text"]},
    "batch": {"components": ALL, "features": [*FEATURES, "batch"]},
}


def place(renderer: Renderer) -> tuple[str, int]:
    ready = renderer.box.of("session")[0]
    return ready["epoch"], ready["seq"]


async def said(hub: Hub, renderer: Renderer, *texts: str) -> None:
    for text in texts:
        await renderer.say(text)
    number = hub.sessions["s"].session.screen.count
    await renderer.ended(f"t{number}")
    await settled(hub)


@pytest.mark.parametrize("profile", PROFILES)
async def test_replay_is_what_was_sent_each_message_once(profile: str) -> None:
    """protocol.md 2.3: exactly that, each message once, in order; or a snapshot."""
    async with running(lively) as hub:
        first = await Renderer(hub, **PROFILES[profile]).join()
        epoch, seq = place(first)
        await said(hub, first, "go")
        back = await Renderer(hub, **PROFILES[profile]).join(epoch, seq)
    ready = back.box.of("session")
    answers = [one["resume"] for one in ready]
    assert answers == (["replay"] if profile in ("everything", "batch") else ["replay", "snapshot"])
    if answers == ["replay"]:
        missed = [one for one in first.box.messages if one["type"] not in ("session", "ack")]
        assert merged(back.box.messages[1:]) == merged(missed)
    assert back.screen.canonical() == first.screen.canonical()


def merged(messages: list[Any]) -> list[Any]:
    """Gives messages as they mean: an absent surface is `main`."""
    return [{"surface": "main", **message} for message in messages]


async def test_replay_from_the_newest_place_tells_nothing() -> None:
    """Nothing was missed; what comes next comes live."""
    async with running(lively) as hub:
        first = await Renderer(hub).join()
        await said(hub, first, "go")
        ready, last = first.box.of("session")[0], first.box.messages[-1]
        back = await Renderer(hub).join(ready["epoch"], last["seq"])
        before = list(back.box.messages)
        await said(hub, back, "again")
    assert [one["type"] for one in before] == ["session"]
    assert before[0]["resume"] == "replay"
    assert back.box.of("input")[0]["turn_id"] == "t2"


async def test_renderer_comes_back_while_the_agent_goes_on() -> None:
    """architecture.md, invariant 2: nothing falls between the log and what is live."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        for number in range(200):
            await turn.say(f"{number} ")
            if number % 7 == 0:
                await asyncio.sleep(0)

    async with running(agent, store=store) as hub:
        first = await Renderer(hub).join()
        epoch, seq = place(first)
        await first.say("go")
        backs = []
        for _ in range(5):
            await first.box.has("delta")
            backs.append(await Renderer(hub).join(epoch, seq))
        await first.ended("t1")
        for back in backs:
            await back.ended("t1")
    expected = "".join(f"{number} " for number in range(200))
    assert first.screen.text("t1") == expected
    assert [back.screen.text("t1") for back in backs] == [expected] * 5


async def test_long_replay_comes_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is read bit by bit, and every bit is told."""
    monkeypatch.setattr("arp.hub.readers.replay.CHUNK", 3)
    async with running(lively) as hub:
        first = await Renderer(hub).join()
        epoch, seq = place(first)
        await said(hub, first, "a")
        await said(hub, first, "b")
        back = await Renderer(hub).join(epoch, seq)
    assert [one["resume"] for one in back.box.of("session")] == ["replay"]
    assert back.screen.canonical() == first.screen.canonical()


async def test_renderer_that_missed_too_much_gets_a_snapshot() -> None:
    """`max_replay` of the settings."""
    settings = HubSettings(max_replay=5, stop_grace_s=0.05)
    async with running(lively, settings=settings) as hub:
        first = await Renderer(hub).join()
        epoch, seq = place(first)
        await said(hub, first, "go")
        back = await Renderer(hub).join(epoch, seq)
    assert back.box.of("session")[0]["resume"] == "snapshot"
    assert back.screen.canonical() == first.screen.canonical()


async def test_replay_waits_for_a_renderer_that_reads_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """architecture.md, invariant 5: it costs bounded memory."""
    monkeypatch.setattr("arp.hub.readers.replay.CHUNK", 2)
    async with running(lively) as hub:
        first = await Renderer(hub).join()
        epoch, seq = place(first)
        await said(hub, first, "go")
        slow = Renderer(hub)
        slow.box.buffered = 1 << 20
        hello = resuming(slow, epoch, seq)
        await hub.hello(slow.viewer, hello, slow.principal, "agent")
        await slow.box.has("session")
        await asyncio.sleep(0.01)
        held = len(slow.box.messages)
        slow.box.buffered = 0
        slow.viewer.drained()
        await slow.ended("t1")
    assert held == 1
    assert slow.screen.canonical() == first.screen.canonical()


@pytest.mark.parametrize("how", ["leaves", "says hello"])
async def test_replay_that_waits_for_a_renderer_ends_when_that_is_elsewhere(how: str) -> None:
    """The reader does not wait for an outbox that nobody will ask it about."""
    async with running(lively) as hub:
        first = await Renderer(hub).join()
        epoch, seq = place(first)
        await said(hub, first, "go")
        slow = Renderer(hub)
        slow.box.buffered = 1 << 20
        await hub.hello(slow.viewer, resuming(slow, epoch, seq), slow.principal, "agent")
        await slow.box.has("session")
        await becomes(lambda: len(hub._replayer._tasks) == 1)
        if how == "leaves":
            slow.leave()
        else:
            await hub.hello(slow.viewer, slow.hello, slow.principal, "agent")
        await becomes(lambda: not hub._replayer._tasks)


def resuming(renderer: Renderer, epoch: str, seq: int) -> RendererHello:
    capabilities = renderer.hello.capabilities
    return RendererHello(capabilities=capabilities, session_id="s", resume=Resume(epoch, seq))


async def test_replay_for_a_renderer_that_left_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """No reader waits for a buffer that nobody empties any more."""
    async with running(lively) as hub:
        first = await Renderer(hub).join()
        epoch, seq = place(first)
        await said(hub, first, "go")
        slow = Renderer(hub)
        slow.box.buffered = 1 << 20
        hello = resuming(slow, epoch, seq)
        await hub.hello(slow.viewer, hello, slow.principal, "agent")
        await slow.box.has("session")
        slow.leave()
        await becomes(lambda: not readers())
    assert len(slow.box.messages) == 1


def readers() -> list[str]:
    return [name for task in asyncio.all_tasks() if (name := task.get_name()) == "arp-replay"]


async def test_second_hello_during_a_replay_tells_everything_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reader of the first hello ends where the second one begins."""
    monkeypatch.setattr("arp.hub.readers.replay.CHUNK", 2)
    store = HeldStore()
    async with running(lively, store=store) as hub:
        first = await Renderer(hub).join()
        epoch, seq = place(first)
        await said(hub, first, "go")
        slow_down(store)
        back = Renderer(hub)
        for _ in range(2):
            hello = resuming(back, epoch, seq)
            await hub.hello(back.viewer, hello, back.principal, "agent")
            await back.box.has("session")
            await asyncio.sleep(0)
        await back.ended("t1")
        await said(hub, back, "again")
    second = [n for n, one in enumerate(back.box.messages) if one["type"] == "session"][1]
    after = back.box.messages[second:]
    texts = [one["payload"]["delta"] for one in after if one["type"] == "delta"]
    assert "".join(texts) == "one two three" * 2


def slow_down(store: HeldStore) -> None:
    """Lets each read take a few rounds of the loop."""
    read = store.read

    async def slowly(session_id: str, after: int = 0, limit: int = 1000) -> Any:
        for _ in range(5):
            await asyncio.sleep(0)
        return await read(session_id, after, limit)

    store.read = slowly  # type: ignore[method-assign]  # slower


async def test_log_that_cannot_be_read_closes_the_renderer_that_needs_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """1011, so that it comes back; the others see nothing of it."""
    store = HeldStore()
    async with running(lively, store=store) as hub:
        first = await Renderer(hub).join()
        epoch, seq = place(first)
        await said(hub, first, "go")

        async def broken(session_id: str, after: int = 0, limit: int = 1000) -> Any:
            raise StoreDamaged(session_id, after)

        read, store.read = store.read, broken  # type: ignore[method-assign]  # breaks
        back = Renderer(hub)
        await hub.hello(back.viewer, resuming(back, epoch, seq), back.principal, "agent")
        await back.box.until(lambda: back.box.closed is not None)
        store.read = read  # type: ignore[method-assign]  # mends
        await said(hub, first, "again")
    assert back.box.closed == (1011, "the ledger cannot be read")
    assert first.screen.turns["t2"].status == "completed"


@pytest.mark.parametrize("profile", PROFILES)
async def test_place_after_every_message_leads_to_the_same_screen(profile: str) -> None:
    """architecture.md, invariant 2: after any reconnect the screen equals one that never left."""

    async def agent(turn: Turn) -> None:
        await lively(turn)
        if turn.text == "ask":
            await turn.confirm("Sure?", id="q")

    async with running(agent) as hub:
        first = await Renderer(hub, **PROFILES[profile]).join()
        await said(hub, first, "go")
        await first.say("ask")
        await first.box.has("turn", status="waiting")
        await first.send("action", {"action": "confirm"}, source_component="q")
        await first.ended("t2")
        await settled(hub)
        epoch = place(first)[0]
        for cut in range(1, len(first.box.frames) + 1):
            connection = RendererConnection(first.hello)
            for frame in first.box.frames[:cut]:
                connection.receive(frame)
            connection.hello()
            back = await Renderer(hub, **PROFILES[profile]).join(epoch, connection.seq)
            for frame in back.box.frames:
                connection.receive(frame)
            now = connection.screen.canonical()
            assert now == first.screen.canonical(), f"cut after frame {cut}"


async def test_id_that_left_and_came_back_needs_a_snapshot() -> None:
    """The renderer has the old one on its screen, where nobody else sees it any more."""

    async def one_table(turn: Turn) -> None:
        if turn.text == "table":
            turn.show(ui.table(["n"], [[1]], id="table"))
        await turn.say("said")

    with patch.object(window, "RECENT_TURNS", 2):
        async with running(one_table) as hub:
            first = await Renderer(hub).join()
            await said(hub, first, "table")
            epoch, seq = place(first)[0], hub.sessions["s"].session.sequence
            await said(hub, first, "x", "x", "x", "table")
            back = await Renderer(hub).join(epoch, seq)
            await becomes(lambda: len(back.box.of("session")) == 2)
            await settled(hub)
            new = await Renderer(hub).join()
    assert [one["resume"] for one in first.box.of("session")] == ["new", "snapshot"]
    assert [one["resume"] for one in back.box.of("session")] == ["replay", "snapshot"]
    assert first.screen.canonical() == back.screen.canonical() == new.screen.canonical()
    assert [item.id for item in new.screen.output("t5")] == ["table", "t5/1"]


# -- at most `max_pending_commits` are under way, in a replay too ----------------------------------


async def framed(turn: Turn) -> None:
    """Ten commits with text between them."""
    turn.show(ui.text("0", id="n"))
    for number in range(1, 10):
        await turn.say(f"{number} ")
        turn.patch("n", "props.content", str(number))
        await settled(HUBS[-1])


HUBS: list[Hub] = []


async def test_replay_waits_for_a_renderer_that_acknowledges_commits() -> None:
    """protocol.md 4: `max_pending_commits` 2; each commit comes, since a replay merges nothing."""
    async with running(framed) as hub:
        HUBS.append(hub)
        first = await Renderer(hub).join()
        epoch, seq = place(first)
        await said(hub, first, "go")
        back = Renderer(hub, features=[*FEATURES, "frame-ack"])
        hello = back.hello
        resuming = RendererHello(
            capabilities=hello.capabilities, session_id="s", resume=Resume(epoch, seq)
        )
        await hub.hello(back.viewer, resuming, back.principal, back.workflow)
        most = 0
        while back.viewer.state != "current":
            await back.box.until(lambda: len(back.viewer.unacknowledged or ()) >= 2)
            most = max(most, len(unacknowledged(back)))
            back.viewer.acknowledge(unacknowledged(back)[0])
            if back.box.of("commit")[-1]["final"]:
                back.viewer.acknowledge(2**53)
                await becomes(lambda: back.viewer.state == "current")
        assert most == 2
        commits = [one["seq"] for one in back.box.of("commit")]
        assert commits == [one["seq"] for one in first.box.of("commit")]
        assert back.screen.canonical() == first.screen.canonical()


def unacknowledged(renderer: Renderer) -> list[int]:
    found = renderer.viewer.unacknowledged
    assert found is not None
    return found


async def test_replay_waits_for_the_surfaces_of_the_object_dialect() -> None:
    """The same by `frame_ack`; what waits is bounded by what a renderer may be behind."""
    async with running(framed) as hub:
        HUBS.append(hub)
        first = await Renderer(hub).join()
        epoch, seq = place(first)
        await said(hub, first, "go")
        display = Display(hub, has_conversation=True, resumes=("s", None), since=(epoch, seq))
        display.displays = False
        async with display:
            await display.open()
            await display.until(lambda: display.most_pending == 2)
            await settled(hub)
            assert display.most_pending == 2
            display.displays = True
            display.end.displayed(display.names["main"])
            await display.flush()
            await display.until(lambda: display.finals)
            commits = [one for one in display.places if one is not None]
        assert display.most_pending == 2
        assert commits == [one["seq"] for one in first.box.of("commit")]
