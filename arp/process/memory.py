"""`over_limit`: wait until a program and all that it has started use too much memory. On Linux.

Theory of operation. A limit of the system (`RLIMIT_DATA`) is one of each process: a program that
forks has it many times, and it does not count memory that processes share. So what is below a
process in `/proc` is added up. `status` is quick to read, but has pages that several processes
share once for each of them: only if that sum is above the limit, the proportional sizes of
`smaps_rollup` are read, which divide such pages among the processes. Files that are only mapped do
not count: the system can drop their pages at any time.

How long to wait between two looks follows from what is left: in that time a program could not have
reached its limit at `FASTEST`. A tool at rest costs some 0.1 ms, a few times in a second.

What this does not see is memory that no process has mapped, such as that of a `memfd`.
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

FASTEST: Final = 2**30
"""Bytes per second; one core fills memory at about this rate."""
LEAST_WAIT_S: Final = 0.05
MOST_WAIT_S: Final = 1.0

_QUICK: Final = (b"RssAnon:", b"RssShmem:", b"VmSwap:")
_EXACT: Final = (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:")


async def over_limit(pid: int, limit: int) -> int:
    """Return how many bytes a process and those below it use, once that is more than `limit`.

    It does not return before, nor where there is no `/proc`; so it is cancelled when the process
    has ended.

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
    """Return how many bytes of memory a process and all those below it use.

    Args:
        pid: The process.
        enough: If the quick sum is not above this, it is returned: it may be too large.
    """
    processes = [pid, *processes_below(pid)]
    quick = {process: _sum(f"/proc/{process}/status", _QUICK) for process in processes}
    if sum(quick.values()) <= enough:
        return sum(quick.values())
    return sum(_exact(process, quick[process]) for process in processes)


def processes_below(pid: int) -> Sequence[int]:
    """Return the ids of all processes that a process has started, and that those have."""
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
    """Kill all processes below a process, but not that one."""
    for process in processes_below(pid):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def _exact(pid: int, quick: int) -> int:
    """Return the proportional size of a process.

    That is the quick sum where it cannot be read, or has no parts (Linux before 5.4).
    """
    return _sum(f"/proc/{pid}/smaps_rollup", _EXACT) or quick


def _sum(file: str, names: Sequence[bytes]) -> int:
    """Return the sum of some lines `Name:   123 kB` in bytes; 0 if the file cannot be read."""
    total = 0
    with suppress(OSError), open(file, "rb") as lines:
        for line in lines:
            if line.startswith(tuple(names)):
                total += int(line.split()[1]) * 1024
    return total
