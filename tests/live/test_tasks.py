"""No agent cancels a task of the server, and what must run is started again."""

from __future__ import annotations

import asyncio

import pytest

from arp import Turn
from arp.access.principal import Principal
from arp.live import tasks
from arp.live.tasks import MAX_RESTARTS, Service, make_task, start_task
from arp.live.turn_name import CURRENT_TURN, TurnName
from tests.hub.rig import HeldStore, Renderer, running
from tests.support.waiting import becomes

ONE, OTHER = TurnName("one", "s", "t1"), TurnName("two", "s", "t2")


async def forever() -> None:
    await asyncio.Event().wait()


async def cancelled_by(asking: TurnName | None, task: asyncio.Task[None]) -> bool:
    """Cancels a task as the code of a turn does; tells whether it took it."""

    async def ask() -> bool:
        CURRENT_TURN.set(asking)
        return task.cancel()

    return await asyncio.create_task(ask())


@pytest.mark.parametrize(
    ("owner", "asking", "takes"),
    [(None, None, True), (None, ONE, False), (ONE, ONE, True), (ONE, OTHER, False)],
)
async def test_only_the_server_and_its_own_turn_cancel_a_task(
    owner: TurnName | None, asking: TurnName | None, takes: bool
) -> None:
    task = start_task(forever(), "arp-x", owner)
    await asyncio.sleep(0)
    assert await cancelled_by(asking, task) is takes
    await asyncio.sleep(0)
    assert task.cancelled() is takes
    task.cancel()


async def test_turn_is_warned_once_however_many_tasks_it_cancels(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The line names the agent and what it tried to cancel."""
    several = [start_task(forever(), f"arp-{number}") for number in range(3)]
    asking = TurnName("greedy", "s", "t1")
    for task in several:
        await cancelled_by(asking, task)
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "agent 'greedy' (turn t1 of session 's') cancelled task arp-0, which is not its own"
    )
    for task in several:
        task.cancel()


async def test_factory_makes_tasks_of_the_server_but_those_of_agents_are_their_own() -> None:
    """What agents start, other agents may cancel: they may share a client."""
    loop = asyncio.get_running_loop()
    own = make_task(loop, forever(), name="own")

    async def begin() -> asyncio.Task[None]:
        CURRENT_TURN.set(ONE)
        return make_task(loop, forever())

    agents = await asyncio.create_task(begin())
    await asyncio.sleep(0)
    assert await cancelled_by(OTHER, own) is False
    assert await cancelled_by(OTHER, agents) is True
    own.cancel()


async def test_agent_may_have_the_server_stop_another_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Asked in the proper way, as by deleting the session; nothing of it is worth a warning."""
    stopped = asyncio.Event()

    async def agent(turn: Turn) -> None:
        if turn.session_id == "other":
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
        await hub.delete("other", Principal())

    async with running(agent) as hub:
        other = await Renderer(hub, "other").join()
        await other.say("wait")
        await other.box.has("turn", status="running")
        renderer = await Renderer(hub).join()
        await renderer.say("delete")
        assert await renderer.ended("t1") == "completed"
        async with asyncio.timeout(30):
            await stopped.wait()
    assert caplog.messages == []


async def test_service_that_fails_is_started_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has the traceback."""
    monkeypatch.setattr(tasks, "RESTART_S", 0.01)
    starts: list[int] = []

    async def run() -> None:
        starts.append(len(starts))
        if len(starts) == 1:
            raise RuntimeError("broken")
        await forever()

    service = Service("arp-x", run)
    service.start()
    await becomes(lambda: len(starts) == 2)
    assert service.is_running
    assert "task arp-x ended: RuntimeError('broken'); it is started again" in caplog.text
    assert "Traceback" in caplog.text
    await service.aclose()
    assert not service.is_open


async def test_service_that_ends_again_and_again_stays_ended_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "RESTART_S", 0.0)
    starts: list[int] = []
    told: list[str] = []

    async def run() -> None:
        starts.append(1)

    service = Service("arp-x", run, told.append)
    service.start()
    await becomes(lambda: bool(told))
    assert told == ["task arp-x ended: None"]
    assert len(starts) == MAX_RESTARTS + 1
    assert not service.is_open
    await service.aclose()


async def test_service_that_is_closed_while_it_waits_stays_closed() -> None:
    """It ended, and before it is started again the hub closes."""

    async def run() -> None:
        """Ends at once."""

    service = Service("arp-x", run)
    service.start()
    await becomes(lambda: not service.is_running)
    await service.aclose()
    await asyncio.sleep(tasks.RESTART_S * 2)
    assert not service.is_running


async def test_hub_tells_what_does_not_run() -> None:
    """`/health` says it; it is over when the task has been started again."""
    async with running() as hub:
        assert hub.trouble == ""
        writer = next(task for task in asyncio.all_tasks() if task.get_name() == "arp-writer")
        writer.cancel()
        await becomes(writer.done)
        assert hub.trouble == "not running: arp-writer"
        await becomes(lambda: hub.trouble == "")


async def test_writer_that_ends_in_a_write_lets_go_of_the_sessions_in_it() -> None:
    """Nobody knows whether their facts are stored, so they come back from the store."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        await turn.say(turn.text)

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        store.hold()
        await renderer.say("lost")
        await store.waiting.wait()
        writer = next(task for task in asyncio.all_tasks() if task.get_name() == "arp-writer")
        writer.cancel()
        await renderer.box.until(lambda: renderer.box.closed is not None)
        store.release()
        await becomes(lambda: hub.trouble == "")
        again = await Renderer(hub).join()
        await again.say("kept")
        assert await again.ended("t1") == "completed"
    assert renderer.box.closed == (1011, "internal error")
    assert again.screen.text("t1") == "kept"
