"""Who waits is woken when what he waits for is so, or never will be."""

from __future__ import annotations

import asyncio

import pytest

from arp.client.errors import ClientClosed, ServerRefused
from arp.client.watch import Watch, find_finished_turn, is_over, latest_turn
from arp.protocol.connection.screen import Screen, TurnScreen
from arp.protocol.errors import UnknownObject
from arp.protocol.messages import TurnStatus


def never() -> int | None:
    return None


async def test_what_is_true_already_needs_no_wait() -> None:
    assert await Watch().until(lambda: 5) == 5


async def test_wait_ends_when_a_look_finds_something() -> None:
    watch, found = Watch(), list[str]()
    waiting = asyncio.ensure_future(watch.until(lambda: found or None))
    await asyncio.sleep(0)
    watch.notify()
    watch.notify()
    await asyncio.sleep(0)
    assert not waiting.done()
    found.append("x")
    watch.notify()
    assert await asyncio.wait_for(waiting, 30) == ["x"]


async def test_failure_ends_every_wait_now_and_later_and_the_first_reason_stands() -> None:
    watch = Watch()
    waiting = asyncio.ensure_future(watch.until(never))
    await asyncio.sleep(0)
    watch.fail(ServerRefused("first"))
    watch.fail(ClientClosed("second"))
    with pytest.raises(ServerRefused, match="first"):
        await asyncio.wait_for(waiting, 30)
    with pytest.raises(ServerRefused, match="first"):
        await watch.until(never)


async def test_what_is_true_is_told_even_after_a_failure() -> None:
    watch = Watch()
    watch.fail(ClientClosed("closed"))
    assert await watch.until(lambda: 1) == 1


async def test_what_a_look_raises_ends_its_wait() -> None:
    def look() -> int | None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await Watch().until(look)


async def test_cancelled_wait_leaves_nothing_behind() -> None:
    watch = Watch()
    waiting = asyncio.ensure_future(watch.until(never))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert watch._waiting == set()
    watch.notify()


@pytest.mark.parametrize(
    ("final", "status", "over"),
    [
        (False, None, False),
        (False, "running", False),
        (False, "completed", False),
        (True, "running", False),
        (True, "completed", True),
        (True, "failed", True),
        (True, "cancelled", True),
        (True, None, True),
    ],
)
def test_turn_is_over_with_its_final_commit_and_status(
    final: bool, status: TurnStatus | None, over: bool
) -> None:
    assert is_over(TurnScreen("t", status=status, final=final)) is over


def test_latest_turn_is_the_one_made_last() -> None:
    screen = Screen()
    assert latest_turn(screen) is None
    screen.turn("t1")
    screen.turn("t2")
    assert latest_turn(screen) == "t2"


def test_turn_may_not_show_yet() -> None:
    screen = Screen()
    look = find_finished_turn("t1", lambda: screen)
    assert look() is None
    turn = screen.turn("t1")
    assert look() is None
    turn.final = True
    assert look() is turn


def test_turn_that_a_snapshot_left_out_will_not_be_waited_for() -> None:
    screen = Screen()
    screen.turn("t1")
    look = find_finished_turn("t1", lambda: screen)
    assert look() is None
    screen = Screen()
    with pytest.raises(UnknownObject, match="t1 is no longer on the screen"):
        look()
