"""Blocking calls on pipes, in threads that no exit waits for.

A read from a pipe whose other end is silent cannot be broken off, nor a write to one that nobody
reads. In a daemon thread neither keeps the process from ending, which asyncio's own threads would.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class BlockingCalls:
    """Runs blocking calls one after the other, in a thread of its own."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, function: Callable[[], T]) -> T:
        """Gives what the function returns, or raises what it raises.

        Cancel: Safe; the call itself goes on, and what comes of it is dropped.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def call() -> None:
            try:
                value = function()
            except Exception as error:  # noqa: BLE001  # handed on to who asked
                _tell(loop, future, future.set_exception, error)
            else:
                _tell(loop, future, future.set_result, value)

        self._calls.put(call)
        return await future

    def end(self) -> None:
        """Lets the thread end behind the calls that are under way."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _tell(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[Any],
    settle: Callable[[Any], None],
    outcome: object,
) -> None:
    def tell() -> None:
        if not future.done():
            settle(outcome)

    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(tell)
