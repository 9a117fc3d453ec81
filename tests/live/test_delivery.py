"""Renderers join, fall behind and come back; each sees what one sees that never left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from arp import Turn, ui
from arp.hub.hub import Hub
from arp.live.settings import HubSettings
from arp.protocol.limits import RendererLimits
from tests.hub.rig import ALL, FEATURES, HeldStore, Renderer, running, settled, shown


class Stepper:
    """An agent that says one word, or sets a title, each time a test lets it."""

    def __init__(self) -> None:
        self.steps: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, turn: Turn) -> None:
        turn.show(ui.table(["n"], [[1]], id="table"))
        while (word := await self.steps.get()) != "end":
            if word.startswith("frame "):
                async with turn.frame():
                    turn.patch("table", "props.title", word.removeprefix("frame "))
            elif word.startswith("title "):
                turn.patch("table", "props.title", word.removeprefix("title "))
            else:
                await turn.say(word)
            self.steps.task_done()

    async def step(self, hub: Hub, word: str) -> None:
        """Lets it do one thing, until that is delivered."""
        self.steps.put_nowait(word)
        await self.steps.join()
        await settled(hub)


@pytest.fixture
def agent() -> Stepper:
    return Stepper()


async def begun(hub: Hub, *renderers: Renderer) -> None:
    """Starts the turn and waits until its table stands on every renderer."""
    await renderers[0].say("go")
    for renderer in renderers:
        await renderer.box.has("render")
        await renderer.box.has("commit")


async def ended(agent: Stepper, *renderers: Renderer) -> None:
    agent.steps.put_nowait("end")
    for renderer in renderers:
        await renderer.ended("t1")


async def test_renderer_that_joins_in_the_middle_sees_what_the_first_sees(agent: Stepper) -> None:
    """protocol.md 2.3: a snapshot mid-stream, then live deltas, end in the same screen."""
    async with running(agent) as hub:
        first = await Renderer(hub).join()
        await begun(hub, first)
        await agent.step(hub, "one ")
        await agent.step(hub, "two ")
        late = await Renderer(hub).join()
        await agent.step(hub, "three ")
        await agent.step(hub, "title T")
        await agent.step(hub, "four")
        await ended(agent, first, late)
    targets = [one["payload"].get("target") for one in late.box.of("delta")]
    assert late.box.of("session")[0]["resume"] == "snapshot"
    assert late.screen.canonical() == first.screen.canonical()
    assert late.screen.text("t1") == "one two three four"
    assert targets == ["t1/1", "t1/1"]
    assert [one["payload"].get("target") for one in first.box.of("delta")] == [None] * 4


async def test_late_renderer_finds_everything_where_it_happened() -> None:
    """Tools, thinking, answers, errors: by a snapshot, and by a catch-up of one that was slow."""

    async def agent(turn: Turn) -> None:
        turn.think("hm ")
        await turn.say("Let me look")
        async with turn.tool("first"):
            await turn.say(", then")
        turn.show(ui.text("x", id="x"))
        async with turn.tool("second"):
            turn.think("so ")
        await turn.confirm("Sure?", id="q")
        turn.remove("x")
        await turn.say("Done.")
        raise ZeroDivisionError

    features = [*FEATURES, "thinking", "tool-detail"]
    async with running(agent) as hub:
        first = await Renderer(hub, features=features).join()
        slow = await Renderer(hub, features=features).join()
        await first.say("go")
        await slow.box.has("delta")
        slow.box.buffered = 1 << 20
        await first.box.has("turn", status="waiting")
        await first.send("action", {"action": "confirm"}, source_component="q")
        await first.ended("t1")
        late = await Renderer(hub, features=features).join()
        slow.box.buffered = 0
        slow.viewer.drained()
        await slow.box.has("commit", final=True)
    story = first.screen.canonical()["turns"]["t1"]["story"]
    assert story == [
        *("input 0", "thinking 0", "Let me look", "tool 0", ", then", "tool 1"),
        *("component 1", "input 1", "Done.", "error 0"),
    ]
    assert late.screen.canonical() == first.screen.canonical()
    assert slow.screen.canonical() == first.screen.canonical()


async def test_client_that_ignores_target_shows_the_same_text(agent: Stepper) -> None:
    """A plain client appends each delta to what it shows of the turn."""
    async with running(agent) as hub:
        first = await Renderer(hub).join()
        await begun(hub, first)
        await agent.step(hub, "one ")
        late = await Renderer(hub, components=["text"], features=[]).join()
        await agent.step(hub, "two ")
        await ended(agent, first, late)
    rendered = [part for one in late.box.of("render") for part in one["components"]]
    plain = "".join(part["props"]["content"] for part in rendered if "/" in part["id"])
    assert plain + late.box.said() == "one two "


async def test_only_the_last_commit_of_a_snapshot_carries_seq(agent: Stepper) -> None:
    """Until it comes, the renderer's new screen is not complete."""
    async with running(agent) as hub:
        first = await Renderer(hub).join()
        await begun(hub, first)
        await ended(agent, first)
        await settled(hub)
        late = await Renderer(hub).join()
    placed = [one["type"] for one in late.box.messages if one.get("seq") is not None]
    assert placed == ["session", "commit"]
    assert late.box.messages[-1]["seq"] == late.box.of("session")[0]["seq"]


