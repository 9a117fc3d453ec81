"""End the process within a time limit, even if code of an agent keeps running.

Theory of operation. When `run_to_end` returns, turns are closed and the ledger is written. A task
that ignores its cancellation, or a thread in a blocking call (`asyncio.to_thread`), may still run.
Both get `PATIENCE_S`, then the process ends without them. If an agent blocks the event loop, the
server cannot reach that point; in that case a `Deadline` ends the process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from arp.live.loop_watch import place_of
from arp.live.tasks import make_task
from arp.process.stop_signals import ignore_signals

T = TypeVar("T")

logger = logging.getLogger(__name__)

PATIENCE_S = 0.5
"""Time in seconds for tasks to end, and then for threads."""

STOP_MARGIN_S = 4.0
"""Time in seconds that a stop may take in addition to `stop_grace_s`, before the process is ended.

With the default grace the total is ten seconds. Supervisors kill a process soon after that.
"""


def run_to_end(
    main: Coroutine[Any, Any, T],
    make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
    has_signals: Callable[[], bool] = lambda: False,
) -> T:
    """Run a coroutine in a new loop, without waiting for tasks that ignore their cancellation.

    Args:
        main: Coroutine to run.
        make_loop: Returns a new loop; `None` uses asyncio's default.
        has_signals: Returns whether ARP's own handler receives the signals now. A
            `KeyboardInterrupt` or `SystemExit` in the loop then comes from the code of an agent. It
            ends a task of that agent, and the loop continues.
    """
    loop = (make_loop or asyncio.new_event_loop)()
    try:
        asyncio.set_event_loop(loop)
        loop.set_task_factory(make_task)
        return _run(loop, loop.create_task(main, name="arp-main"), has_signals)
    finally:
        try:
            loop.run_until_complete(_end_tasks(loop))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _run(
    loop: asyncio.AbstractEventLoop, main: asyncio.Task[T], has_signals: Callable[[], bool]
) -> T:
    while True:
        try:
            return loop.run_until_complete(main)
        except (KeyboardInterrupt, SystemExit) as error:
            if main.done() or not has_signals():
                raise
            logger.error("an agent's task raised %r; the server continues", error, exc_info=error)
        except RuntimeError as error:
            if main.done() or not has_signals():
                raise
            # An agent has called `loop.stop()`; the server must not stop because of it.
            logger.error("an agent stopped the loop (%s); the server continues", error)


class Deadline:
    """Ends the process if a stop takes too long.

    Its thread starts when the object is created, and waits for `begin`.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._begun = threading.Event()
        self._is_over = threading.Event()
        threading.Thread(target=self._run, name="arp-deadline", daemon=True).start()

    def begin(self) -> None:
        """Start the time limit. This takes a lock, so never call it from a signal handler."""
        self._begun.set()

    def cancel(self) -> None:
        """Cancel the time limit, because the server has stopped."""
        self._is_over.set()
        self._begun.set()

    def _run(self) -> None:
        self._begun.wait()
        if self._is_over.wait(self._seconds):
            return
        main = threading.main_thread().ident
        logger.critical(
            "the server has not stopped within %g s (it is at %s); the process is ended now",
            self._seconds,
            place_of(main) if main is not None else "its end",
        )
        logging.shutdown()
        os._exit(1)


async def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    others = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if not others:
        return
    done, still_running = await asyncio.wait(others, timeout=PATIENCE_S)
    for task in done:
        if not task.cancelled() and task.exception() is not None:
            logger.error("task %s failed", task.get_name(), exc_info=task.exception())
    for task in still_running:
        logger.warning("task %s ignores its cancellation; not waiting for it", task.get_name())


def leave(code: int) -> NoReturn:
    """End the process without waiting for threads that do not end in time. Signals are ignored."""
    ignore_signals()
    sys.stdout.flush()
    deadline = time.monotonic() + PATIENCE_S
    current = threading.current_thread()
    threads = [one for one in threading.enumerate() if one is not current and not one.daemon]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        logging.shutdown()
        os._exit(code)
    raise SystemExit(code)
