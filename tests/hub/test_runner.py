"""One task a turn, and whatever happens in it, the turn ends exactly once."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable
from typing import Any, cast

import pytest

from arp import Turn, ui
from arp.hub.hub import Hub
from arp.hub.runner import Handler, HubApp
from arp.ledger.fact import decode
from arp.live.settings import HubSettings
from arp.protocol.errors import SurfaceDestroyed
from arp.record.end_cause import EndCause
from arp.store.blobs import MemoryBlobs
from arp.store.memory import MemoryStore
from tests.hub.rig import HeldStore, Renderer, quiet, running, settled, started

FAILED = "The agent failed. The server's log has the reason."


async def forever(turn: Turn) -> None:
    await turn.say("working")
    await asyncio.Event().wait()


def ends(renderer: Renderer, turn_id: str = "t1") -> list[Any]:
    """Return the final commits of a turn."""
    commits = renderer.box.of("commit")
    return [one for one in commits if one["final"] and one["turn_id"] == turn_id]


class Odd(BaseException):
    """What no library raises."""


async def test_the_user_reads_which_limit_an_agent_exceeded() -> None:
    async def agent(turn: Turn) -> None:
        turn.show(ui.code_block("x" * 1_100_000, id="all"))

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
    (error,) = (one["payload"]["error"] for one in renderer.box.of("error"))
    assert re.fullmatch(
        r"The agent failed: .*component 'all' would have 11\d{5} bytes; at most 1048576\. "
        r"The server's log has more\.",
        error,
    )


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("secret"),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit("secret"),
        Odd("secret"),
        ExceptionGroup("x", [ValueError()]),
        BaseExceptionGroup("x", [KeyboardInterrupt(), asyncio.CancelledError()]),
    ],
)
async def test_whatever_an_agent_raises_ends_its_turn_and_nothing_else(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """protocol.md 2.1: `error` has no stack trace and no secret; the log has the traceback."""

    async def agent(turn: Turn) -> None:
        if turn.text == "fail":
            raise error
        await turn.say("fine")

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("fail")
        failed = await renderer.ended("t1")
        await renderer.say("go on")
        completed = await renderer.ended("t2")
    payloads = [one["payload"] for one in renderer.box.of("error")]
    assert (failed, completed) == ("failed", "completed")
    assert [(one["code"], one["error"]) for one in payloads] == [(18, FAILED)]
    assert "secret" not in str(renderer.box.messages)
    assert type(error).__name__ in caplog.text
    assert len(ends(renderer)) == 1


async def test_cancel_reaches_the_agent_as_cancelled_error() -> None:
    """protocol.md 2.2: `arp.cancel` stops the running turn; it is no failure."""
    seen: list[str] = []

    async def agent(turn: Turn) -> None:
        try:
            await forever(turn)
        except asyncio.CancelledError:
            await turn.say(" bye")
            seen.append("cancelled")
            raise

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("delta")
        await renderer.cancel(id="stop")
        status = await renderer.ended("t1")
        ack = await renderer.box.has("ack", id="stop")
    assert status == "cancelled"
    assert seen == ["cancelled"]
    assert renderer.box.said() == "working bye"
    assert ack["turn_id"] == "t1"
    assert renderer.box.of("error") == []


async def test_cancel_in_the_same_breath_as_the_input_ends_the_turn_at_once() -> None:
    """The agent's task is cancelled before its first step; nobody waits for a grace."""
    began: list[str] = []

    async def agent(turn: Turn) -> None:
        began.append(turn.id)

    settings = HubSettings(cancel_grace_s=60, stop_grace_s=0.05)
    async with running(agent, settings=settings) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.cancel()
        status = await renderer.ended("t1")
        await renderer.say("again")
        later = await renderer.ended("t2")
    assert (status, later) == ("cancelled", "completed")
    assert began == ["t2"]


