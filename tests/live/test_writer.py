"""Nothing is seen that is not durable, and one write serves all who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from arp import Turn, ui
from arp.hub.hub import Hub
from arp.live.delivery import SessionDelivery
from arp.protocol.errors import SurfaceDestroyed
from arp.session.recording.log import Log
from arp.store.errors import InvalidWrite
from arp.store.store import Refusals
from tests.hub.rig import BROKEN, HeldStore, Renderer, running, settled, started
from tests.support.waiting import becomes


async def test_nothing_leaves_before_it_is_durable() -> None:
    """architecture.md, how a turn flows, 5: nothing is seen that is not durable."""
    store = HeldStore()
    said = asyncio.Event()

    async def agent(turn: Turn) -> None:
        store.hold()
        await turn.say("not yet")
        turn.show(ui.text("neither", id="x"))
        said.set()

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go", id="i1")
        await said.wait()
        await store.waiting.wait()
        before = list(renderer.box.messages)
        store.release()
        await renderer.ended("t1")
    assert [message["type"] for message in before] == ["session", "input", "turn", "ack"]
    assert renderer.box.said() == "not yet"


async def test_acknowledgement_waits_for_the_disk() -> None:
    """protocol.md 2.1: `ack` = accepted and durable."""
    store = HeldStore()
    async with running(store=store) as hub:
        renderer = await Renderer(hub).join()
        store.hold()
        await renderer.say("go", id="i1")
        await store.waiting.wait()
        await asyncio.sleep(0)
        before = renderer.box.of("ack")
        store.release()
        ack = await renderer.box.has("ack")
    assert before == []
    assert (ack["id"], ack["turn_id"]) == ("i1", "t1")


async def test_agent_starts_when_its_turn_is_durable() -> None:
    """An agent that has begun can be read from the ledger."""
    store = HeldStore()
    began: list[str] = []

    async def agent(turn: Turn) -> None:
        began.append(turn.id)

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        store.hold()
        await renderer.say("go")
        await store.waiting.wait()
        await asyncio.sleep(0)
        before = list(began)
        store.release()
        await renderer.ended("t1")
    assert before == []
    assert began == ["t1"]


async def test_deltas_that_gather_during_a_write_become_one_fact() -> None:
    """architecture.md, 5: neighbouring deltas merge by themselves under load."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        await turn.say("first ")
        await settled(hub)
        store.hold()
        await turn.say("a")
        await store.waiting.wait()
        for letter in "bcdef":
            await turn.say(letter)
            await asyncio.sleep(0)
        store.release()

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        facts = await store.facts()
    texts = [fact.payload["text"] for fact in facts if fact.type == "model.delta"]
    assert texts == ["first ", "a", "bcdef"]
    assert [one["payload"]["delta"] for one in renderer.box.of("delta")] == texts


async def test_one_write_serves_every_session_that_waits() -> None:
    """The cost of durability is paid per write, not per session."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        await turn.say("x")

    async with running(agent, store=store) as hub:
        renderers = [await Renderer(hub, f"s{number}").join() for number in range(5)]
        store.hold()
        await renderers[0].say("go")
        await store.waiting.wait()
        before = len(store.appends)
        for renderer in renderers[1:]:
            await renderer.say("go")
        store.release()
        for renderer in renderers:
            await renderer.ended("t1")
        together = {append.session_id for append in store.appends[before + 1]}
    assert {"s1", "s2", "s3", "s4"} <= together


async def test_sequences_have_no_holes_and_no_repeats() -> None:
    """architecture.md, invariant 3."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        for number in range(30):
            await turn.say("x")
            turn.show(ui.text(str(number)))
            await asyncio.sleep(0)

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        facts = await store.facts()
    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))
    seqs = [one["seq"] for one in renderer.box.messages if one.get("seq")]
    assert seqs == sorted(seqs)


async def test_store_that_refuses_tells_renderers_and_lets_the_session_go() -> None:
    """G8: fail closed; nothing undurable was seen, the renderer is told to come back."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        store.error = BROKEN
        await turn.say("never durable")
        await asyncio.Event().wait()

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.until(lambda: renderer.box.closed is not None)
        error = renderer.box.of("error")[-1]["payload"]
        store.error = None
    assert renderer.box.closed == (1013, "the ledger cannot be written")
    assert renderer.box.said() == ""
    assert error["code"] == 19
    assert error["retryable"] is True
    assert "ledger cannot be written" in error["error"]


async def test_session_goes_on_when_the_disk_is_back() -> None:
    """F04: recovery without restart; the turn that was lost is closed as interrupted."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        if turn.text == "break":
            store.error = BROKEN
            await turn.say("lost")
            await asyncio.Event().wait()
        await turn.say("fine")

    async with running(agent, store=store) as hub:
        first = await Renderer(hub).join()
        await first.say("break")
        await first.box.until(lambda: first.box.closed is not None)
        store.error = None
        second = await Renderer(hub).join()
        await second.say("again")
        status = await second.ended("t2")
        facts = await store.facts()
    ends = {fact.turn_id: fact.status_reason for fact in facts if fact.type == "turn.failed"}
    assert status == "completed"
    assert ends == {"t1": "interrupted"}
    assert second.screen.text("t1") == ""
    assert second.screen.text("t2") == "fine"


