"""A question that its agent no longer waits for is withdrawn, and the turn runs on."""

from __future__ import annotations

import asyncio
from typing import Any

from arp import Turn, ui
from arp.hub.hub import Hub
from tests.hub.rig import HeldStore, Renderer, running, settled
from tests.support.waiting import becomes

YES = {"action": "confirm"}


def states(renderer: Renderer) -> list[Any]:
    """Return the statuses of the first turn, as they were told."""
    return [one["status"] for one in renderer.box.of("turn") if one["turn_id"] == "t1"]


def question(renderer: Renderer, name: str = "q") -> Any:
    """Return the props of a question as a renderer shows them."""
    (component,) = [one for one in renderer.screen.output("t1") if one.id == name]
    return component.props


def stop(task: asyncio.Task[Any]) -> None:
    """Cancels a task."""
    task.cancel()


async def asked_in(hub: Hub) -> Renderer:
    """Begins a turn, and waits until it has asked."""
    renderer = await Renderer(hub).join()
    await renderer.say("go")
    await renderer.box.has("turn", status="waiting")
    return renderer


async def test_timeout_withdraws_the_question_on_every_renderer_and_the_turn_runs_on() -> None:
    """protocol.md 2.2: `props.state` is `cancelled`; a fact says so, and the status is running."""
    store, late = HeldStore(), asyncio.Event()

    async def agent(turn: Turn) -> None:
        try:
            async with asyncio.timeout(0.01):
                await turn.confirm("Sure?", id="q")
        except TimeoutError:
            await turn.say("Nobody answered.")
        await late.wait()

    async with running(agent, store=store) as hub:
        renderer = await asked_in(hub)
        other = await Renderer(hub).join()
        await renderer.box.has("delta")
        assert states(renderer) == ["running", "waiting", "running"]
        assert (question(renderer)["state"], question(other)["state"]) == ("cancelled",) * 2
        await renderer.send("action", YES, source_component="q", id="late")
        refused = await renderer.box.has("error")
        late.set()
        assert await renderer.ended("t1") == "completed"
        facts = await store.facts()
    assert refused["payload"]["code"] == 11
    assert refused["payload"]["error"] == 'confirm "q" was cancelled and takes no more answers'
    resolved = [fact.payload for fact in facts if fact.type == "action.resolved"]
    assert resolved == [{"decision": "cancelled", "resumes": True}]
    assert "answer" not in question(renderer)


async def test_agent_may_ask_again_under_the_same_id_after_a_timeout() -> None:
    """The second question is open, and its answer is the agent's."""
    answers: list[Any] = []

    async def agent(turn: Turn) -> None:
        try:
            async with asyncio.timeout(0.01):
                await turn.confirm("Sure?", id="q")
        except TimeoutError:
            answers.append(await turn.confirm("Really?", id="q"))

    async with running(agent) as hub:
        renderer = await asked_in(hub)
        await renderer.box.until(lambda: states(renderer).count("waiting") == 2)
        assert question(renderer)["state"] == "open"
        await renderer.send("action", YES, source_component="q")
        assert await renderer.ended("t1") == "completed"
    assert answers == [True]


async def test_cancel_of_a_task_that_asks_withdraws_its_question_alone() -> None:
    """Two questions are open; the agent gives one up, and the other is answered."""
    answers: list[Any] = []

    async def agent(turn: Turn) -> None:
        first = asyncio.ensure_future(turn.ask(ui.confirm("One?", id="one")))
        second = asyncio.ensure_future(turn.ask(ui.confirm("Two?", id="two")))
        await asyncio.wait({second})
        first.cancel()
        await asyncio.wait({first})
        answers.extend([first.cancelled(), second.result()])

    async with running(agent) as hub:
        renderer = await asked_in(hub)
        await renderer.box.until(lambda: states(renderer).count("waiting") == 2)
        await renderer.send("action", YES, source_component="two")
        assert await renderer.ended("t1") == "completed"
    assert answers == [True, True]
    assert question(renderer, "one")["state"] == "cancelled"
    assert question(renderer, "two")["state"] == "answered"


