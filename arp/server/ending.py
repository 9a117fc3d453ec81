"""Ends a process in time, whatever an agent's code is still doing.

Theory of operation. When this runs, turns are closed and the ledger is written. What is left may be
a task that swallows its cancel, or a thread in a blocking call (`asyncio.to_thread`): both get a
moment, then the process ends without them.
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

T = TypeVar("T")

logger = logging.getLogger(__name__)

PATIENCE_S = 0.5
"""How long tasks, then threads, have to end."""


def run_to_end(
    main: Coroutine[Any, Any, T],
    make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    """Runs a coroutine in a new loop; waits at its end for no task that ignores its cancel.

    Args:
        main: What to run.
        make_loop: Gives the loop; `None` = asyncio's own.
    """
    loop = (make_loop or asyncio.new_event_loop)()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        try:
            loop.run_until_complete(_end_tasks(loop))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


async def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    others = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if not others:
        return
    done, deaf = await asyncio.wait(others, timeout=PATIENCE_S)
    for task in done:
        if not task.cancelled() and task.exception() is not None:
            logger.error("task %s failed", task.get_name(), exc_info=task.exception())
    for task in deaf:
        logger.warning("task %s ignores its cancel; it is left behind", task.get_name())


def leave(code: int) -> NoReturn:
    """Ends the process, if need be over the heads of threads that do not end."""
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
