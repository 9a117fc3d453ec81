"""A server as a process of its own, to be stopped or killed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

START_S = 60.0


class Process:
    """`arp serve` as a child."""

    def __init__(self, child: asyncio.subprocess.Process, port: int) -> None:
        self.child = child
        self.port = port

    @property
    def ws(self) -> str:
        """Its WebSocket address."""
        return f"ws://127.0.0.1:{self.port}/_arp/v1"

    @property
    def http(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def kill(self) -> None:
        """Ends it as a power cut would; waits until it is gone."""
        self.child.kill()
        await self.child.wait()

    async def stop(self, within_s: float) -> int:
        """Asks it to stop, and gives its exit code."""
        self.child.terminate()
        async with asyncio.timeout(within_s):
            return await self.child.wait()

    async def aclose(self) -> None:
        """Ends it, if it has not ended."""
        if self.child.returncode is None:
            with suppress(ProcessLookupError):
                self.child.kill()
            await self.child.wait()

    def peak(self) -> int:
        """Return the most memory that was ever resident, in bytes."""
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) << 10

    def rss(self) -> int:
        """Gives its resident memory, in bytes."""
        fields = Path(f"/proc/{self.child.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


async def start(agent: Path, ledger: Path, *options: str) -> Process:
    """Starts a server and waits until it says where it is."""
    command: Sequence[str] = (
        *(sys.executable, "-m", "arp.cli", "serve", str(agent), "--port", "0"),
        *("--ledger", f"sqlite:{ledger}", *options),
    )
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    started = Process(child, 0)
    try:
        async with asyncio.timeout(START_S):
            line = (await child.stdout.readline()).decode()
        assert line.startswith("ARP on http://127.0.0.1:"), line
    except BaseException:
        await started.aclose()
        raise
    started.port = int(line.rpartition(":")[2])
    return started