async def test_renderers_that_take_a_snapshot_slowly_share_its_frames(agent: Stepper) -> None:
    """Turns that are over are encoded once, as long as somebody waits for them."""

    async def join(hub: Hub, *, waits: bool, components: Sequence[str] = ALL) -> Renderer:
        late = Renderer(hub, components=components)
        late.box.buffered = 1 if waits else 0
        return await late.join()

    async with running(agent) as hub:
        first = await Renderer(hub).join()
        await begun(hub, first)
        await agent.step(hub, "said ")
        await ended(agent, first)
        await settled(hub)
        one, two, other = [
            await join(hub, waits=True),
            await join(hub, waits=True),
            await join(hub, waits=True, components=["text"]),
        ]
        shared = one.viewer.shared
        same = {id(frame) for frame in one.box.frames} & {id(frame) for frame in two.box.frames}
        foreign = {id(frame) for frame in one.box.frames} & {
            id(frame) for frame in other.box.frames
        }
        for viewer in (one.viewer, two.viewer):
            viewer.drained()
        three = await join(hub, waits=False)
    assert shared is not None
    assert two.viewer.shared is None
    assert len(same) == len(one.box.frames) - 2  # all but `session` and the last commit
    assert not foreign
    assert three.viewer.shared is None
    assert three.screen.canonical() == one.screen.canonical() == first.screen.canonical()


async def test_second_hello_while_the_first_is_answered_sends_everything_once(
    agent: Stepper,
) -> None:
    """A renderer may say hello again; architecture.md, invariant 3: a message is applied once."""
    store = HeldStore()
    async with running(agent, store=store) as hub:
        first = await Renderer(hub).join()
        await begun(hub, first)
        late = Renderer(hub)
        store.hold()
        await hub.hello(late.viewer, late.hello, late.principal, "agent")
        await store.waiting.wait()
        await asyncio.sleep(0)
        await hub.hello(late.viewer, late.hello, late.principal, "agent")
        store.release()
        await late.box.has("session")
        await settled(hub)
        await agent.step(hub, "once ")
        await ended(agent, first, late)
    assert late.box.said() == "once "
    assert len(late.box.of("session")) == 1
    assert late.screen.canonical() == first.screen.canonical()


