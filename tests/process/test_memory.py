"""The memory of a program and of all that it has started is added up; shared pages count once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from arp.process.memory import memory_of, over_limit, processes_below

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")

MIB = 2**20

FAMILY = """
import mmap, os, sys
kind, children = sys.argv[1], int(sys.argv[2])
data = bytearray(b"x") * (40 << 20) if kind == "copied" else None
for _ in range(children):
    reads, writes = os.pipe()
    if not os.fork():
        if kind == "own":
            data = bytearray(b"x") * (40 << 20)
        elif kind == "mapped":
            data = mmap.mmap(-1, 40 << 20)
            for at in range(0, len(data), 4096):
                data[at] = 1
        os.write(writes, b"x")
        sys.stdin.read()
        os._exit(0)
    os.read(reads, 1)
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def family(kind: str, children: int) -> Iterator[int]:
    """Start a process with children; yield its id once all have their memory."""
    words = [sys.executable, "-I", "-S", "-c", FAMILY, kind, str(children)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid


@pytest.mark.parametrize(
    ("kind", "children", "least", "most"),
    [
        ("own", 3, 120, 160),
        ("mapped", 2, 80, 110),  # not in RLIMIT_DATA at all
        ("copied", 4, 40, 70),  # five processes have the same 40 MiB
    ],
)
def test_memory_of_a_tree(kind: str, children: int, least: int, most: int) -> None:
    with family(kind, children) as pid:
        assert len(processes_below(pid)) == children
        assert least <= memory_of(pid) / MIB <= most


async def test_only_a_tree_above_its_limit_is_reported() -> None:
    with family("copied", 4) as pid:
        assert await asyncio.wait_for(over_limit(pid, 30 * MIB), 10) > 30 * MIB
        with pytest.raises(TimeoutError):  # the quick sum is far above it
            await asyncio.wait_for(over_limit(pid, 80 * MIB), 0.3)


def test_process_that_has_ended_uses_nothing() -> None:
    with family("own", 0) as pid:
        assert memory_of(pid) > 0
    assert memory_of(pid) == 0
    assert processes_below(pid) == []