async def test_input_whose_write_failed_takes_effect_once_when_it_comes_again() -> None:
    """G4: what was not acknowledged may be sent again with the same id."""
    store = HeldStore()
    async with running(store=store) as hub:
        first = await Renderer(hub).join()
        store.error = BROKEN
        await first.say("go", id="i1")
        await first.box.until(lambda: first.box.closed is not None)
        store.error = None
        second = await Renderer(hub).join()
        await second.say("go", id="i1")
        await second.say("go", id="i1")
        await second.ended("t1")
        facts = await store.facts()
    assert first.box.of("ack") == []
    assert [one["turn_id"] for one in second.box.of("ack")] == ["t1", "t1"]
    assert [fact.turn_id for fact in facts if fact.type == "turn.submitted"] == ["t1"]


async def test_reading_goes_on_while_the_disk_refuses() -> None:
    """G8: ledger not writable, reads go on."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        await turn.say("kept")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        await settled(hub)
        store.error = BROKEN
        await renderer.say("more")
        await renderer.box.until(lambda: renderer.box.closed is not None)
        live = await hub.find("s", renderer.principal)
        text = live.session.screen.text("t1")
        listed = [meta.id for meta in await hub.metas(renderer.principal)]
        store.error = None
    assert text == "kept"
    assert listed == ["s"]


async def test_agent_of_a_lost_session_can_show_nothing_more() -> None:
    """Its turn is over: what it says after its cancel is refused, not kept in memory."""
    store = HeldStore()
    seen: list[str] = []
    over = asyncio.Event()

    async def agent(turn: Turn) -> None:
        store.error = BROKEN
        await turn.say("lost")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with pytest.raises(SurfaceDestroyed):
                await turn.say("too late")
            seen.append("refused")
            over.set()
            raise

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        async with asyncio.timeout(30):
            await over.wait()
        store.error = None
    assert seen == ["refused"]


@pytest.mark.parametrize("step", ["drain", "append", "deliver"])
async def test_fault_in_one_session_does_not_stop_the_loop_that_serves_all(
    step: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One session's fault must not stop the loop that serves all."""
    store = HeldStore()
    async with running(store=store) as hub:
        bad, good = await Renderer(hub, "bad").join(), await Renderer(hub, "good").join()
        break_step(step, hub, store, monkeypatch)
        await bad.say("go")
        await bad.box.until(lambda: bad.box.closed is not None)
        monkeypatch.undo()
        await good.say("go")
        status = await good.ended("t1")
    assert status == "completed"
    assert bad.box.closed is not None
    assert bad.box.closed[0] == 1011
    assert bad.box.of("error")[-1]["payload"]["code"] == 19
    assert "fault of ours" not in str(bad.box.messages)
    assert "fault of ours" in caplog.text


class Odd(str):
    """A text that no encoder takes: what got past the border once."""


