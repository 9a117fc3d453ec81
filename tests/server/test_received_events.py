"""The queue and the event of a WebSocket, which take little memory while it is idle."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from arp.server.ports.socket_protocol import Gate, ReceivedEvents

MOST_IDLE_BYTES = 300
"""An `asyncio.Queue` alone takes three kilobytes."""


def message(text: str) -> Any:
    return {"type": "websocket.receive", "text": text}


async def test_events_come_in_order() -> None:
    events = ReceivedEvents()
    for text in ("a", "b", "c"):
        events.put_nowait(message(text))
    assert not events.empty()
    assert [await events.get() for _ in range(3)] == [message(text) for text in ("a", "b", "c")]
    assert events.empty()


async def test_get_waits_for_an_event() -> None:
    events = ReceivedEvents()
    getting = asyncio.create_task(events.get())
    await asyncio.sleep(0)
    assert not getting.done()
    events.put_nowait(message("late"))
    assert await getting == message("late")


async def test_each_event_goes_to_one_of_several_that_wait() -> None:
    events = ReceivedEvents()
    getting = [asyncio.create_task(events.get()) for _ in range(2)]
    await asyncio.sleep(0)
    events.put_nowait(message("a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [one.done() for one in getting] == [True, False]
    events.put_nowait(message("b"))
    assert [await one for one in getting] == [message("a"), message("b")]


async def test_cancelled_get_loses_no_event() -> None:
    """The event comes in the same step of the loop in which the waiting call is cancelled."""
    events = ReceivedEvents()
    getting = asyncio.create_task(events.get())
    await asyncio.sleep(0)
    events.put_nowait(message("kept"))
    getting.cancel()
    await asyncio.wait([getting])
    assert getting.cancelled()
    assert await events.get() == message("kept")


async def test_gate_lets_pass_while_it_is_open() -> None:
    gate = Gate()
    assert not gate.is_set()
    waiting = [asyncio.create_task(gate.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.wait_for(asyncio.gather(*waiting), 1)
    await asyncio.wait_for(gate.wait(), 1)
    gate.clear()
    closed = asyncio.create_task(gate.wait())
    await asyncio.sleep(0)
    assert not closed.done()
    closed.cancel()


def test_idle_queue_takes_little_memory() -> None:
    events = ReceivedEvents()
    gate = events._has_events
    size = sum(map(sys.getsizeof, (events, gate, gate._waiters)))
    assert size < MOST_IDLE_BYTES, f"{size} bytes"
