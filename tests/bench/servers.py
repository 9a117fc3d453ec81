"""Server processes, with the processor time and memory that they have used."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]

READY_S = 30.0
STOP_S = 15.0

OURS = (sys.executable, "-m", "arp.cli", "serve", "tests/bench/agent.py", "--port", "0")
CONNECT = (sys.executable, "-m", "arp.cli", "connect")
BARE = (sys.executable, "-m", "tests.bench.bare")


class Server:
    """A server that runs and listens."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, *, is_ours: bool) -> None:
        self.port = port
        self.is_ours = is_ours
        self._process = process
        self._facts = psutil.Process(process.pid)

    def cpu_s(self) -> float:
        """Return the user and system time of the process so far, of all threads."""
        return cpu_s(self._process.pid)

    def memory_bytes(self) -> int:
        """Return the resident memory of the process."""
        return int(self._facts.memory_info().rss)

    @property
    def pid(self) -> int:
        return self._process.pid


def cpu_s(pid: int) -> float:
    """Return the user and system time of a process so far, of all threads.

    On Linux it comes from the clock of the process, in nanoseconds; on other systems in ticks.
    """
    if sys.platform == "linux":
        return time.clock_gettime((~pid << 3) | 2)  # the id that `clock_getcpuclockid` returns
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


@contextmanager
def running(
    command: Sequence[str], *, is_ours: bool, environment: Mapping[str, str] = os.environ
) -> Iterator[Server]:
    """Start a server, wait until it listens, and stop it at the end."""
    own = {name: value for name, value in environment.items() if not name.startswith("ARP_")}
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env=own)
    try:
        yield Server(process, _port_of(process), is_ours=is_ours)
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def both() -> Iterator[tuple[Server, Server]]:
    """Run ours, with a SQLite ledger on disk as shipped, and the bare server."""
    with tempfile.TemporaryDirectory(prefix="arp-bench-") as folder:
        ours = (*OURS, "--ledger", f"sqlite:{folder}/ledger.db")
        with running(ours, is_ours=True) as first, running(BARE, is_ours=False) as second:
            yield first, second


def ready_line(process: subprocess.Popen[bytes]) -> str:
    """Wait for the line that a server prints when it listens, and return it."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], READY_S)
    line = process.stdout.readline().decode() if readable else ""
    if " on http://" not in line:
        raise RuntimeError(f"the server did not start: {line!r}")
    return line


def _port_of(process: subprocess.Popen[bytes]) -> int:
    found = re.search(r":(\d+)\s*$", ready_line(process))
    assert found is not None
    return int(found[1])
