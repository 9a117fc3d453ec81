"""Open the parts of an app when serving begins, and close them when it ends: `App(lifespan=…)`.

Theory of operation. A process may have several servers of one app, and may serve the app in
different event loops, one after the other. The first server opens the parts of the app (lifespan,
MCP servers, runtimes, the Tool Agent) in the order of the calls of `add`. The last server closes
them in reverse order. After that they can be opened again.

The context manager of `App(lifespan=…)` is entered and left in a task of its own, because many
clients (those based on anyio) must be closed in the task that opened them. The task waits in
between. At the end of the event loop, asyncio cancels this task and the server at the same time, so
the task first waits for the server to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

from arp.live.tasks import ServerTask, start_task

logger = logging.getLogger(__name__)

LOOP_END_S = 5.0
"""Time in seconds that a server may take to stop when its event loop ends."""


def check_loop(serving: asyncio.AbstractEventLoop | None) -> None:
    """Refuse to use an app in this event loop while another one serves it.

    Args:
        serving: The event loop that serves the app; `None` if no loop does.

    Raises:
        RuntimeError: Another loop serves the app; the message says what to do.
    """
    if serving is None or serving is asyncio.get_running_loop():
        return
    if serving.is_closed():
        raise RuntimeError(
            "the event loop that served this app was closed before the app: run it with "
            "asyncio.run, which closes the app too, or await app.asgi.aclose() before you close it"
        )
    raise RuntimeError(
        "this app is served in another event loop: end that server first, or make a second App"
    )


class AppPart(NamedTuple):
    """A resource that opens with the first server of an app and closes with the last."""

    open: Callable[[], Awaitable[object]]
    aclose: Callable[[], Awaitable[object]]
    """Closes the part. Also called after `open` has failed; then it must not raise."""


class AppParts:
    """The parts of an app, shared by all its servers."""

    def __init__(self) -> None:
        self._parts: list[AppPart] = []
        self._servers = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        """Event loop of the servers; `None` while there are no servers."""
        self._changing = asyncio.Lock()

    def add(
        self, open: Callable[[], Awaitable[object]], aclose: Callable[[], Awaitable[object]]
    ) -> None:
        """Append a part."""
        self._parts.append(AppPart(open, aclose))

    async def open(self, prepare: Callable[[], object] = lambda: None) -> None:
        """Register a server, and open the parts if it is the first one.

        Args:
            prepare: Called just before the parts are opened.

        Raises:
            RuntimeError: The parts are open in another event loop.
            Whatever a part raises; then all parts are closed again.
        """
        if not self._parts:
            return  # nothing is shared, so the servers may run in different loops
        check_loop(self._loop)
        if self._loop is None:
            self._loop, self._changing = asyncio.get_running_loop(), asyncio.Lock()
        try:
            async with self._changing:
                if not self._servers:
                    prepare()
                    await self._open_all()
                self._servers += 1
        finally:
            self._release_loop()

    async def aclose(self) -> None:
        """Unregister a server, and close the parts if it was the last one."""
        if not self._servers:
            return
        try:
            async with self._changing:
                self._servers -= 1
                if not self._servers:
                    await self._close(self._parts)
        finally:
            self._release_loop()

    def _release_loop(self) -> None:
        """Allow another loop to open the parts, if no server of this loop uses or awaits them."""
        if not self._servers and not self._changing.locked():
            self._loop = None

    async def _open_all(self) -> None:
        for number, part in enumerate(self._parts, 1):
            try:
                await part.open()
            except BaseException:
                await self._close(self._parts[:number])
                raise

    async def _close(self, parts: list[AppPart]) -> None:
        """Close parts in reverse order. A part that raises does not stop the others."""
        for part in reversed(parts):
            try:
                await part.aclose()
            except Exception:
                logger.exception("a part of the app could not be closed")


class AppLifespan:
    """A context manager that is open while an app is served."""

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        """Initialise a lifespan that is not open yet.

        Args:
            enter: Returns a new context manager each time that serving begins.
        """
        self._enter = enter
        self._task: ServerTask[None] | None = None
        self._ending = asyncio.Event()
        self.value: Any = None
        """Value that the context manager yields; `None` while it is not open."""

    @property
    def is_open(self) -> bool:
        """Whether the context manager is entered."""
        return self._task is not None

    async def open(self) -> None:
        """Enter the context manager if it is not open.

        Raises:
            Whatever the context manager raises; it is not open then.
        """
        if self._task is not None:
            return
        self._ending = asyncio.Event()  # belongs to the loop that waits for it
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = start_task(self._run(entered), "arp-lifespan")
        try:
            await entered
        except BaseException:
            self._task = None
            raise

    async def aclose(self) -> None:
        """Leave the context manager if it is open.

        Raises:
            Whatever the context manager raises.
        """
        task, self._task = self._task, None
        if task is not None:
            self._ending.set()
            await asyncio.wait((task,))
            if not task.cancelled():  # the end of the loop may have cancelled it
                task.result()

    async def _wait_for_end(self) -> None:
        """Wait until `aclose` is called, even if the end of the event loop cancels this task."""
        try:
            await self._ending.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOP_END_S):
                    await self._ending.wait()

    def _manager(self) -> AbstractAsyncContextManager[Any]:
        """Return the context manager.

        Raises:
            TypeError: The function returned something else.
        """
        manager = self._enter()
        if isinstance(manager, AbstractAsyncContextManager):
            return manager
        what = type(manager).__name__
        raise TypeError(
            f"App(lifespan=…): the function returned {what}, expected an async context manager; "
            "write @asynccontextmanager above async def lifespan(app)"
        )

    async def _run(self, entered: asyncio.Future[None]) -> None:
        try:
            async with self._manager() as self.value:
                entered.set_result(None)
                await self._wait_for_end()
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)
            # If `open` was cancelled, it does not read the exception, and asyncio would log it.
            with contextlib.suppress(Exception):
                entered.exception()
        finally:
            self.value = None
