"""An outbox that one task empties."""

from __future__ import annotations

import asyncio

import pytest

from arp.live.outbox import LOW_WATER_BYTES
from arp.transport.queue_outbox import QueueOutbox
from tests.transport.listener import Listener


async def test_frames_come_out_in_the_order_in_which_they_went_in() -> None:
    """Nothing here waits but the one who takes."""
    outbox = QueueOutbox()
    outbox.send([b"a", b"b"])
    outbox.send([b"c"])
    assert [await outbox.dequeue() for _ in range(3)] == [b"a", b"b", b"c"]


async def test_taker_waits_for_the_next_frame() -> None:
    """And gets it as soon as it is there."""
    outbox = QueueOutbox()
    taking = asyncio.ensure_future(outbox.dequeue())
    await asyncio.sleep(0)
    assert not taking.done()
    outbox.send([b"a"])
    assert await taking == b"a"


async def test_taker_is_told_when_nothing_comes_in_time() -> None:
    """So that a stream can send a comment meanwhile; nothing is lost by it."""
    outbox = QueueOutbox()
    with pytest.raises(TimeoutError):
        await outbox.dequeue(0.001)
    outbox.send([b"a"])
    assert await outbox.dequeue(0.001) == b"a"


async def test_what_waits_is_counted_until_it_has_left() -> None:
    """The high-water mark of protocol.md 2.4 counts bytes that are on their way too."""
    outbox = QueueOutbox()
    outbox.send([b"abc", b"de"])
    frame = await outbox.dequeue()
    taken = outbox.buffered
    outbox.record_sent(frame or b"")
    assert (taken, outbox.buffered) == (5, 2)


async def test_viewer_is_told_when_little_is_left() -> None:
    """A renderer that was behind gets its catch-up then."""
    outbox, listener = QueueOutbox(), Listener()
    outbox.viewer = listener.viewer
    big = b"x" * LOW_WATER_BYTES
    outbox.send([big, big])
    first = await outbox.dequeue()
    outbox.record_sent(first or b"")
    before = listener.told
    second = await outbox.dequeue()
    outbox.record_sent(second or b"")
    assert (before, listener.told) == (0, 1)


async def test_closed_outbox_gives_what_waits_and_then_nothing() -> None:
    """It ends behind what waits, takes nothing more, and remembers the first reason."""
    outbox = QueueOutbox()
    outbox.send([b"a"])
    outbox.close(1012, "restarting")
    outbox.close(1001, "gone")
    outbox.send([b"late"])
    assert [await outbox.dequeue(), await outbox.dequeue()] == [b"a", None]
    assert outbox.closed == (1012, "restarting")


async def test_taker_that_waits_learns_of_the_close() -> None:
    """Nobody waits for ever."""
    outbox = QueueOutbox()
    taking = asyncio.ensure_future(outbox.dequeue())
    await asyncio.sleep(0)
    outbox.close(1000, "done")
    assert await taking is None


async def test_frame_that_goes_first_is_taken_next_and_only_the_newest_waits() -> None:
    """A pong does not wait behind a backlog, and many pings do not make one."""
    outbox = QueueOutbox()
    outbox.send([b"a", b"b"])
    for number in range(1000):
        outbox.send_first(b"%03d" % number)
    assert outbox.buffered == len(b"ab999")
    assert outbox.waiting() == [b"999", b"a", b"b"]
    taken = [await outbox.dequeue() for _ in range(3)]
    for frame in taken:
        outbox.record_sent(frame or b"")
    assert taken == [b"999", b"a", b"b"]
    assert outbox.buffered == 0


async def test_taker_waits_for_a_frame_that_goes_first_too() -> None:
    """And a closed outbox takes none."""
    outbox = QueueOutbox()
    taking = asyncio.ensure_future(outbox.dequeue())
    await asyncio.sleep(0)
    outbox.send_first(b"pong")
    assert await taking == b"pong"
    outbox.close(1000, "done")
    outbox.send_first(b"late")
    assert await outbox.dequeue() is None
