from __future__ import annotations

import asyncio

import pytest

from arp.client.errors import ClientClosed, ServerRefused
from arp.client.watch import Watch


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
