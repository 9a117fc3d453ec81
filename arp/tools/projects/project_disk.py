"""`DiskLimit`: the disk limit of a project, and the check while its programs run.

Theory of operation. The allocated blocks of each file count: a sparse file counts with its blocks
only, and a file with several names counts once. Files that a program has deleted but holds open
count too. The system does not report writes, so the usage is summed repeatedly while a program
runs; the interval depends on the room that is left. A single file cannot exceed the limit
(`RLIMIT_FSIZE`).
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
"""Unit of `st_blocks`, on every file system."""
FASTEST: Final = 4 * 2**30
"""Highest write rate that is expected of a disk, in bytes per second."""
LEAST_WAIT_S: Final = 0.1
MOST_WAIT_S: Final = 2.0
SHARE: Final = 10
"""Shortest pause between two measurements, as a multiple of the time that one takes: measuring uses
at most a tenth of a core."""
OVERFLOW: Final = 2
"""Multiple of the limit above which nothing runs. Below it, a command can still remove files."""


class DiskUse(NamedTuple):
    """Disk usage of a project."""

    bytes: int
    files: int
    """Number of files, links and directories."""


class DiskLimit(Struct, frozen=True):
    """Disk limit of a project."""

    root: Path
    bytes: int
    files: int

    def check_room(self, more: DiskUse) -> None:
        """Check that `more` fits.

        Raises:
            CapacityExceeded: It does not fit; the message has the usage and the remedy.
        """
        used = disk_use(self.root)
        fits = used.bytes + more.bytes <= self.bytes and used.files + more.files <= self.files
        if not fits:
            raise CapacityExceeded(f"{more.bytes} bytes more do not fit: {self.explanation(used)}")

    def for_a_run(self) -> DiskLimit:
        """Return the limit for one run; in a full project it is the present usage.

        Raises:
            CapacityExceeded: The project is too full to run anything.
        """
        used = disk_use(self.root)
        if used.bytes > OVERFLOW * self.bytes or used.files > OVERFLOW * self.files:
            raise CapacityExceeded(f"nothing may run in this project: {self.explanation(used)}")
        return DiskLimit(self.root, max(self.bytes, used.bytes), max(self.files, used.files))

    async def exceeded(self, pid: int) -> str:
        """Wait until the project exceeds the limit; return the reason for ending its program.

        Args:
            pid: Process id; deleted files that it and its descendants hold open count too.

        Cancel: Safe.
        """
        clock = asyncio.get_running_loop().time
        has_proc = sys.platform == "linux"
        while True:
            began = clock()
            try:
                used = await asyncio.to_thread(disk_use, self.root, pid if has_proc else None)
            except CapacityExceeded as error:
                return f"it was ended: {error.message}"
            except OSError:  # the project was removed
                used = DiskUse(0, 0)
            if used.bytes > self.bytes or used.files > self.files:
                return f"it was ended: {self.explanation(used)}"
            left_s = (self.bytes - used.bytes) / FASTEST
            pause_s = max(LEAST_WAIT_S, SHARE * (clock() - began), min(left_s, MOST_WAIT_S))
            await asyncio.sleep(pause_s)

    def explanation(self, used: DiskUse) -> str:
        """Return the usage and the remedy as text for people."""
        return (
            f"{self.root.name} uses {-(-used.bytes // MIB)} MiB of the disk in {used.files} files; "
            f"its limits are {self.bytes // MIB} MiB and {self.files} files. Remove files, or set "
            "TOOL_AGENT_PROJECT_DISK_MB and TOOL_AGENT_PROJECT_FILES"
        )


def disk_use(root: Path, pid: int | None = None) -> DiskUse:
    """Return the disk usage of a project.

    Args:
        root: Directory of the project.
        pid: Process id; deleted files that it and its descendants hold open count too.

    Raises:
        CapacityExceeded: Directories are nested too deeply to determine the usage.
    """
    blocks, files = 0, 0
    seen: set[tuple[int, int]] = set()
    try:
        for found in entries_below(root):
            status = found.status
            files += 1
            if status.st_nlink > 1:
                inode = (status.st_dev, status.st_ino)
                if inode in seen:
                    continue
                seen.add(inode)
            blocks += status.st_blocks
    except ToolRefused as refused:
        raise CapacityExceeded(refused.message) from refused
    if pid is not None:
        blocks += _removed_blocks(root, pid)
    return DiskUse(blocks * BLOCK_BYTES, files)


def _removed_blocks(root: Path, pid: int) -> int:
    """Return the blocks of deleted files that processes hold open."""
    device, found = os.stat(root).st_dev, dict[int, int]()
    for process in processes_below(pid):
        with suppress(OSError):  # it has just ended
            for number in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    status = os.stat(f"/proc/{process}/fd/{number}")
                    if status.st_nlink == 0 and status.st_dev == device:
                        found[status.st_ino] = status.st_blocks
    return sum(found.values())
