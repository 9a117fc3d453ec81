"""`Resources`: the resources of the machine and their allocation to tools.

The tools that run at the same time may have together at most all cores and 80 % of the memory of
the machine.

Source: internal_api.md 8.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, Protocol

from arp.tools.errors import CapacityExceeded, extra_missing
from arp.tools.registry.models import ResourceLimits, ResourceUsage, SystemInfo

MEMORY_SHARE: Final = 0.8
"""Share of the memory for tools; the rest is for the system and this process."""
_MIB: Final = 2**20
_GIB: Final = 2**30
GPU_S: Final = 5.0


class MachineInfo(Protocol):
    """Source of the machine's resources."""

    def system(self) -> SystemInfo:
        """Return the resources of the machine and how much of them is in use."""

    def gpu_memory_mb(self) -> float:
        """Return the memory of the machine's GPUs; 0 if it has none."""


class ThisMachine:
    """Resources of the machine that this process runs on.

    Args:
        disk: Path on the disk to report.
    """

    def __init__(self, disk: Path = Path("/")) -> None:
        self._disk = disk
        self._gpu_memory_mb: float | None = None

    def system(self) -> SystemInfo:
        """Return the resources of the machine and how much of them is in use.

        Raises:
            RuntimeMissing: psutil is not installed.
        """
        try:
            import psutil
        except ImportError as error:
            raise extra_missing("psutil") from error
        memory = psutil.virtual_memory()
        disk = psutil.disk_usage(str(_existing(self._disk)))
        return SystemInfo(
            cpu_count=psutil.cpu_count() or 1,
            cpu_percent=psutil.cpu_percent(),
            memory_total_mb=memory.total // _MIB,
            memory_available_mb=memory.available // _MIB,
            memory_percent=memory.percent,
            disk_total_gb=round(disk.total / _GIB, 1),
            disk_free_gb=round(disk.free / _GIB, 1),
        )

    def gpu_memory_mb(self) -> float:
        """Return the memory of all GPUs, read once from `nvidia-smi`; 0 if there is no GPU."""
        if self._gpu_memory_mb is None:
            self._gpu_memory_mb = _gpu_memory_mb()
        return self._gpu_memory_mb


class Resources:
    """Allocations of tools, and the check whether one more tool fits.

    Args:
        machine: Source of the machine's resources.
    """

    def __init__(self, machine: MachineInfo) -> None:
        self._machine = machine
        self._allocated: dict[str, ResourceUsage] = {}

    def system(self) -> SystemInfo:
        """Return the resources of the machine and how much of them is in use."""
        return self._machine.system()

    def usage(self, tool_id: str) -> ResourceUsage:
        """Return the allocation of a tool; zero while it does not run."""
        return self._allocated.get(tool_id, ResourceUsage())

    def allocated(self) -> ResourceUsage:
        """Return the sum of all allocations."""
        return _sum(self._allocated.values())

    def allocate(self, tool_id: str, limits: ResourceLimits) -> ResourceUsage:
        """Allocate resources to a tool, in place of its earlier allocation.

        Raises:
            CapacityExceeded: Too little of a resource is free; the message names it. Nothing has
                changed.
        """
        shortage = self.shortage(tool_id, limits)
        if shortage:
            raise CapacityExceeded(shortage)
        gpu_mb = self._machine.gpu_memory_mb() if limits.gpu else 0.0
        usage = ResourceUsage(limits.cores, float(limits.memory_mb), gpu_mb)
        self._allocated[tool_id] = usage
        return usage

    def shortage(self, tool_id: str, limits: ResourceLimits, without: Collection[str] = ()) -> str:
        """Return a message about the resource that a tool lacks; empty if there is enough.

        Args:
            tool_id: Id of the tool; its own allocation counts as free.
            limits: Resources that it requests.
            without: Further tools with allocations that count as free.
        """
        gone = {tool_id, *without}
        others = {one: usage for one, usage in self._allocated.items() if one not in gone}
        used = _sum(others.values())
        system = self._machine.system()
        if used.cpu_cores + limits.cores > system.cpu_count:
            return (
                f"tool {tool_id} needs {limits.cores:g} cores; {used.cpu_cores:g} of "
                f"{system.cpu_count} are allocated: stop a tool, or lower its cpu"
            )
        room = system.memory_total_mb * MEMORY_SHARE
        if used.memory_mb + limits.memory_mb > room:
            return (
                f"tool {tool_id} needs {limits.memory_mb:g} MB; {used.memory_mb:g} of {room:.0f} "
                f"(80 % of {system.memory_total_mb}) are allocated: stop a tool"
            )
        if limits.gpu and not self._machine.gpu_memory_mb():
            return f"tool {tool_id} needs a GPU, and this machine has none"
        holder = next((one for one, usage in others.items() if usage.gpu_memory_mb), None)
        if limits.gpu and holder is not None:
            return f"tool {tool_id} needs the GPU, which tool {holder} has"
        return ""

    def release(self, tool_id: str) -> None:
        """Release the allocation of a tool. May be repeated."""
        self._allocated.pop(tool_id, None)


def _sum(usages: Iterable[ResourceUsage]) -> ResourceUsage:
    cores = memory = gpu = 0.0
    for usage in usages:
        cores += usage.cpu_cores
        memory += usage.memory_mb
        gpu += usage.gpu_memory_mb
    # Cores have at most three decimals. Rounding makes ten times 0.1 equal to 1.
    return ResourceUsage(round(cores, 3), memory, gpu)


def _existing(path: Path) -> Path:
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def _gpu_memory_mb() -> float:
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0.0
    words = [program, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=GPU_S, check=True)
        return sum(float(line) for line in done.stdout.split())
    except (OSError, subprocess.SubprocessError, ValueError):
        return 0.0