async def test_agent_that_raises_while_it_is_cancelled_is_cancelled_not_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F27: exactly one end state; what went wrong in its clean-up stands in the log."""

    async def agent(turn: Turn) -> None:
        try:
            await forever(turn)
        finally:
            raise RuntimeError("clean-up broke")

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("delta")
        await renderer.cancel()
        status = await renderer.ended("t1")
    assert status == "cancelled"
    assert renderer.box.of("error") == []
    assert "clean-up broke" in caplog.text


async def test_agent_that_swallows_its_cancel_and_returns_is_cancelled() -> None:
    """The user stopped it; that it ended well does not make it complete."""

    async def agent(turn: Turn) -> None:
        try:
            await forever(turn)
        except asyncio.CancelledError:
            await turn.say(" stopped")

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("delta")
        await renderer.cancel()
        status = await renderer.ended("t1")
    assert status == "cancelled"
    assert renderer.box.said() == "working stopped"


async def test_agent_that_ignores_its_cancel_is_closed_over_its_head(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After the grace the turn is over: it shows nothing more, and the next one runs."""
    refused: list[str] = []
    free = asyncio.Event()

    async def agent(turn: Turn) -> None:
        if turn.text == "next":
            await turn.say("I am next")
            return
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue
        try:
            await turn.say("too late")
        except SurfaceDestroyed as error:
            refused.append(error.message)

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("turn", status="running")
        await renderer.say("next")
        await renderer.cancel("t1")
        status = await renderer.ended("t1")
        following = await renderer.ended("t2")
        free.set()
        async with asyncio.timeout(30):
            while hub.runner.tasks:
                await asyncio.wait(hub.runner.tasks)
    assert (status, following) == ("cancelled", "completed")
    assert refused == ["turn t1 is over; it can show nothing more"]
    assert renderer.box.said() == "I am next"
    assert len(ends(renderer)) == 1
    assert "did not stop after its cancel" in caplog.text


async def test_cancel_reaches_an_agent_that_was_cancelled_by_itself_before() -> None:
    """Who asks first may be the agent's own code; the grace begins with the user's wish."""

    async def agent(turn: Turn) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        await turn.say("working")
        while not over.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await over.wait()

    over = asyncio.Event()
    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("delta")
        await renderer.cancel()
        assert await renderer.ended("t1") == "cancelled"
        over.set()


async def test_cancel_ends_a_turn_in_which_nobody_works() -> None:
    """However it came about that no agent is there to end it."""
    async with running(forever) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("delta")
        live = hub.sessions["s"]
        host = hub.runner._turns.pop(live)
        await renderer.cancel()
        assert await renderer.ended("t1") == "cancelled"
        host.stop(EndCause.SESSION_LEFT)
        await renderer.say("again")
        await renderer.box.has("turn", turn_id="t2", status="running")


async def test_second_cancel_does_not_disturb_the_clean_up() -> None:
    """F27: a double cancel is one; the agent's `finally` runs to its end."""
    cleaning, released = asyncio.Event(), asyncio.Event()

    async def agent(turn: Turn) -> None:
        try:
            await forever(turn)
        finally:
            cleaning.set()
            await released.wait()
            await turn.say(" clean")

    settings = HubSettings(cancel_grace_s=60, stop_grace_s=0.05)
    async with running(agent, settings=settings) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("delta")
        await renderer.cancel()
        await cleaning.wait()
        await renderer.cancel()
        await settled(hub)
        released.set()
        status = await renderer.ended("t1")
    assert status == "cancelled"
    assert renderer.box.said() == "working clean"
    assert len(ends(renderer)) == 1


async def test_cancel_of_a_queued_turn_leaves_the_running_one_alone() -> None:
    """A queued turn is over at once and never begins."""
    released = asyncio.Event()
    began: list[str] = []

    async def agent(turn: Turn) -> None:
        began.append(turn.id)
        await released.wait()

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        for text in ("one", "two", "three"):
            await renderer.say(text)
        await renderer.box.has("turn", turn_id="t3", status="queued")
        await renderer.cancel("t2")
        second = await renderer.ended("t2")
        released.set()
        statuses = [await renderer.ended("t1"), second, await renderer.ended("t3")]
    assert statuses == ["completed", "cancelled", "completed"]
    assert began == ["t1", "t3"]