@pytest.mark.parametrize("ends_at_once", [True, False])
async def test_turn_whose_text_cannot_be_written_fails_and_the_next_one_runs(
    ends_at_once: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """No fact of it is stored that nobody can read."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        if turn.text == "odd":
            await turn.say("good ")
            await settled(hub)
            live = hub.sessions["s"]
            live.before_write(lambda: live.session.say(turn.id, Odd("x")))
            await asyncio.sleep(0 if ends_at_once else 60)
        await turn.say("fine")

    async with running(agent, store=store) as hub:
        before = await Renderer(hub).join()
        await before.say("odd")
        await before.say("next")
        await before.box.until(lambda: before.box.closed is not None)
        renderer = await Renderer(hub).join()
        ended = [await renderer.ended("t1"), await renderer.ended("t2")]
        facts = await store.facts()
        errors = [one.payload for one in facts if one.type == "runtime.error"]
    assert ended == ["failed", "completed"]
    assert before.box.closed == (1011, "internal error")
    assert renderer.screen.text("t1") == "good "
    assert renderer.screen.text("t2") == "fine"
    assert [one["code"] for one in errors] == [19]
    assert "session s" in caplog.text


async def test_session_that_has_a_fault_again_and_again_is_not_read_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where nothing was written since, it comes back when somebody asks."""
    async with running() as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        reads: list[str] = []
        load, drain = hub.directory.load, Log.drain

        async def counted(session_id: str) -> Any:
            reads.append(session_id)
            live = await load(session_id)
            assert live is not None
            live.mark()
            return live

        monkeypatch.setattr(hub.directory, "load", counted)
        monkeypatch.setattr(Log, "drain", lambda *_: 1 / 0)
        hub.sessions["s"].mark()
        await becomes(lambda: reads == ["s"] and "s" not in hub.sessions)
        await settled(hub)
        assert reads == ["s"]
        monkeypatch.setattr(Log, "drain", drain)
        again = await Renderer(hub).join()
        await again.say("go")
        assert await again.ended("t2") == "completed"


async def test_fault_closes_the_questions_of_its_turn_and_comes_back_unasked() -> None:
    """Nobody is connected; the turn ends all the same."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        asked = asyncio.ensure_future(turn.confirm("Sure?"))
        await asyncio.sleep(0)
        await settled(hub)
        hub.sessions["s"].session.record("runtime.warning", {"message": object()})
        hub.sessions["s"].mark()
        await asked

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.until(lambda: renderer.box.closed is not None)
        renderer.leave()
        await becomes(lambda: "s" in hub.sessions and hub.sessions["s"].session.running is None)
        await settled(hub)
        assert hub.sessions["s"].session.status_of("t1") == "failed"
        assert not hub.sessions["s"].session.questions


def break_step(step: str, hub: Hub, store: HeldStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes one step of the write raise what nobody expects, for the session `bad`."""
    bad = hub.sessions["bad"]
    if step == "append":
        monkeypatch.setattr(store, "append", failing(store.append))
    elif step == "drain":
        monkeypatch.setattr(Log, "drain", faulty(Log.drain, bad.session.log))
    else:
        monkeypatch.setattr(
            SessionDelivery, "deliver", faulty(SessionDelivery.deliver, bad.delivery)
        )


def faulty(method: Callable[..., Any], bad: object) -> Callable[..., Any]:
    def broken(self: object, *arguments: Any) -> Any:
        if self is bad:
            raise TypeError("fault of ours")
        return method(self, *arguments)

    return broken


def failing(append: Callable[..., Any]) -> Callable[..., Any]:
    async def broken(batch: Any, together: Any = (), **options: Any) -> Refusals:
        good = [one for one in batch if one.session_id != "bad"]
        refused: Refusals = await append(good, together, **options)
        if len(good) < len(batch):
            refused["bad"] = InvalidWrite("fault of ours")
        return refused

    return broken


async def test_rows_of_the_list_change_only_when_a_list_would_show_it() -> None:
    """A delta alone does not write the session's row."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        for _ in range(5):
            await turn.say("x")
            await settled(hub)

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("A title")
        await renderer.ended("t1")
        rows = [one.meta for batch in store.appends for one in batch if one.meta is not None]
        metas = await hub.metas(renderer.principal)
    assert [(row.title, row.turn_count, row.active) for row in rows] == [
        ("", 0, False),
        ("A title", 1, True),
        ("A title", 1, False),
    ]
    assert metas[0].title == "A title"
    assert metas[0].turn_count == 1


async def test_closing_writes_what_is_left() -> None:
    """`aclose`: nothing that was recorded is lost."""
    store = HeldStore()
    async with running(store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
    await store.open()
    facts = await store.facts()
    assert next(fact.type for fact in facts if fact.type.startswith("turn.")) == "turn.submitted"


async def test_closing_waits_for_the_write_that_is_under_way() -> None:
    """What it makes durable is delivered before the connections are closed."""
    store = HeldStore()
    hub = await started(store=store)
    renderer = await Renderer(hub).join()
    store.hold()
    await renderer.say("go", id="i1")
    await store.waiting.wait()
    closing = asyncio.ensure_future(hub.aclose())
    for _ in range(20):
        await asyncio.sleep(0)
    early = closing.done()
    store.release()
    await closing
    assert early is False
    assert [one["id"] for one in renderer.box.of("ack")] == ["i1"]
    assert renderer.box.closed == (1012, "restarting")


async def test_turnover_is_over_when_what_was_recorded_is_delivered() -> None:
    """Not when an older write is, nor when the right one has only begun."""
    store = HeldStore()
    async with running(store=store) as hub:
        renderer = await Renderer(hub).join()
        await settled(hub)
        store.hold()
        await renderer.say("one", id="i1")
        await store.waiting.wait()
        await renderer.say("two", id="i2")
        waiting = asyncio.ensure_future(hub.writer.turnover())
        await asyncio.sleep(0)
        store.release()
        await waiting
        acks = [one["id"] for one in renderer.box.of("ack")]
    assert acks == ["i1", "i2"]


async def test_what_comes_during_a_write_waits_for_the_next_and_is_done_once() -> None:
    """An acknowledgement must not ride on a write that began before its input."""
    store = HeldStore()
    spoken, released = asyncio.Event(), asyncio.Event()

    async def agent(turn: Turn) -> None:
        if turn.text == "more":
            return
        await settled(hub)
        store.hold()
        await turn.say("x")
        spoken.set()
        await released.wait()

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await spoken.wait()
        await store.waiting.wait()
        await renderer.say("more", id="i1")
        before = len(store.appends)
        acks: list[int] = []
        hub.sessions["s"].after_write(lambda: acks.append(len(store.appends) - before))
        store.release()
        await settled(hub)
        released.set()
        await renderer.ended("t2")
    assert acks == [2]
    assert [one["id"] for one in renderer.box.of("ack")] == ["i1"]
