"""Blocking calls, in threads that no exit waits for."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from arp.transport.stdio import BlockingCalls


async def test_call_gives_what_the_function_returns_or_raises() -> None:
    """In the order in which they were asked for."""
    calls = BlockingCalls("test")

    def fail() -> None:
        raise OSError("broken pipe")

    first, second = calls.run(lambda: 1), calls.run(lambda: 2)
    assert [await first, await second] == [1, 2]
    with pytest.raises(OSError, match="broken pipe"):
        await calls.run(fail)
    assert await calls.run(threading.current_thread) is not threading.current_thread()
    calls.end()


async def test_call_that_is_given_up_goes_on_and_disturbs_nothing() -> None:
    """A read from a silent pipe cannot be broken off."""
    calls, gate = BlockingCalls("test"), threading.Event()
    waiting = asyncio.ensure_future(calls.run(lambda: gate.wait(10)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.set()
    assert await calls.run(lambda: 3) == 3
    calls.end()


async def test_thread_keeps_no_process_alive_and_ends_when_told() -> None:
    """It is a daemon."""
    calls = BlockingCalls("named")
    thread = await calls.run(threading.current_thread)
    calls.end()
    await asyncio.to_thread(thread.join, 5)
    assert thread.daemon
    assert not thread.is_alive()


def test_answer_to_a_loop_that_is_closed_is_dropped() -> None:
    """The thread lives on."""
    calls, gate, done = BlockingCalls("test"), threading.Event(), threading.Event()

    async def ask() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(calls.run(lambda: gate.wait(10)), 0.01)

    asyncio.run(ask())
    gate.set()
    asyncio.run(calls.run(done.set))
    assert done.is_set()
    calls.end()