async def test_cancel_of_a_turn_that_waits_closes_its_question() -> None:
    """protocol.md 2.2: `props.state` becomes `cancelled`."""

    async def agent(turn: Turn) -> None:
        await turn.confirm("Sure?", id="q")

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("turn", status="waiting")
        await renderer.cancel()
        status = await renderer.ended("t1")
    assert status == "cancelled"
    assert renderer.screen.output("t1")[0].props["state"] == "cancelled"


@pytest.mark.parametrize("turn_id", ["t1", "t9", None])
async def test_cancel_of_what_does_not_run_is_accepted_and_does_nothing(
    turn_id: str | None,
) -> None:
    """A stop button pressed too late is no error."""
    async with running() as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        await renderer.cancel(turn_id, id="stop")
        await renderer.box.has("ack", id="stop")
    assert renderer.box.of("error") == []
    assert len(ends(renderer)) == 1


async def test_session_of_an_agent_that_is_no_more_ends_its_turns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The app was changed between two starts: its old sessions answer, they do not hang."""
    store = MemoryStore()
    async with running(store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
    await store.open()
    hub = Hub(store, MemoryBlobs(), HubApp({"another": quiet}))
    await hub.start()
    renderer = await Renderer(hub).join()
    await renderer.say("still there?")
    status = await renderer.ended("t2")
    await hub.aclose()
    assert status == "failed"
    assert "no agent 'agent'" in caplog.text


async def test_agent_that_is_no_coroutine_fails_with_a_word_on_how_to_write_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The most common slip: `def` without `async`."""

    def agent(_: Turn) -> None:
        return None

    async with running(cast(Handler, agent)) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        status = await renderer.ended("t1")
    assert status == "failed"
    assert "write: async def" in caplog.text


async def test_agent_may_be_anything_that_gives_an_awaitable() -> None:
    """A decorator may hand over a plain function that returns a coroutine."""

    def agent(turn: Turn) -> Awaitable[None]:
        return turn.say("hello")

    async with running(cast(Handler, agent)) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        status = await renderer.ended("t1")
    assert status == "completed"
    assert renderer.box.said() == "hello"


async def test_stop_lets_a_turn_finish_that_soon_will() -> None:
    """architecture.md: finishes or parks turns."""
    store = HeldStore()
    stopping = asyncio.Event()

    async def agent(turn: Turn) -> None:
        await turn.say("nearly ")
        await stopping.wait()
        await turn.say("done")

    hub = await started(agent, store=store, settings=HubSettings(stop_grace_s=5))
    renderer = await Renderer(hub).join()
    await renderer.say("go")
    await renderer.box.has("delta")
    closing = asyncio.ensure_future(hub.aclose())
    await asyncio.sleep(0)
    stopping.set()
    await closing
    await store.open()
    facts = await store.facts()
    assert [fact.type for fact in facts][-1] == "turn.completed"
    assert renderer.screen.text("t1") == "nearly done"
    assert renderer.box.closed == (1012, "restarting")


@pytest.mark.parametrize("calm", ["asks", "ends", "hurry"])
async def test_stop_waits_no_longer_than_for_the_last_turn_that_works(calm: str) -> None:
    """It is told at once that an agent has ended or waits for an answer, or that it is to hurry."""
    stopping = asyncio.Event()

    async def agent(turn: Turn) -> None:
        await turn.say("working")
        await stopping.wait()
        if calm == "asks":
            await turn.confirm("Sure?")
        if calm == "hurry":
            await forever(turn)

    hub = await started(agent, settings=HubSettings(stop_grace_s=1000))
    renderer = await Renderer(hub).join()
    await renderer.say("go")
    await renderer.box.has("delta")
    closing = asyncio.ensure_future(hub.aclose())
    await asyncio.sleep(0)
    stopping.set()
    if calm == "hurry":
        hub.runner.hurry()
    async with asyncio.timeout(10):
        await closing


async def test_stop_interrupts_what_takes_longer_and_says_so() -> None:
    """The turn is closed as interrupted, retryable, before the server is gone."""
    store = HeldStore()
    hub = await started(forever, store=store)
    renderer = await Renderer(hub).join()
    await renderer.say("go")
    await renderer.box.has("delta")
    await hub.aclose()
    await store.open()
    last = (await store.facts())[-1]
    error = renderer.box.of("error")[-1]["payload"]
    assert (last.type, last.status_reason) == ("turn.failed", "interrupted")
    assert error["retryable"] is True
    assert "ask again" in error["error"]


