"""What an app opens when it begins to be served, and closes when that ends: `App(lifespan=…)`.

Theory of operation. The context manager is entered and left in one task of its own, since many
clients (those on anyio) must be closed where they were opened. That task waits in between. So it is
closed too where a parent application never says that it stops: the end of the loop cancels the
task.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from arp.hub.tasks import ServerTask, start_task


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
        self._ending = asyncio.Event()
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
            await task

    async def _run(self, entered: asyncio.Future[None]) -> None:
        try:
            async with self._enter() as self.value:
                entered.set_result(None)
                await self._ending.wait()
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)
            with contextlib.suppress(Exception):
                entered.exception()
        finally:
            self.value = None
