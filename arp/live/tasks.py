"""The server's tasks beside those of agents: no agent cancels them, and what must run is restarted.

Theory of operation. Agents run in the server's loop, so their code can reach every task in it, as
`for task in asyncio.all_tasks(): task.cancel()` does. Each turn runs in a context that names it,
and whatever it starts inherits that context. A `ServerTask` refuses a cancel that comes from a turn
which is not its own. A `Service` is a task that runs as long as the hub: should it end all the
same, it is started again, and if that does not help, the hub is told that it cannot go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)

RESTART_S = 0.1
"""A service that ended is started again after this; `/health` tells meanwhile."""

MAX_RESTARTS = 5
"""Within `RESTARTS_WITHIN_S`; a service that ends more often cannot be helped by a restart."""

RESTARTS_WITHIN_S = 60.0


class TurnName:
    """Which turn of which agent some code belongs to, for those who look for what went wrong."""

    __slots__ = ("_told", "agent", "session_id", "show_details", "turn_id")

    def __init__(
        self,
        agent: str,
        session_id: str,
        turn_id: str,
        show_details: Callable[[str, str], None] = lambda _what, _details: None,
    ) -> None:
        """See the class.

        Args:
            agent: Its name.
            session_id: Of the session.
            turn_id: Of the turn.
            show_details: Takes what went wrong, and details; shows both to those who are connected,
                if they are to see them. May be called in any thread.
        """
        self.agent = agent
        self.session_id = session_id
        self.turn_id = turn_id
        self.show_details = show_details
        self._told: set[str] = set()

    def __str__(self) -> str:
        """Return agent, turn and session."""
        return f"agent {self.agent!r} (turn {self.turn_id} of session {self.session_id!r})"

    def is_new(self, mistake: str) -> bool:
        """Return whether a mistake is to be told: the first time that the turn makes it."""
        is_new = mistake not in self._told
        self._told.add(mistake)
        return is_new

    def refuse(self, task: asyncio.Task[Any]) -> None:
        """Log that it tried to cancel a task that is not its own; once, however many it tries."""
        if self.is_new("cancelled others"):
            logger.warning(
                "%s cancelled task %s, which is not its own; such tasks go on. "
                "Cancel only tasks that the agent has started",
                self,
                task.get_name(),
            )


CURRENT_TURN: ContextVar[TurnName | None] = ContextVar("arp_current_turn", default=None)
"""The turn in whose code we are; `None` in the server's own."""


class OwnedTask(asyncio.Task[T]):
    """A task that knows the turn that it belongs to."""

    owner: TurnName | None = None
    """`None`: the server's own."""


class ServerTask(OwnedTask[T]):
    """A task that only the server, or the turn that runs in it, can cancel."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the task, as `asyncio.Task.cancel`; refuse if another turn's code asks for it.

        Returns:
            Whether the task will be cancelled.
        """
        asking = CURRENT_TURN.get()
        if asking is None or asking is self.owner:
            return super().cancel(msg)
        asking.refuse(self)
        return False

    def stop(self, why: object = None) -> None:
        """Cancel the task, also where an agent has asked the server for it in the proper way.

        Args:
            why: The message of its `CancelledError`.
        """
        super().cancel(why)


def start_task(
    work: Coroutine[Any, Any, T], name: str, owner: TurnName | None = None
) -> ServerTask[T]:
    """Start a task of the server, or with an owner the one that runs a turn."""
    task = ServerTask(work, loop=asyncio.get_running_loop(), name=name)
    if owner is not None:
        task.owner = owner
    return task


def make_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, T] | Generator[Any, None, T],
    **options: Any,
) -> asyncio.Task[T]:
    """Is a task factory for a loop that has nothing but a server in it (`set_task_factory`).

    Connections are tasks of the server's too; what agents start belongs to their turn.
    """
    owner = CURRENT_TURN.get()
    kind = ServerTask if owner is None else OwnedTask
    task = kind(work, loop=loop, **options)
    if owner is not None:  # an attribute of its own costs each connection a dict
        task.owner = owner
    return task


class Service:
    """A task that runs until it is closed: started again when it ends by itself."""

    def __init__(
        self,
        name: str,
        run: Callable[[], Coroutine[Any, Any, None]],
        broken: Callable[[str], None] = lambda _: None,
    ) -> None:
        """See the class.

        Args:
            name: Of the task, for the log.
            run: Gives what is to run; called again for each start.
            broken: Is told why, when it has been started again too often.
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
        """Whether it runs, or will run again by itself."""
        return not (self._is_closed or self._is_broken)

    def start(self) -> None:
        """Start it."""
        self._is_closed = False
        self._task = start_task(self._run(), self.name)
        self._task.add_done_callback(self._ended)

    async def aclose(self) -> None:
        """End it."""
        self._is_closed = True
        task, self._task = self._task, None
        if task is not None:
            task.stop()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._is_closed:
            return
        error = None if task.cancelled() else task.exception()
        why = "was cancelled" if task.cancelled() else f"ended: {error!r}"
        now = time.monotonic()
        if len(self._ends) == MAX_RESTARTS and now - self._ends[0] < RESTARTS_WITHIN_S:
            logger.critical("task %s %s, again and again; it stays ended", self.name, why)
            self._is_broken = True
            self._broken(f"task {self.name} {why}")
            return
        self._ends.append(now)
        logger.error("task %s %s; it is started again", self.name, why, exc_info=error)
        # Not at once: in a loop that is closing nothing starts any more.
        task.get_loop().call_later(RESTART_S, self._restart)

    def _restart(self) -> None:
        if not self._is_closed:
            self.start()
