from __future__ import annotations

import asyncio
import gc

import pytest

from arp.client.events import Audience, Connected, Event, EventStream, Skipped

A, B, C = (Connected(name, "new") for name in "abc")


async def read(stream: EventStream) -> list[Event]:
    async with asyncio.timeout(30):
        return [event async for event in stream]


async def test_every_consumer_gets_every_event_in_order() -> None:
    audience = Audience()
    first, second = audience.subscribe(), audience.subscribe()
    audience.emit(A)
    audience.emit(B)
    audience.end()
    assert await read(first) == [A, B]
    assert await read(second) == [A, B]


async def test_consumer_who_comes_later_gets_what_happens_from_then_on() -> None:
    audience = Audience()
    audience.emit(A)
    stream = audience.subscribe()
    audience.emit(B)
    audience.end()
    assert await read(stream) == [B]


async def test_consumer_who_comes_after_the_end_gets_nothing() -> None:
    audience = Audience()
    audience.end()
    assert await read(audience.subscribe()) == []


async def test_waiting_consumer_is_woken() -> None:
    stream = EventStream()
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    assert not waiting.done()
    stream.put(A, 1)
    assert await asyncio.wait_for(waiting, 30) == A


async def test_cancelled_wait_loses_no_event() -> None:
    stream = EventStream()
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    stream.put(A, 1)
    await asyncio.wait([waiting])
    stream.end()
    assert await read(stream) == [A]


async def test_slow_consumer_loses_the_oldest_and_is_told_how_many() -> None:
    stream = EventStream(most_events=2)
    for event in (A, B, C):
        stream.put(event, 1)
    stream.end()
    assert await read(stream) == [Skipped(2), C]


async def test_skips_add_up_until_they_are_told() -> None:
    stream = EventStream(most_events=1)
    for event in (A, B, C):
        stream.put(event, 1)
    assert await anext(stream) == Skipped(2)
    stream.put(A, 1)
    stream.end()
    assert await read(stream) == [Skipped(1), A]


async def test_bytes_are_bounded_too_and_one_event_always_fits() -> None:
    stream = EventStream(most_bytes=10)
    stream.put(A, 6)
    stream.put(B, 4)
    assert await anext(stream) == A
    stream.put(C, 7)
    stream.put(A, 100)
    stream.end()
    assert await read(stream) == [Skipped(2), A]


async def test_consumer_that_breaks_off_is_forgotten() -> None:
    audience = Audience()
    kept = audience.subscribe()
    leaving = audience.subscribe()
    audience.emit(A)
    async for event in leaving:
        assert event == A
        break
    del leaving
    gc.collect()
    assert list(audience._streams) == [kept]


@pytest.mark.parametrize("kept", [0, 3])
async def test_memory_of_a_consumer_that_never_reads_is_bounded(kept: int) -> None:
    stream = EventStream(most_events=10, most_bytes=1000)
    for _ in range(kept):
        stream.put(A, 1)
    for _ in range(10_000):
        stream.put(B, 100)
    assert len(stream._waiting) <= 10