async def test_permission_in_a_timeout_is_withdrawn_and_not_given() -> None:
    """What nobody answered is no approval; the ledger says that it was cancelled."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        async with turn.tool("shell") as tool:
            try:
                async with asyncio.timeout(0.01):
                    await tool.approve("Run it?", rule="all")
            except TimeoutError:
                tool.result("not run")
        await turn.say("Done.")

    async with running(agent, store=store) as hub:
        renderer = await asked_in(hub)
        assert await renderer.ended("t1") == "completed"
        facts = await store.facts()
    assert question(renderer, "t1-1")["state"] == "cancelled"
    ends = [fact for fact in facts if fact.type in ("action.resolved", "permission.resolved")]
    assert [fact.type for fact in ends] == ["action.resolved", "permission.resolved"]
    assert [fact.payload["decision"] for fact in ends] == ["cancelled", "cancelled"]


async def test_answer_that_was_accepted_before_the_timeout_is_returned() -> None:
    """Everyone sees it as answered, so the agent gets it, however late the disk is."""
    store, answers, turns = HeldStore(), list[Any](), list[Turn]()
    timeouts: list[asyncio.Timeout] = []

    async def agent(turn: Turn) -> None:
        turns.append(turn)
        async with asyncio.timeout(None) as timeout:
            timeouts.append(timeout)
            answers.append(await turn.confirm("Sure?", id="q"))
        await turn.say("Thanks.")

    async with running(agent, store=store) as hub:
        renderer = await asked_in(hub)
        store.hold()
        await renderer.send("action", YES, source_component="q")
        await store.waiting.wait()
        timeouts[0].reschedule(0)
        await becomes(timeouts[0].expired)
        await asyncio.sleep(0)
        store.release()
        assert await renderer.ended("t1") == "completed"
    assert answers == [True]
    assert renderer.box.said() == "Thanks."
    assert question(renderer)["state"] == "answered"


async def test_cancel_behind_an_accepted_answer_comes_with_the_next_await() -> None:
    """It is not lost: the agent that stops a helper of its own sees it stop."""
    store, done = HeldStore(), list[Any]()
    helpers: list[asyncio.Task[None]] = []

    async def helper(turn: Turn) -> None:
        done.append(await turn.confirm("Sure?", id="q"))
        await asyncio.Event().wait()

    async def agent(turn: Turn) -> None:
        helpers.append(asyncio.ensure_future(helper(turn)))
        await asyncio.wait(helpers)

    async with running(agent, store=store) as hub:
        renderer = await asked_in(hub)
        store.hold()
        await renderer.send("action", YES, source_component="q")
        await store.waiting.wait()
        helpers[0].cancel()
        store.release()
        assert await renderer.ended("t1") == "completed"
    assert done == [True]
    assert helpers[0].cancelled()


async def test_answer_and_cancel_in_one_step_of_the_loop_give_the_answer() -> None:
    """The answer is there, the agent has not taken it yet, and the cancel comes."""
    answers: list[Any] = []
    helpers: list[asyncio.Task[Any]] = []

    async def agent(turn: Turn) -> None:
        helpers.append(asyncio.ensure_future(turn.confirm("Sure?", id="q")))
        await asyncio.wait(helpers)
        answers.append(helpers[0].result())

    async with running(agent) as hub:
        renderer = await asked_in(hub)
        await renderer.send("action", YES, source_component="q")
        hub.sessions["s"].after_write(lambda: stop(helpers[0]))
        assert await renderer.ended("t1") == "completed"
    assert answers == [True]


async def test_question_stays_open_when_the_server_stops() -> None:
    """It can be answered after a restart; only its own agent withdraws it."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        async with asyncio.timeout(60):
            await turn.confirm("Sure?", id="q")

    async with running(agent, store=store) as hub:
        await asked_in(hub)
        await settled(hub)
    await store.open()
    facts = await store.facts()
    assert "action.resolved" not in [fact.type for fact in facts]
    assert facts[-1].status_reason == "interrupted"


async def test_stopped_turn_closes_its_question_once() -> None:
    """The user's cancel, also inside a timeout of the agent's."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        async with asyncio.timeout(60):
            await turn.confirm("Sure?", id="q")

    async with running(agent, store=store) as hub:
        renderer = await asked_in(hub)
        await renderer.cancel()
        assert await renderer.ended("t1") == "cancelled"
        facts = await store.facts()
    assert [fact.type for fact in facts].count("action.resolved") == 1
    assert states(renderer) == ["running", "waiting", "running", "cancelled"]
