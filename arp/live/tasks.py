"""The server's own tasks: agents cannot cancel them, and services are restarted.

Theory of operation. Agents run in the server's loop, so their code can reach every task in it, as
`for task in asyncio.all_tasks(): task.cancel()` does. Each turn runs in a context that names it,
and the tasks that it starts inherit that context. A `ServerTask` refuses to be cancelled by the
code of another turn. A `Service` is a task that runs as long as the hub: if it ends, it is
restarted; if it ends too often, the hub is notified that it cannot continue.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from arp.live.turn_name import CURRENT_TURN, TurnName

T = TypeVar("T")

logger = logging.getLogger(__name__)

RESTART_S = 0.1
"""Seconds before an ended service is restarted; `/health` reports it meanwhile."""

MAX_RESTARTS = 5
"""Most restarts within `RESTARTS_WITHIN_S`; a service that ends more often stays ended."""

RESTARTS_WITHIN_S = 60.0


class OwnedTask(asyncio.Task[T]):
    """Task that belongs to a turn or to the server."""

    owner: TurnName | None = None
    """Turn of the task; `None` for a task of the server."""


class ServerTask(OwnedTask[T]):
    """Task that only the server or its own turn can cancel."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the task like `asyncio.Task.cancel`; refuse if another turn's code calls this.

        Returns:
            Whether the task will be cancelled.
        """
        asking = CURRENT_TURN.get()
        if asking is None or asking is self.owner:
            return super().cancel(msg)
        if asking.is_new("cancelled others"):  # logged once per turn
            logger.warning(
                "%s cancelled task %s, which is not its own; the task continues. "
                "Cancel only tasks that the agent has started",
                asking,
                self.get_name(),
            )
        return False

    def stop(self, why: object = None) -> None:
        """Cancel the task, whoever calls this; `cancel` refuses calls from the code of other turns.

        The server calls this, possibly in a public method that an agent's code has called.

        Args:
            why: The message of its `CancelledError`.
        """
        super().cancel(why)


def start_task(
    work: Coroutine[Any, Any, T], name: str, owner: TurnName | None = None
) -> ServerTask[T]:
    """Start a task of the server, or, with an owner, the task that runs a turn."""
    task = ServerTask(work, loop=asyncio.get_running_loop(), name=name)
    if owner is not None:
        task.owner = owner
    return task


def make_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, T] | Generator[Any, None, T],
    **options: Any,
) -> asyncio.Task[T]:
    """Create a task. A loop that runs only a server uses this function as its task factory.

    Tasks of connections belong to the server; tasks that agents start belong to their turn.
    """
    owner = CURRENT_TURN.get()
    kind = ServerTask if owner is None else OwnedTask
    task = kind(work, loop=loop, **options)
    # Only if set: an instance attribute costs each connection a dict.
    if owner is not None:
        task.owner = owner
    return task


class Service:
    """Task that runs until it is closed; it is restarted if it ends by itself."""

    def __init__(
        self,
        name: str,
        run: Callable[[], Coroutine[Any, Any, None]],
        broken: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Describe a service; `start` starts it.

        Args:
            name: Name of the task, for the log.
            run: Returns the coroutine to run; called for each start.
            broken: Called with the reason when the service ended too often.
        """
        self.name = name
        self._run = run
        self._broken = broken
        self._task: ServerTask[None] | None = None
        self._is_closed = True
        self._is_broken = False
        self._ends: deque[float] = deque(maxlen=MAX_RESTARTS)

    @property
    def is_running(self) -> bool:
        """Whether its task runs now."""
        return self._task is not None and not self._task.done()

    @property
    def is_open(self) -> bool:
        """Whether it is running or will be restarted."""
        return not (self._is_closed or self._is_broken)

    def start(self) -> None:
        """Start the service."""
        self._is_closed = False
        self._task = start_task(self._run(), self.name)
        self._task.add_done_callback(self._ended)

    async def aclose(self) -> None:
        """End the service."""
        self._is_closed = True
        task, self._task = self._task, None
        if task is not None:
            task.stop()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Restart the service after its task has ended, unless it ended too often."""
        if self._is_closed:
            return
        error = None if task.cancelled() else task.exception()
        why = "was cancelled" if task.cancelled() else f"ended: {error!r}"
        now = time.monotonic()
        if len(self._ends) == MAX_RESTARTS and now - self._ends[0] < RESTARTS_WITHIN_S:
            logger.critical("task %s %s too often; it is not restarted", self.name, why)
            self._is_broken = True
            self._broken(f"task {self.name} {why}")
            return
        self._ends.append(now)
        logger.error("task %s %s; it is started again", self.name, why, exc_info=error)
        # Delayed: while a loop is closing, a task that starts at once would never run.
        task.get_loop().call_later(RESTART_S, self._restart)

    def _restart(self) -> None:
        if not self._is_closed:
            self.start()