async def test_renderer_whose_buffer_is_full_gets_nothing_then_one_catch_up(agent: Stepper) -> None:
    """protocol.md 2.4: when it drains, it gets one catch-up commit to the newest state."""
    settings = HubSettings(high_water_bytes=1024, stop_grace_s=0.05)
    async with running(agent, settings=settings) as hub:
        first, slow = await Renderer(hub).join(), await Renderer(hub).join()
        await begun(hub, first, slow)
        await agent.step(hub, "one ")
        slow.box.buffered = 1025
        for word in ("two ", "title A", "three ", "title B"):
            await agent.step(hub, word)
        kept = len(slow.box.messages)
        states = slow.viewer.state
        slow.box.buffered = 0
        slow.viewer.drained()
        await settled(hub)
        caught = slow.box.messages[kept:]
        await agent.step(hub, "four")
        await ended(agent, first, slow)
    assert states == "behind"
    assert [one["type"] for one in caught if one["type"] == "commit"] == ["commit"]
    assert caught[-1]["type"] == "commit"
    assert slow.screen.canonical() == first.screen.canonical()
    assert slow.screen.text("t1") == "one two three four"


async def test_draining_twice_brings_a_renderer_back_once(agent: Stepper) -> None:
    """Its catch-up is on its way when it drains again; nothing comes twice."""
    store = HeldStore()
    settings = HubSettings(high_water_bytes=1024, stop_grace_s=0.05)
    async with running(agent, store=store, settings=settings) as hub:
        first, slow = await Renderer(hub).join(), await Renderer(hub).join()
        await begun(hub, first, slow)
        slow.box.buffered = 1025
        await agent.step(hub, "one ")
        slow.box.buffered = 0
        store.hold()
        agent.steps.put_nowait("two ")
        slow.viewer.drained()
        await store.waiting.wait()
        slow.viewer.drained()
        store.release()
        await settled(hub)
        slow.viewer.drained()
        await agent.step(hub, "three")
        await ended(agent, first, slow)
    assert slow.screen.canonical() == first.screen.canonical()
    assert slow.screen.text("t1") == "one two three"
    assert len(slow.box.of("session")) == 1


async def test_unacknowledged_commits_hold_a_renderer_back(agent: Stepper) -> None:
    """protocol.md 2.4: with `max_pending_commits` unacknowledged it gets no intermediate commit."""
    async with running(agent) as hub:
        first = await Renderer(hub).join()
        acking = await Renderer(hub, features=[*FEATURES, "frame-ack"]).join()
        await begun(hub, first, acking)
        for number in range(6):
            await agent.step(hub, f"title {number}")
        held = acking.box.of("commit")
        acking.viewer.acknowledge(held[-1]["seq"])
        await settled(hub)
        caught = acking.box.of("commit")[len(held) :]
        for number in range(6, 9):
            await agent.step(hub, f"title {number}")
        pending = acking.box.of("commit")[len(held) :]
        acking.viewer.acknowledge(2**53)
        await settled(hub)
        await ended(agent, first, acking)
    assert len(held) == 2
    assert len(caught) == 1
    assert len(pending) == 2
    assert acking.screen.canonical() == first.screen.canonical()


async def test_more_commits_than_may_be_pending_come_as_one(agent: Stepper) -> None:
    """Commits that became durable together: at most `max_pending_commits` are unacknowledged."""
    store = HeldStore()
    async with running(agent, store=store) as hub:
        first = await Renderer(hub).join()
        acking = await Renderer(hub, features=[*FEATURES, "frame-ack"]).join()
        await begun(hub, first, acking)
        acking.viewer.acknowledge(2**53)
        before = len(acking.box.of("commit"))
        store.hold()
        for number in range(5):
            agent.steps.put_nowait(f"frame {number}")
            await agent.steps.join()
        store.release()
        await settled(hub)
        await settled(hub)
        pending = acking.viewer.unacknowledged
        caught = len(acking.box.of("commit")) - before
        shown = acking.screen.surfaces["main"].component("table").props["title"]
        acking.viewer.acknowledge(2**53)
        await ended(agent, first, acking)
    assert pending is not None
    assert len(pending) <= 2
    assert 1 <= caught <= 2
    assert shown == "4"
    assert acking.screen.canonical() == first.screen.canonical()


