"""Detection of agents that block the event loop.

Theory of operation. All sessions share one loop, so code that does not await (`time.sleep`, a
synchronous HTTP client, a long computation) stops every session. A separate thread detects that
while it happens: it asks the loop to answer, and if no answer comes in time, it logs which turn
runs and where its code is. While no turn runs, the thread sleeps.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from os.path import realpath
from pathlib import Path
from types import FrameType

from arp.live.tasks import OwnedTask

logger = logging.getLogger(__name__)

PINGS = 4
"""Requests to the loop within `blocked_loop_s`; sets the precision of the logged seconds."""


class LoopWatch:
    """Watches one event loop."""

    def __init__(self, blocked_s: float, is_busy: Callable[[], bool]) -> None:
        """Prepare to watch a loop; the first `wake` starts the thread.

        Args:
            blocked_s: Seconds without an answer after which the loop counts as blocked.
            is_busy: Returns whether any turn runs; called in the thread.
        """
        self._blocked_s = blocked_s
        self._is_busy = is_busy
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0
        self._busy = threading.Event()
        self._stopped = threading.Event()
        self._answered = threading.Event()

    def wake(self) -> None:
        """Start watching; called in the loop when a turn begins."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread_id = threading.get_ident()
            threading.Thread(target=self._run, name="arp-loop-watch", daemon=True).start()
        self._busy.set()

    def close(self) -> None:
        """End the thread soon."""
        self._stopped.set()
        self._busy.set()

    def _run(self) -> None:
        while True:
            self._busy.wait()
            if self._stopped.is_set():
                return
            # Cleared before the check: a turn that begins after the check sets it again.
            self._busy.clear()
            if self._is_busy():
                self._busy.set()
                self._watch()
                self._stopped.wait(self._blocked_s / PINGS)

    def _watch(self) -> None:
        """Ask the loop to answer; log, with doubling pauses, while it does not."""
        assert self._loop is not None
        self._answered.clear()
        asked_at, report_after_s, blocker = time.monotonic(), self._blocked_s, ""
        try:
            self._loop.call_soon_threadsafe(self._answered.set)
        # The loop is closed.
        except RuntimeError:
            self._stopped.set()
            return
        while not self._answered.wait(asked_at + report_after_s - time.monotonic()):
            if self._stopped.is_set() or not self._loop.is_running():
                return
            blocker = self._blocker()
            logger.warning(
                "%s has blocked the loop for %.1f s at %s; nothing else runs meanwhile. "
                "Await instead: an async client, or asyncio.to_thread(…)",
                blocker,
                report_after_s,
                place_of(self._thread_id),
            )
            report_after_s *= 2
        if blocker:
            logger.warning("%s blocked the loop for %.1f s", blocker, time.monotonic() - asked_at)

    def _blocker(self) -> str:
        task = asyncio.current_task(self._loop)
        owner = task.owner if isinstance(task, OwnedTask) else None
        if owner is not None:
            return str(owner)
        return f"task {task.get_name()}" if task is not None else "a callback"


def place_of(thread_id: int) -> str:
    """Return the position of a thread, as `agent.py:12 in fetch`.

    This is the newest line outside of libraries, or the newest line if there is none, as in the
    server's own code.
    """
    newest = frame = sys._current_frames().get(thread_id)
    while frame is not None:
        if is_authors(frame.f_code.co_filename):
            return _position(frame)
        frame = frame.f_back
    return _position(newest) if newest is not None else "a thread that ended"


def is_authors(filename: str) -> bool:
    """Return whether a file belongs neither to a library nor to this package."""
    return not filename.startswith(_libraries())


@cache
def _libraries() -> tuple[str, ...]:
    """Return the path prefixes of Python itself, of installed packages and of this package."""
    import sysconfig  # imported only when something goes wrong

    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.add(str(Path(__file__).parents[1]))
    return ("<frozen", *(f"{path}{os.sep}" for one in folders for path in {one, realpath(one)}))


def _position(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
