"""What an app opens when it begins to be served, and closes when that ends: `App(lifespan=…)`.

Theory of operation. An app may be served several times in a process, also in different event loops,
one after the other. Its parts (lifespan, MCP servers, runtimes, the Tool Agent) are opened by the
first server in the order in which they were added, and closed by the last one in the opposite
order. Then they can be opened again.

The context manager of `App(lifespan=…)` is entered and left in one task of its own, since many
clients (those on anyio) must be closed where they were opened. That task waits in between. The end
of the event loop cancels it, and the server at the same time: it waits until that has ended.
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
"""How long a server may take to stop when its event loop ends."""


def check_loop(serving: asyncio.AbstractEventLoop | None) -> None:
    """Refuse to use an app in this event loop while another one serves it.

    Args:
        serving: The event loop that serves the app; `None`: there is none.

    Raises:
        RuntimeError: It is another loop; the message says what to do.
    """
    if serving is None or serving is asyncio.get_running_loop():
        return
    if serving.is_closed():
        raise RuntimeError(
            "the event loop that served this app was closed before the app: run it with "
            "asyncio.run, which ends the app too, or await app.asgi.aclose() before you close it"
        )
    raise RuntimeError(
        "this app is served in another event loop: end that server first, or make a second App"
    )


class AppPart(NamedTuple):
    """What starts and ends with the servers of an app."""

    open: Callable[[], Awaitable[object]]
    aclose: Callable[[], Awaitable[object]]
    """Called also if `open` has failed, and then it must not raise."""


class AppParts:
    """The parts of an app, which all its servers share."""

    def __init__(self) -> None:
        self._parts: list[AppPart] = []
        self._servers = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop of the servers; `None` while there are none."""
        self._changing = asyncio.Lock()

    def add(
        self, open: Callable[[], Awaitable[object]], aclose: Callable[[], Awaitable[object]]
    ) -> None:
        """Add a part behind the others."""
        self._parts.append(AppPart(open, aclose))

    async def open(self, prepare: Callable[[], object] = lambda: None) -> None:
        """Open the parts for one more server, if they are not open.

        Args:
            prepare: Is called before the parts are opened, and only then.

        Raises:
            RuntimeError: Another event loop has them open.
            Whatever a part raises; none of them is open then.
        """
        if not self._parts:
            return  # then servers share nothing, and may run in several loops
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
            self._leave()

    async def aclose(self) -> None:
        """Close the parts, if this was the last server."""
        if not self._servers:
            return
        try:
            async with self._changing:
                self._servers -= 1
                if not self._servers:
                    await self._close(self._parts)
        finally:
            self._leave()

    def _leave(self) -> None:
        """Let another loop open the parts, if nobody here has them, or waits for them."""
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
        """Close parts, the last one first, whatever one of them raises."""
        for part in reversed(parts):
            try:
                await part.aclose()
            except Exception:
                logger.exception("a part of the app did not end")


class AppLifespan:
    """A context manager that is open while an app is served."""

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        """See the class.

        Args:
            enter: Returns the context manager, anew each time that the app begins to be served.
        """
        self._enter = enter
        self._task: ServerTask[None] | None = None
        self._ending = asyncio.Event()
        self.value: Any = None
        """What it yields; `None` while it is not open."""

    @property
    def is_open(self) -> bool:
        """Whether it is entered."""
        return self._task is not None

    async def open(self) -> None:
        """Enter it, if it is not entered.

        Raises:
            Whatever it raises; it is not entered then.
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
        """Leave it.

        Raises:
            Whatever it raises then.
        """
        task, self._task = self._task, None
        if task is not None:
            self._ending.set()
            await asyncio.wait((task,))
            if not task.cancelled():  # by the end of the loop
                task.result()

    async def _end(self) -> None:
        """Wait until `aclose` is called, also where the event loop ends and cancels all tasks."""
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
                await self._end()
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)
            with contextlib.suppress(Exception):
                entered.exception()
        finally:
            self.value = None
