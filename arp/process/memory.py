"""`MemoryLimit`: limit of the memory of a program and its descendants together. On Linux.

Theory of operation. `RLIMIT_DATA` limits each process separately, so a program that forks has the
limit many times, and shared memory is not counted. So the memory of a process tree is added up from
`/proc`. `status` is quick to read, but counts a shared page once for each process that shares it.
Only if the sum is above the limit, `smaps_rollup` is read, which divides the size of shared pages
among the processes. Mapped files are not counted: the system can drop their pages at any time.

The time between two checks depends on the memory that is left: a program that allocates at
`FASTEST` cannot reach its limit in that time. The checks of an idle program take about 0.1 ms each,
a few times a second.

Memory that no process has mapped, such as that of a `memfd`, is not counted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

MIB: Final = 2**20
FASTEST: Final = 2**30
"""Bytes per second at which one core can fill memory."""
LEAST_WAIT_S: Final = 0.05
MOST_WAIT_S: Final = 1.0

_QUICK: Final = (b"RssAnon:", b"RssShmem:", b"VmSwap:")
_EXACT: Final = (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:")


class MemoryLimit(msgspec.Struct, frozen=True):
    """Limit of the memory of a program and its descendants together."""

    memory_mb: int

    def for_a_run(self) -> MemoryLimit:
        """Return this limit, because it keeps no state about a run."""
        return self

    async def exceeded(self, pid: int) -> str:
        """Wait until a process and its descendants exceed the limit; return an error text.

        Cancel: Safe.
        """
        used = await over_limit(pid, self.memory_mb * MIB)
        return (
            f"it and the processes that it started used {-(-used // MIB)} MiB of memory together; "
            f"their limit is {self.memory_mb} MiB, so all were ended"
        )


async def over_limit(pid: int, limit: int) -> int:
    """Wait until a process and its descendants use more than `limit` bytes; return their bytes.

    On systems other than Linux it never returns. Cancel it when the process has ended.

    Cancel: Safe.
    """
    if sys.platform != "linux":
        await asyncio.Event().wait()
    while True:
        used = await asyncio.to_thread(memory_of, pid, limit)
        if used > limit:
            return used
        await asyncio.sleep(max(LEAST_WAIT_S, min((limit - used) / FASTEST, MOST_WAIT_S)))


def memory_of(pid: int, enough: int = 0) -> int:
    """Return how many bytes of memory a process and all of its descendants use.

    Args:
        pid: The process.
        enough: Limit in bytes for the quick sum, which may be too large but is never too small. A
            sum within this limit is returned, and no exact size is read.
    """
    processes = [pid, *processes_below(pid)]
    quick = {process: _sum(f"/proc/{process}/status", _QUICK) for process in processes}
    if sum(quick.values()) <= enough:
        return sum(quick.values())
    return sum(_exact(process, quick[process]) for process in processes)


def processes_below(pid: int) -> Sequence[int]:
    """Return the ids of all descendants of a process."""
    found: list[int] = []
    seen = {pid}
    waiting = [pid]
    while waiting:
        task = Path(f"/proc/{waiting.pop()}/task")
        with suppress(OSError):  # it has just ended
            for thread in os.listdir(task):
                children = map(int, (task / thread / "children").read_text().split())
                new = [child for child in children if child not in seen]
                seen.update(new)
                found += new
                waiting += new
    return found


def kill_below(pid: int) -> None:
    """Kill all descendants of a process, but not the process itself."""
    for process in processes_below(pid):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def _exact(pid: int, quick: int) -> int:
    """Return the size of a process in bytes, with its share of shared pages.

    Returns:
        The quick sum if that size cannot be read or is not reported (Linux before 5.4).
    """
    return _sum(f"/proc/{pid}/smaps_rollup", _EXACT) or quick


def _sum(file: str, names: Sequence[bytes]) -> int:
    """Return the sum of the lines `Name:   123 kB` in bytes; 0 if the file cannot be read."""
    total = 0
    with suppress(OSError), open(file, "rb") as lines:
        for line in lines:
            if line.startswith(tuple(names)):
                total += int(line.split()[1]) * 1024
    return total
