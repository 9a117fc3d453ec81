"""Refuse to run in one of several worker processes.

Each process would have its own sessions, and a renderer that reconnects may reach another process.
A ledger on disk refuses the second process, but a ledger in memory cannot, and the first process
does not know about the others. Servers report their number of workers neither in the environment
nor over ASGI. So this module reads the server's local variables from the stack frames of the main
thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

from arp.store.errors import StoreUnavailable

_WORKER_COUNTS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "uvicorn.supervisors.multiprocess": lambda names: names["self"].config.workers,
    "hypercorn.asyncio.run": lambda names: names["config"].workers,
    "hypercorn.trio.run": lambda names: names["config"].workers,
    "gunicorn.arbiter": lambda names: names["self"].num_workers,
}
"""Modules that run a worker, and how to read the number of workers from a frame's local names."""


class SeveralWorkers(StoreUnavailable):
    """The server runs the application in several processes."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"this server runs {count} worker processes, and sessions live in one; "
            "start it with one worker (--workers 1)"
        )


def check_alone() -> None:
    """Check that the server runs a single worker process.

    Raises:
        SeveralWorkers: uvicorn, gunicorn or hypercorn was started with more than one worker.
    """
    count = max((_workers(frame) for frame in _frames()), default=1)
    if count > 1:
        raise SeveralWorkers(count)


def _frames() -> Iterator[FrameType]:
    """Yield the stack frames of the main thread, where servers run their workers."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _workers(frame: FrameType) -> int:
    read_count = _WORKER_COUNTS.get(frame.f_globals.get("__name__", ""))
    if read_count is None:
        return 1
    try:
        count = read_count(frame.f_locals)
    except (KeyError, AttributeError):  # another function of that module
        return 1
    return count if isinstance(count, int) else 1