async def test_acknowledging_one_of_two_lets_one_more_come(agent: Stepper) -> None:
    """At most `max_pending_commits` are ever unacknowledged, catch-ups included."""
    async with running(agent) as hub:
        acking = await Renderer(hub, features=[*FEATURES, "frame-ack"]).join()
        await begun(hub, acking)
        await agent.step(hub, "title A")
        await agent.step(hub, "title B")
        commits = acking.box.of("commit")
        acking.viewer.acknowledge(commits[0]["seq"])
        await settled(hub)
        await agent.step(hub, "title C")
        await agent.step(hub, "title D")
        total = acking.box.of("commit")
        acking.viewer.acknowledge(total[-1]["seq"])
        await settled(hub)
        await ended(agent, acking)
    assert len(commits) == 2
    assert len(total) == 3
    table = acking.screen.surfaces["main"].component("table")
    assert table.props["title"] == "D"


async def test_acknowledgement_of_a_renderer_that_did_not_offer_it_is_passed_over(
    agent: Stepper,
) -> None:
    """`ack` belongs to feature `frame-ack`."""
    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await begun(hub, renderer)
        renderer.viewer.acknowledge(1)
        await ended(agent, renderer)
    assert renderer.viewer.unacknowledged is None


async def test_renderer_that_asks_for_a_slower_pace_gets_commits_merged(agent: Stepper) -> None:
    """protocol.md 2.2: `max_commits_per_s` is honoured, more are merged."""
    limits = RendererLimits(max_commits_per_s=20)
    async with running(agent) as hub:
        first = await Renderer(hub).join()
        paced = await Renderer(hub, limits=limits).join()
        loop = asyncio.get_running_loop()
        began = loop.time()
        await begun(hub, first, paced)
        for number in range(40):
            await agent.step(hub, f"title {number}")
            paced.viewer.drained()
        await ended(agent, first, paced)
        took = loop.time() - began
    commits = len(paced.box.of("commit"))
    assert commits <= 2 + took * 20
    assert commits < len(first.box.of("commit"))
    assert paced.screen.canonical() == first.screen.canonical()


async def test_pace_holds_also_behind_a_catch_up(agent: Stepper) -> None:
    """A catch-up is a commit: the next one comes no sooner behind it than behind any other."""
    async with running(agent) as hub:
        paced = await Renderer(hub, limits=RendererLimits(max_commits_per_s=0.001)).join()
        await begun(hub, paced)
        await agent.step(hub, "title A")
        paced.viewer.state = "behind"
        paced.viewer.drained()
        await settled(hub)
        caught = len(paced.box.of("commit"))
        await agent.step(hub, "title B")
        await agent.step(hub, "word")
        after = len(paced.box.of("commit"))
    assert (caught, after) == (2, 2)


@pytest.mark.parametrize("rate", [5e-324, 1e300])
async def test_strange_pace_of_one_renderer_is_no_matter_to_the_others(
    agent: Stepper, rate: float
) -> None:
    """architecture.md, invariant 5: a slow renderer delays nobody."""
    async with running(agent) as hub:
        strange = await Renderer(hub, limits=RendererLimits(max_commits_per_s=rate)).join()
        other = await Renderer(hub).join()
        await begun(hub, other, strange)
        await agent.step(hub, "word")
        await ended(agent, other)
    assert other.box.said() == "word"


async def test_renderer_that_left_gets_nothing_more(agent: Stepper) -> None:
    """A join that was on its way ends with its renderer."""
    store = HeldStore()
    async with running(agent, store=store) as hub:
        first = await Renderer(hub).join()
        gone = Renderer(hub)
        store.hold()
        await hub.hello(gone.viewer, gone.hello, gone.principal, "agent")
        await store.waiting.wait()
        gone.leave()
        store.release()
        await settled(hub)
        watching = list(hub.sessions["s"].viewers)
    assert gone.box.frames == []
    assert watching == [first.viewer.id]


