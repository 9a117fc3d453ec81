"""Time that passes at once, and servers that are started again."""

from __future__ import annotations

import asyncio
import time

import pytest
import uvloop

from arp import App, Turn
from arp.testbed.virtual_clock import VirtualClock
from arp.testing import serve, session
from tests.testbed.shop import shop


async def test_a_question_expires_without_waiting() -> None:
    began = time.perf_counter()
    async with session(shop()) as user:
        turn = await user.say("delete")
        await user.advance(59)
        assert turn.question is not None
        await user.advance(2)
        assert (await turn.over()).text == "Nobody answered."
    assert time.perf_counter() - began < 10


async def test_timers_of_an_agent_run_in_order_each_at_its_time() -> None:
    app = App()
    at: list[float] = []

    @app.agent
    async def ticks(turn: Turn) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(3):
            await asyncio.sleep(10)
            at.append(round(loop.time() - began))
        await turn.say("done")

    async with session(app) as user:
        turn = await user.say("go", wait=False)
        await user.advance(31)
        assert (await turn.over()).text == "done"
    assert at == [10, 20, 30]


async def test_time_is_real_again_behind_a_session() -> None:
    loop, clock = asyncio.get_running_loop(), time.time
    began = clock()
    async with session(shop()) as user:
        await user.advance(3600)
        assert time.time() - began >= 3600
    assert time.time is clock
    assert "time" not in vars(loop)


async def test_time_goes_forward_alone() -> None:
    async with session(shop()) as user:
        with pytest.raises(ValueError, match="more than 0, got 0"):
            await user.advance(0)


def test_another_loop_is_refused() -> None:
    """The clock of uvloop cannot be set."""
    clock, real = VirtualClock(), time.time

    async def settled() -> None: ...

    refused = pytest.raises(RuntimeError, match="needs asyncio's own loop, not uvloop's")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, refused:
        runner.run(clock.advance(1, settled))
    assert time.time is real


@pytest.mark.parametrize("crash", [False, True], ids=["stop", "crash"])
async def test_a_question_is_answered_after_a_restart(crash: bool) -> None:
    async with session(shop()) as user:
        asked = await user.say("order")
        await user.restart(crash=crash)
        turn = user.turn(asked.id)
        assert turn.question is not None
        answered = await turn.answer({"name": "Ann", "count": 1})
        assert answered.id != turn.id
        assert answered.text == "After the restart: Ann"


async def test_a_crash_leaves_what_was_durable_and_no_more() -> None:
    app, go = App(), asyncio.Event()

    @app.agent
    async def slow(turn: Turn) -> None:
        await turn.say("one ")
        await turn.say("") if go.is_set() else await go.wait()
        await turn.say("two")

    async with session(app) as user:
        turn = await user.say("go", wait=False)
        await user.until(lambda: turn.text or None, "text")
        await user.restart(crash=True)
        turn = user.turn(turn.id)
        assert (turn.text, turn.status) == ("one ", "failed")
        assert "the server stopped while this turn ran" in turn.error


async def test_all_renderers_of_a_server_come_back() -> None:
    async with serve(shop()) as served, served.session() as ann, ann.join() as page:
        await ann.say("one")
        await served.restart()
        turn = await ann.say("two")
        assert (await page.turn(turn.id).settled()).text == "You have said 2 things before."
