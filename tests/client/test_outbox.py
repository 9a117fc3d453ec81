from __future__ import annotations

import asyncio

from arp.client.outbox import Outbox


async def taken(outbox: Outbox) -> list[bytes]:
    return await asyncio.wait_for(outbox.take(), 5)


async def test_frames_leave_in_order_and_the_newest_ack_last() -> None:
    outbox = Outbox()
    outbox.put_ack(b"ack 1")
    outbox.put(b"a")
    outbox.put_ack(b"ack 2")
    outbox.put(b"b")
    assert await taken(outbox) == [b"a", b"b", b"ack 2"]
    outbox.put(b"c")
    assert await taken(outbox) == [b"c"]


async def test_taker_waits_for_something_to_take() -> None:
    outbox = Outbox()
    waiting = asyncio.ensure_future(outbox.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    outbox.put(b"a")
    assert await asyncio.wait_for(waiting, 30) == [b"a"]


async def test_cleared_outbox_holds_nothing() -> None:
    outbox = Outbox()
    outbox.put(b"a")
    outbox.put_ack(b"ack")
    outbox.clear()
    waiting = asyncio.ensure_future(outbox.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()


async def test_cancelled_take_takes_nothing() -> None:
    outbox = Outbox()
    waiting = asyncio.ensure_future(outbox.take())
    await asyncio.sleep(0)
    waiting.cancel()
    outbox.put(b"a")
    await asyncio.wait([waiting])
    assert await taken(outbox) == [b"a"]