async def test_degraded_renderer_that_is_behind_catches_up_in_its_own_form(agent: Stepper) -> None:
    """A catch-up is degraded by the renderer's profile as everything else is."""
    settings = HubSettings(high_water_bytes=1024, stop_grace_s=0.05)
    async with running(agent, settings=settings) as hub:
        slow = await Renderer(hub, components=["text"]).join()
        whole = await Renderer(hub, components=["text"]).join()
        await begun(hub, slow, whole)
        slow.box.buffered = 1025
        await agent.step(hub, "title A")
        await agent.step(hub, "word")
        slow.box.buffered = 0
        slow.viewer.drained()
        await settled(hub)
        await ended(agent, slow, whole)
    kinds = {part["type"] for one in slow.box.of("render") for part in one["components"]}
    assert kinds == {"text"}
    assert slow.screen.canonical() == whole.screen.canonical()


@pytest.mark.parametrize("resume", [("other", 1), (None, 0), ("same", 10**6), ("same", 2**53)])
async def test_place_that_the_log_does_not_have_gets_a_snapshot(
    agent: Stepper, resume: tuple[str | None, int]
) -> None:
    """protocol.md 2.3, T31: wrong epoch, seq too high."""
    async with running(agent) as hub:
        first = await Renderer(hub).join()
        await begun(hub, first)
        epoch = first.box.of("session")[0]["epoch"] if resume[0] == "same" else resume[0]
        late = await Renderer(hub).join(epoch, resume[1])
        await ended(agent, first, late)
    assert late.box.of("session")[0]["resume"] == "snapshot"
    assert late.screen.canonical() == first.screen.canonical()


async def test_frames_are_shared_by_renderers_of_one_kind(agent: Stepper) -> None:
    """architecture.md, 6: encoded once per profile and codec and shared."""
    async with running(agent) as hub:
        one, two = await Renderer(hub).join(), await Renderer(hub).join()
        await begun(hub, one, two)
        await agent.step(hub, "word")
        await ended(agent, one, two)
    shared = {id(frame) for frame in one.box.frames} & {id(frame) for frame in two.box.frames}
    words = [frame for frame in one.box.frames if b'"word"' in frame]
    assert len(words) == 1
    assert {id(frame) for frame in words} <= shared


async def test_thinking_reaches_only_those_who_ask_for_it() -> None:
    """protocol.md 2.1: `kind: "thinking"` goes only to renderers with feature `thinking`."""

    async def agent(turn: Turn) -> None:
        turn.think("hm ")
        await turn.say("so")

    async with running(agent) as hub:
        plain = await Renderer(hub).join()
        curious = await Renderer(hub, features=[*FEATURES, "thinking", "tool-detail"]).join()
        await plain.say("go")
        for renderer in (plain, curious):
            await renderer.ended("t1")
        late = await Renderer(hub, features=[*FEATURES, "thinking", "tool-detail"]).join()
    assert (plain.screen.turns["t1"].thinking, curious.screen.turns["t1"].thinking) == ("", "hm ")
    assert late.screen.turns["t1"].thinking == "hm "
    assert plain.box.said() == "so"


async def test_every_kind_of_renderer_ends_with_the_same_words() -> None:
    """N renderers with different profiles, one session, one truth."""

    async def agent(turn: Turn) -> None:
        for number in range(5):
            await turn.say(f"{number} ")
            turn.show(ui.table(["n"], [[number]], id="table"))
            await asyncio.sleep(0)

    kinds: list[dict[str, Any]] = [
        {"components": ALL},
        {"components": ["text"]},
        {"components": ["text"], "features": []},
        {"limits": RendererLimits(max_table_rows=1)},
        {"features": [*FEATURES, "batch"]},
    ]
    async with running(agent) as hub:
        renderers = [await Renderer(hub, **kind).join() for kind in kinds]
        await renderers[0].say("go")
        for renderer in renderers:
            await renderer.ended("t1")
        texts = [renderer.screen.text("t1") for renderer in renderers]
        fresh = [await Renderer(hub, **kind).join() for kind in kinds]
    assert texts == ["0 1 2 3 4 "] * len(kinds)
    for before, after in zip(renderers, fresh, strict=True):
        assert shown(after.box.frames).canonical() == before.screen.canonical()
