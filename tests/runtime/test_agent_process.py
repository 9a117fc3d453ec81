"""The program of an agent gets what it is given, and ends with all that it has started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from arp.process.program import ProgramStart
from arp.runtime.programs.agent_process import AgentProcess

PATH = {"PATH": "/usr/bin:/bin"}
IN_ITS_OWN_SESSION = "setsid sleep 64.5 & "
TOLD_TO_END = -signal.SIGTERM if sys.platform == "linux" else -signal.SIGKILL


def shell(script: str, place: Path) -> ProgramStart:
    return ProgramStart(["sh", "-c", script], PATH, str(place), "the agent")


async def line_of(process: AgentProcess) -> str:
    async with asyncio.timeout(10):
        return (await process.output.readline()).decode().strip()


async def test_missing_program_is_an_error_of_its_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="agent"):
        await AgentProcess.start(ProgramStart(["agent"], {}, str(tmp_path)))


async def test_its_id_is_that_of_the_program_itself(tmp_path: Path) -> None:
    process = await AgentProcess.start(shell("echo $$; read line", tmp_path))
    told = int(await line_of(process))
    assert process.program_id == told
    assert await process.stop(10) == 1
    assert (process.exit_code, process.program_id) == (1, 0)


async def test_its_last_errors_are_kept_without_colours(tmp_path: Path) -> None:
    told: list[str] = []
    script = "for i in $(seq 130); do printf '\\033[31mno %s\\033[0m\\n' $i >&2; done; exit 3"
    process = await AgentProcess.start(shell(script, tmp_path), told.append)
    assert await process.wait(10) == 3
    await process.wait_for_errors(10)
    assert told == [f"no {number}" for number in range(1, 131)]
    assert list(process.errors) == told[30:]
    assert await process.stop(10) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
@pytest.mark.parametrize("how", ["end of its input", "force", "kill"])
async def test_what_it_has_started_ends_with_it(tmp_path: Path, how: str) -> None:
    last = "exec sleep 64.5" if how == "force" else "read line; exit 0"
    process = await AgentProcess.start(shell(f"{IN_ITS_OWN_SESSION} echo $!; {last}", tmp_path))
    left = psutil.Process(int(await line_of(process)))
    if how == "kill":
        os.kill(process.program_id, signal.SIGKILL)
        assert await process.wait(10) == -signal.SIGKILL
    else:
        code = await process.stop(0.1 if how == "force" else 10)
        assert code == (TOLD_TO_END if how == "force" else 0)
    assert not left.is_running()
