"""What an agent has started ends with the runtime, with its program, and with this process.

A program of the test has the runtime, so that it can be killed. The command of the agent has two
processes, one of them in a session of its own.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.runtime.clis import Cli, end_processes_of, processes_of
from tests.runtime.conftest import OPENCODE_S
from tests.support.waiting import becomes

COMMAND = "run: setsid sleep 62.5 & exec sleep 62.5"
WITHIN_S = 30.0
LOOK_S = 0.05
"""After how long the processes are looked at again: to look takes 30 ms."""

CLAUDE = pytest.param("claude", marks=pytest.mark.claude)
CODEX = pytest.param("codex", marks=pytest.mark.codex)
OPENCODE = pytest.param("opencode", marks=[pytest.mark.opencode, pytest.mark.timeout(OPENCODE_S)])

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")


@pytest.fixture
def cli(request: pytest.FixtureRequest) -> Cli:
    """Return the CLI that a test names."""
    found: Cli = request.getfixturevalue(f"{request.param}_cli")
    return found


@asynccontextmanager
async def hosting(cli: Cli) -> AsyncIterator[Process]:
    """Run a program whose agent runs the command; nothing of it is left at the end."""
    which: dict[str, tuple[str, dict[str, Any]]] = {
        "claude": ("claude-code", {"model": "fake-1"}),
        "codex": ("codex", {}),
    }
    acp = f"acp:{shlex.join(cli.command)}"
    name, fields = which.get(Path(cli.program).name, (acp, {}))
    told = (str(cli.cwd), json.dumps(cli.environment), json.dumps(fields), COMMAND)
    command = (sys.executable, "-m", "tests.runtime.scripted_host", name, *told)
    host = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    try:
        runs = partial(becomes, within_s=OPENCODE_S / 2, every_s=LOOK_S)
        await runs(lambda: names_of(cli).count("sleep") == 2)
        yield host
    finally:
        with suppress(ProcessLookupError):
            host.kill()
        await asyncio.wait_for(host.communicate(), WITHIN_S)
        await asyncio.to_thread(end_processes_of, cli)


def names_of(cli: Cli) -> list[str]:
    """Return the names of all processes of a CLI."""
    names = []
    for process in processes_of(cli):
        with suppress(psutil.Error):
            names.append(process.name())
    return names


async def none_is_left(cli: Cli) -> None:
    """Wait until no process of a CLI is left."""
    await becomes(lambda: processes_of(cli) == [], every_s=LOOK_S)


def programs_of(cli: Cli) -> list[psutil.Process]:
    """Return the processes of the program itself."""
    program = str(Path(cli.program).resolve())
    found = [one for one in processes_of(cli) if one.exe() == program]
    assert found
    return found


def kill(processes: list[psutil.Process]) -> None:
    """Kill processes as `kill -9` does; they may have ended."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("cli", [CLAUDE, CODEX], indirect=True)
async def test_nothing_is_left_when_the_runtime_is_closed(cli: Cli) -> None:
    async with hosting(cli) as host, asyncio.timeout(WITHIN_S):
        assert host.stdin is not None
        assert host.stdout is not None
        host.stdin.write(b"close\n")
        assert await host.stdout.readline() == b"closed\n"
        assert processes_of(cli) == []


@pytest.mark.parametrize("cli", [CODEX], indirect=True)
async def test_nothing_is_left_when_the_program_is_killed(cli: Cli) -> None:
    async with hosting(cli) as host:
        kill(programs_of(cli))
        await none_is_left(cli)
        assert host.returncode is None


@pytest.mark.parametrize("cli", [CLAUDE, CODEX, OPENCODE], indirect=True)
async def test_nothing_is_left_when_this_process_is_killed(cli: Cli) -> None:
    async with hosting(cli) as host:
        host.kill()
        await none_is_left(cli)


@pytest.mark.parametrize("cli", [CLAUDE, CODEX], indirect=True)
async def test_nothing_is_left_when_both_are_killed(cli: Cli) -> None:
    async with hosting(cli) as host:
        programs = programs_of(cli)
        host.kill()
        kill(programs)
        await none_is_left(cli)
