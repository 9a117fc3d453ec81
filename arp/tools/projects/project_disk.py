"""`DiskLimit`: how much of the disk a project may use, and when its programs have used more.

Theory of operation. What counts is what the disk holds: the blocks of each file, so that a sparse
file counts as little as it takes, and a file with several names counts once. Files that a program
has removed and still holds open count too. Nobody is told when a program writes, so the project is
added up again and again while one runs; the time between two sums depends on the room that is left.
A single file cannot be larger than the limit (`RLIMIT_FSIZE`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from arp.process.memory import processes_below
from arp.tools.errors import CapacityExceeded, ToolRefused
from arp.tools.projects.project_look import entries_below

MIB: Final = 2**20
BLOCK_BYTES: Final = 512
"""Unit of `st_blocks`, whatever the file system."""
FASTEST: Final = 4 * 2**30
"""Bytes per second that no disk of ours exceeds."""
LEAST_WAIT_S: Final = 0.1
MOST_WAIT_S: Final = 2.0
SHARE: Final = 10
"""So many times as long as a sum takes we wait at least: it uses a tenth of a core at most."""
OVERFLOW: Final = 2
"""Beyond so many times its limit nothing runs in a project; up to there a command may clean up."""


class DiskUse(NamedTuple):
    """What the disk holds of a project."""

    bytes: int
    files: int
    """Files, links and directories."""


class DiskLimit(Struct, frozen=True):
    """What a project may use."""

    root: Path
    bytes: int
    files: int

    def check_room(self, more: DiskUse) -> None:
        """Check that more fits.

        Raises:
            CapacityExceeded: It does not; the message says how much is used, and what to do.
        """
        used = disk_use(self.root)
        fits = used.bytes + more.bytes <= self.bytes and used.files + more.files <= self.files
        if not fits:
            raise CapacityExceeded(f"{more.bytes} bytes more do not fit: {self.said_of(used)}")

    def for_a_run(self) -> DiskLimit:
        """Return the limit of a program: in a project that is full, it may not add anything.

        Raises:
            CapacityExceeded: So much is used that nothing may run.
        """
        used = disk_use(self.root)
        if used.bytes > OVERFLOW * self.bytes or used.files > OVERFLOW * self.files:
            raise CapacityExceeded(f"nothing may run in this project: {self.said_of(used)}")
        return DiskLimit(self.root, max(self.bytes, used.bytes), max(self.files, used.files))

    def said_of(self, used: DiskUse) -> str:
        """Return how much is used, and what to do, for people."""
        return (
            f"{self.root.name} uses {-(-used.bytes // MIB)} MiB of the disk in {used.files} files; "
            f"its limits are {self.bytes // MIB} MiB and {self.files} files. Remove files, or set "
            "TOOL_AGENT_PROJECT_DISK_MB and TOOL_AGENT_PROJECT_FILES"
        )


def disk_use(root: Path, pid: int | None = None) -> DiskUse:
    """Return what the disk holds of a project.

    Args:
        root: Its directory.
        pid: A process; what it and its descendants have removed and hold open counts too.

    Raises:
        CapacityExceeded: Directories are nested so deep that nobody can say.
    """
    blocks, files = 0, 0
    seen: set[tuple[int, int]] = set()
    try:
        for found in entries_below(root):
            status = found.status
            files += 1
            if status.st_nlink > 1:
                place = (status.st_dev, status.st_ino)
                if place in seen:
                    continue
                seen.add(place)
            blocks += status.st_blocks
    except ToolRefused as refused:
        raise CapacityExceeded(refused.message) from refused
    if pid is not None:
        blocks += _removed_blocks(root, pid)
    return DiskUse(blocks * BLOCK_BYTES, files)


def _removed_blocks(root: Path, pid: int) -> int:
    """Return the blocks of files that processes have removed and hold open."""
    device, found = os.stat(root).st_dev, dict[int, int]()
    for process in processes_below(pid):
        with suppress(OSError):  # it has just ended
            for number in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    status = os.stat(f"/proc/{process}/fd/{number}")
                    if status.st_nlink == 0 and status.st_dev == device:
                        found[status.st_ino] = status.st_blocks
    return sum(found.values())


async def over_disk(limit: DiskLimit, pid: int) -> str:
    """Wait until a project uses more than it may; return how much, for people.

    Cancel it when the process has ended.

    Cancel: Safe.
    """
    clock = asyncio.get_running_loop().time
    has_proc = sys.platform == "linux"
    while True:
        began = clock()
        try:
            used = await asyncio.to_thread(disk_use, limit.root, pid if has_proc else None)
        except CapacityExceeded as error:
            return error.message
        except OSError:  # the project was removed
            used = DiskUse(0, 0)
        if used.bytes > limit.bytes or used.files > limit.files:
            return limit.said_of(used)
        left_s = (limit.bytes - used.bytes) / FASTEST
        await asyncio.sleep(max(LEAST_WAIT_S, SHARE * (clock() - began), min(left_s, MOST_WAIT_S)))
