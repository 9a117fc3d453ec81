"""`ThreadsafeRuntime`: calls a runtime from threads that do not run its loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from arp.runtime.contract import types as ari
from arp.runtime.contract.services import RuntimeService

R = TypeVar("R")


class ThreadsafeRuntime:
    """A handle for threads that do not run the loop of the runtime.

    Every call blocks its thread until the method returns, and raises what the method raises.
    """

    def __init__(self, runtime: RuntimeService, loop: asyncio.AbstractEventLoop) -> None:
        self._runtime = runtime
        self._loop = loop

    def call(
        self, method: Callable[[RuntimeService], Awaitable[R]], timeout_s: float | None = None
    ) -> R:
        """Call a method in the loop: `handle.call(lambda runtime: runtime.status(request))`.

        Args:
            method: Receives the runtime and returns an awaitable, which the loop awaits.
            timeout_s: Seconds until the call is cancelled; `None` means never.

        Raises:
            AriError: The method raised it.
            TimeoutError: The call took longer than `timeout_s`.
            RuntimeError: The caller is the thread of the loop, which would block for ever.
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
        """Yield the events of a session as they arrive, until the session is closed.

        The subscription begins with this call, not with the first event.

        Raises:
            AriError: `session_events` raised it.
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
