"""An agent that blocks the loop is named while it does, with the line and the seconds."""

from __future__ import annotations

import asyncio
import re
import threading
import time

import pytest

from arp import Turn
from arp.live.loop_watch import LoopWatch, is_authors, place_of
from arp.live.settings import HubSettings
from tests.hub.rig import Renderer, running
from tests.support.waiting import becomes

QUICK = HubSettings(stop_grace_s=0.05, blocked_loop_s=0.1)


def watching() -> set[threading.Thread]:
    """Return the threads that watch a loop; other tests of this process may have some."""
    return {one for one in threading.enumerate() if one.name == "arp-loop-watch"}


async def test_agent_that_blocks_is_named_with_its_line_and_the_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def agent(turn: Turn) -> None:
        await turn.say("blocking")
        await asyncio.sleep(0.05)  # lets the watch see that the loop answers
        time.sleep(0.6)  # noqa: ASYNC251 # what it is about

    async with running(agent, settings=QUICK) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        await becomes(lambda: "') blocked the loop" in caplog.text)
    first, *_, last = caplog.messages
    assert first.startswith("agent 'agent' (turn t1 of session 's') has blocked the loop for 0.1 s")
    assert re.search(r"test_loop_watch\.py:\d+ in agent;", first)
    seconds = re.fullmatch(r"agent 'agent' .* blocked the loop for (\d+\.\d) s", last)
    assert seconds is not None
    assert float(seconds[1]) >= 0.4


async def test_agent_that_awaits_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    async def agent(turn: Turn) -> None:
        await asyncio.sleep(0.4)
        await turn.say("done")

    async with running(agent, settings=QUICK) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
    assert "blocked" not in caplog.text


async def test_thread_begins_with_the_first_turn_and_ends_with_the_hub() -> None:
    """A hub in which nothing runs costs no thread."""
    before = watching()
    async with running() as hub:
        renderer = await Renderer(hub).join()
        assert not watching() - before
        await renderer.say("go")
        await renderer.ended("t1")
        (own,) = watching() - before
    await becomes(lambda: not own.is_alive())


async def test_thread_ends_when_the_loop_is_gone() -> None:
    """Nobody closed the hub, as in a program that ends."""

    before, own = watching(), set[threading.Thread]()

    def use() -> None:
        async def wake() -> None:
            LoopWatch(0.1, lambda: True).wake()
            own.update(watching() - before)

        asyncio.run(wake())

    await asyncio.to_thread(use)
    assert len(own) == 1
    await becomes(lambda: not any(one.is_alive() for one in own))


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        (__file__, True),
        (time.__name__, True),
        (asyncio.__file__, False),
        (pytest.__file__, False),
        ("<frozen importlib._bootstrap>", False),
        (LoopWatch.__init__.__code__.co_filename, False),
    ],
)
def test_code_of_authors_is_what_is_no_library(filename: str, expected: bool) -> None:
    assert is_authors(filename) is expected


def test_place_of_a_thread_that_ended_is_said_to_be_so() -> None:
    assert place_of(-1) == "a thread that ended"