async def test_stop_leaves_a_question_open_that_can_be_answered_later() -> None:
    """Questions stay open over restarts; the late answer is a turn of its own."""
    store = HeldStore()
    answers: list[Any] = []

    async def agent(turn: Turn) -> None:
        if turn.text == "ask":
            await turn.ask(ui.choices(["a", "b"], id="pick"))
        answers.append((turn.input.input_type, turn.input.data.get("selected")))

    hub = await started(agent, store=store, settings=HubSettings(stop_grace_s=60))
    renderer = await Renderer(hub).join()
    await renderer.say("ask")
    await renderer.box.has("turn", status="waiting")
    async with asyncio.timeout(30):
        await hub.aclose()
    async with running(agent, store=store) as again:
        back = await Renderer(again).join()
        state = back.screen.output("t1")[0].props["state"]
        await back.send("selection", {"selected": ["b"]}, source_component="pick")
        await back.ended("t2")
        after = back.screen.output("t1")[0].props
    assert state == "open"
    assert (after["state"], after["answer"]) == ("answered", "b")
    assert answers == [("selection", ["b"])]


async def test_stop_does_not_wait_for_an_agent_that_ignores_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its turn ends without it, and it can show nothing more."""
    monkeypatch.setattr("arp.hub.runner.DEAF_S", 0.05)
    store = HeldStore()
    free = asyncio.Event()

    async def agent(turn: Turn) -> None:
        while not free.is_set():
            try:
                await turn.say("la ")
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                continue

    hub = await started(agent, store=store)
    renderer = await Renderer(hub).join()
    await renderer.say("go")
    await renderer.box.has("delta")
    async with asyncio.timeout(30):
        await hub.aclose()
    free.set()
    await store.open()
    last = (await store.facts())[-1]
    assert (last.type, last.status_reason) == ("turn.failed", "interrupted")


async def test_queue_goes_on_after_a_restart() -> None:
    """What was accepted is done: turns in line begin when the server is back."""
    store = HeldStore()
    hub = await started(forever, store=store)
    renderer = await Renderer(hub).join()
    await renderer.say("one")
    await renderer.say("two")
    await renderer.box.has("turn", turn_id="t2", status="queued")
    await settled(hub)
    facts = await store.facts()
    crashed = HeldStore()
    await crashed.open()
    for append in [one for batch in store.appends for one in batch]:
        await crashed.append([append])
    await hub.aclose()

    async def agent(turn: Turn) -> None:
        await turn.say(f"did {turn.text}")

    async with running(agent, store=crashed) as again:
        back = await Renderer(again).join()
        await back.box.until(lambda: back.screen.turns["t2"].final)
        screen = back.screen
    assert [fact.type for fact in facts].count("turn.started") == 1
    assert screen.turns["t1"].status == "failed"
    assert screen.turns["t2"].status == "completed"
    assert screen.text("t2") == "did two"


@pytest.mark.parametrize(("is_cancelled", "ended"), [(True, "cancelled"), (False, "interrupted")])
async def test_of_a_cancel_and_a_stop_the_first_says_how_the_turn_ended(
    is_cancelled: bool, ended: str
) -> None:
    """An agent that cleans up behind a cancel was cancelled, although the server stops then."""
    cleaning = asyncio.Event()
    store = MemoryStore()

    async def agent(turn: Turn) -> None:
        try:
            async with turn.tool("work"):
                await forever(turn)
        finally:
            cleaning.set()
            if is_cancelled:
                await asyncio.Event().wait()

    async with running(agent, settings=HubSettings(stop_grace_s=0.01), store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("delta")
        if is_cancelled:
            await renderer.cancel()
            await cleaning.wait()
    await store.open()
    facts = [decode(body) for _, body in await store.read("s", 0)]
    (end,) = [fact for fact in facts if fact.type == "turn.failed"]
    assert end.status_reason == ended
    failed = [fact for fact in facts if fact.type == "tool.failed"]
    assert len(failed) == is_cancelled, "a tool that the server interrupts stays as it is"
