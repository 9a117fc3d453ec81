"""`ThreadsafeRuntime`: a runtime, called from other threads than the one of its loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from arp.runtime.contract import types as ari
from arp.runtime.contract.services import RuntimeService

R = TypeVar("R")


class ThreadsafeRuntime:
    """A handle for threads that do not run the loop of the runtime.

    Every call blocks its thread until the answer is there, and raises what the method raises.
    """

    def __init__(self, runtime: RuntimeService, loop: asyncio.AbstractEventLoop) -> None:
        self._runtime = runtime
        self._loop = loop

    def call(
        self, method: Callable[[RuntimeService], Awaitable[R]], timeout_s: float | None = None
    ) -> R:
        """Call a method in the loop: `handle.call(lambda runtime: runtime.status(request))`.

        Args:
            method: Gets the runtime, and returns what is awaited in its loop.
            timeout_s: After how long the call is cancelled; `None`: never.

        Raises:
            AriError: As the method does.
            TimeoutError: It took longer.
            RuntimeError: It is called in the thread of the loop, which it would block for ever.
        """
        if _runs_here(self._loop):
            raise RuntimeError("await the runtime's own methods in the thread of its loop")

        async def awaited() -> R:
            return await method(self._runtime)

        future = asyncio.run_coroutine_threadsafe(awaited(), self._loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def events(self, request: ari.SessionEventsRequest) -> Iterator[ari.Event]:
        """Yield the events of a session, as they come, until it is closed.

        Subscribes when it is called, not at the first event.

        Raises:
            AriError: As `session_events` does.
        """
        subscription = self.call(lambda runtime: runtime.session_events(request))

        def each() -> Iterator[ari.Event]:
            try:
                while True:
                    try:
                        yield self.call(lambda _: anext(subscription))
                    except StopAsyncIteration:
                        return
            finally:
                self.call(lambda _: subscription.aclose())

        return each()


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
