"""A supervised program ends as it ends by itself, and takes with it what it has started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process

import psutil
import pytest

from arp.process.supervise import supervised
from tests.support.waiting import becomes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")

IN_ITS_OWN_SESSION = "setsid sleep 63.5 & "


async def started(script: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *supervised(["/bin/sh", "-c", script]), stdin=PIPE, stdout=PIPE
    )


async def line_of(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(10):
        return (await process.stdout.readline()).decode().strip()


async def ended(process: Process) -> int:
    async with asyncio.timeout(10):
        await process.communicate(b"")
    assert process.returncode is not None
    return process.returncode


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -TERM $$", -signal.SIGTERM),
        ("kill -KILL $$", -signal.SIGKILL),
    ],
)
async def test_it_ends_as_the_program_ends(script: str, status: int) -> None:
    assert await ended(await started(script)) == status


async def test_input_and_output_are_those_of_the_program() -> None:
    process = await started("read line; echo got $line")
    assert process.stdin is not None
    process.stdin.write(b"this\n")
    assert await line_of(process) == "got this"
    assert await ended(process) == 0


async def test_the_program_gets_the_environment_that_is_given() -> None:
    """Without a locale in it, Python would add one."""
    environment = {"PATH": os.environ["PATH"], "A": "1=2"}
    process = await asyncio.create_subprocess_exec(
        *supervised(["env", "-0"]), stdin=PIPE, stdout=PIPE, env=environment
    )
    async with asyncio.timeout(10):
        output, _ = await process.communicate()
    assert set(output.decode().split("\0")) == {f"PATH={environment['PATH']}", "A=1=2", ""}


async def test_the_program_gets_the_signals_as_they_are_usually() -> None:
    """Python ignores two of them; a pipe of commands counts on them."""
    for name in ("PIPE", "XFSZ", "TERM"):
        status = -getattr(signal, f"SIG{name}")
        assert await ended(await started(f"kill -{name} $$; exit 3")) == status


async def test_a_program_that_cannot_be_started_is_reported() -> None:
    process = await asyncio.create_subprocess_exec(*supervised(["/etc"]), stderr=PIPE)
    async with asyncio.timeout(10):
        _, errors = await process.communicate()
    assert errors == b"/etc cannot be started: Permission denied\n"
    assert process.returncode == 127


async def test_the_program_does_not_outlive_a_killed_supervisor() -> None:
    process = await started("echo $$; exec sleep 63.5")
    program = psutil.Process(int(await line_of(process)))
    process.kill()
    assert await ended(process) == -signal.SIGKILL
    await becomes(lambda: not program.is_running())


async def test_the_program_ends_if_the_host_has_ended_before() -> None:
    """The host is then not the parent any more, so its end is told by nobody."""
    interpreter, *options, _, program = supervised(["cat"])
    ended_host = await asyncio.create_subprocess_exec("true")
    await ended_host.wait()
    process = await asyncio.create_subprocess_exec(
        interpreter, *options, str(ended_host.pid), program, stdin=PIPE
    )
    async with asyncio.timeout(10):
        assert await process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("end", ["exit 3", "kill -KILL $$"])
async def test_what_the_program_leaves_is_ended(end: str) -> None:
    process = await started(f"{IN_ITS_OWN_SESSION} echo $!; read line; {end}")
    left = psutil.Process(int(await line_of(process)))
    assert left.is_running()
    await ended(process)
    assert not left.is_running()


async def test_program_that_ignores_the_signal_is_killed() -> None:
    process = await started(
        f"trap '' TERM; {IN_ITS_OWN_SESSION} echo $!; while :; do sleep 1; done"
    )
    left = psutil.Process(int(await line_of(process)))
    os.kill(process.pid, signal.SIGTERM)
    assert await ended(process) == -signal.SIGKILL
    assert not left.is_running()
