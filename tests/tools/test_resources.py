"""The allocation rule: cores at most those of the machine, memory at most 80 % of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from arp.tools.errors import CapacityExceeded
from arp.tools.registry.models import ResourceLimits, ResourceUsage, SystemInfo
from arp.tools.run.resources import Resources, ThisMachine


class Small:
    """Four cores, 1,000 MB."""

    def __init__(self, gpu_mb: float = 0) -> None:
        self._gpu_mb = gpu_mb

    def system(self) -> SystemInfo:
        return SystemInfo(4, 11.1, 1000, 500, 50.0, 924.3, 327.3)

    def gpu_memory_mb(self) -> float:
        return self._gpu_mb


def test_cores_are_allocated_up_to_those_of_the_machine() -> None:
    mine = Resources(Small())
    for number in range(40):
        mine.allocate(f"t{number}", ResourceLimits(cpu="0.1", memory_mb=1))
    assert mine.allocated() == ResourceUsage(4.0, 40.0, 0.0)
    with pytest.raises(CapacityExceeded, match=r"needs 0\.1 cores; 4 of 4 are allocated"):
        mine.allocate("one more", ResourceLimits(cpu="0.1", memory_mb=1))
    mine.release("t0")
    mine.allocate("one more", ResourceLimits(cpu="0.1", memory_mb=1))


def test_memory_is_allocated_up_to_80_percent() -> None:
    mine = Resources(Small())
    mine.allocate("a", ResourceLimits(memory_mb=400))
    mine.allocate("b", ResourceLimits(memory_mb=400))
    with pytest.raises(CapacityExceeded, match="needs 1 MB; 800 of 800"):
        mine.allocate("c", ResourceLimits(memory_mb=1))
    assert mine.usage("c") == ResourceUsage()


def test_a_tool_that_is_started_again_counts_once() -> None:
    mine = Resources(Small())
    for _ in range(3):
        mine.allocate("a", ResourceLimits(cpu="3", memory_mb=700))
    assert mine.usage("a") == ResourceUsage(3.0, 700.0, 0.0)


def test_one_tool_has_the_gpu_at_a_time() -> None:
    mine = Resources(Small(gpu_mb=8000))
    limits = ResourceLimits(cpu="1", memory_mb=1, gpu=True)
    assert mine.allocate("a", limits).gpu_memory_mb == 8000
    with pytest.raises(CapacityExceeded, match="which tool a has"):
        mine.allocate("b", limits)
    mine.release("a")
    mine.allocate("b", limits)
    with pytest.raises(CapacityExceeded, match="has none"):
        Resources(Small()).allocate("a", limits)


def test_the_machine_is_described_in_the_fields_of_the_document(tmp_path: Path) -> None:
    """Section 8."""
    info = msgspec.to_builtins(ThisMachine(tmp_path / "not" / "yet").system())
    assert list(info) == [
        *("cpu_count", "cpu_percent", "memory_total_mb", "memory_available_mb"),
        *("memory_percent", "disk_total_gb", "disk_free_gb"),
    ]
    assert info["cpu_count"] >= 1
    assert 0 < info["memory_available_mb"] <= info["memory_total_mb"]
    assert 0 <= info["memory_percent"] <= 100
    assert 0 < info["disk_free_gb"] <= info["disk_total_gb"]
