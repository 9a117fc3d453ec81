"""A program runs to its end within its limits, and ends with all that it has started."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import psutil
import pytest

from arp.process.program import (
    TIMED_OUT,
    ProgramStart,
    ServingProgram,
    UsageLimit,
    run_program,
)
from arp.process.sandbox import Confinement, ProcessLimits
from tests.support.waiting import becomes

PATH = {"PATH": "/usr/bin:/bin"}
IN_ITS_OWN_SESSION = "setsid sleep 64.5 & "


def shell(script: str, place: Path, *limits: UsageLimit) -> ProgramStart:
    return ProgramStart(["sh", "-c", script], PATH, str(place), usage_limits=limits)


async def test_result_has_the_exit_code_and_both_outputs(tmp_path: Path) -> None:
    result = await run_program(
        shell("read line; echo $line; pwd >&2; exit 3", tmp_path), 10, stdin=b"in\n"
    )
    assert (result.exit_code, result.stdout) == (3, "in\n")
    assert (result.stderr, result.cause()) == (f"{tmp_path}\n", str(tmp_path))


async def test_exit_code_of_a_killed_program_is_its_signal(tmp_path: Path) -> None:
    result = await run_program(shell("kill -9 $$", tmp_path), 10)
    assert result.exit_code == -signal.SIGKILL


async def test_program_is_found_in_the_path_of_its_environment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    for place in (own, other):
        place.mkdir()
        (place / "agent").write_text(f"#!/bin/sh\necho {place.name} $0 $PWD $(env)\n")
        (place / "agent").chmod(0o755)
    monkeypatch.setenv("PATH", f"{other}:/usr/bin:/bin")
    monkeypatch.setenv("OF_THE_HOST", "secret")
    environment = {"PATH": f"{own}:/usr/bin:/bin", "A": "1"}
    result = await run_program(ProgramStart(["agent"], environment, str(tmp_path)), 10)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"own {own}/agent {tmp_path} ")
    assert "A=1" in result.stdout
    assert "OF_THE_HOST" not in result.stdout
    with pytest.raises(FileNotFoundError, match="agent"):
        await run_program(ProgramStart(["agent"], {}, str(tmp_path)), 10)


async def test_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    result = await run_program(shell("sleep 64.75", tmp_path), 0.01)
    assert result.exit_code == TIMED_OUT
    assert result.cause() == "arp: it took longer than 0.01 s and was ended"
    commands = [one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])]
    assert not any("64.75" in word for words in commands for word in words)


async def test_program_whose_caller_is_cancelled_is_ended(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"{IN_ITS_OWN_SESSION} echo $! > part; mv part told; exec sleep 64.5"
    running = asyncio.create_task(run_program(shell(script, tmp_path), 60))
    await becomes(told.exists)
    left = psutil.Process(int(told.read_text()))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not left.is_running()


async def test_program_that_reads_no_input_ends_normally(tmp_path: Path) -> None:
    result = await run_program(shell("exit 0", tmp_path), 10, stdin=b"x" * 2**20)
    assert result.exit_code == 0


async def test_lines_that_begin_an_object_arrive_while_it_runs(tmp_path: Path) -> None:
    lines: list[bytes] = []
    script = """echo '{"a": 1}'; echo no; echo '{"b": 2}'"""
    await run_program(shell(script, tmp_path), 10, on_line=lines.append)
    assert lines == [b'{"a": 1}', b'{"b": 2}']


@pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")
async def test_confined_program_starts_in_the_directory_of_its_confinement(tmp_path: Path) -> None:
    confinement = Confinement(tmp_path, limits=ProcessLimits(open_files=77))
    start = ProgramStart(["sh", "-c", "pwd; ulimit -n"], PATH, confinement=confinement)
    result = await run_program(start, 10)
    assert result.stdout.split() == [str(tmp_path), "77"]


class Quota:
    """Limit that is exceeded as soon as a file exists."""

    def __init__(self, file: Path, is_full: bool = False) -> None:
        self.file = file
        self.is_full = is_full

    def for_a_run(self) -> Quota:
        if self.is_full:
            raise RuntimeError("it is full")
        return self

    async def exceeded(self, pid: int) -> str:
        assert psutil.pid_exists(pid)
        await becomes(self.file.exists)
        return "it used too much"


@pytest.mark.skipif(sys.platform != "linux", reason="descendants are found in /proc")
async def test_program_that_exceeds_a_usage_limit_is_ended_and_the_errors_say_so(
    tmp_path: Path,
) -> None:
    result = await run_program(
        shell("touch begun; sleep 64.25", tmp_path, Quota(tmp_path / "begun")), 20
    )
    assert result.exit_code == -signal.SIGKILL
    assert result.stderr == "\narp: it used too much\n"


@pytest.mark.skipif(sys.platform != "linux", reason="descendants are found in /proc")
async def test_server_that_exceeds_a_usage_limit_is_ended_and_says_why(tmp_path: Path) -> None:
    start = shell("touch begun; sleep 64.25", tmp_path, Quota(tmp_path / "begun"))
    server = await ServingProgram.start(start)
    assert await asyncio.wait_for(server.wait(), 20) == -signal.SIGKILL
    await becomes(lambda: server.why_ended == "it used too much")
    await server.stop()


async def test_program_does_not_start_where_a_usage_limit_refuses(tmp_path: Path) -> None:
    start = shell("touch begun", tmp_path, Quota(tmp_path / "begun", is_full=True))
    with pytest.raises(RuntimeError, match="it is full"):
        await run_program(start, 10)
    assert not (tmp_path / "begun").exists()


async def test_server_keeps_the_end_of_its_output_and_ends_when_stopped(tmp_path: Path) -> None:
    server = await ServingProgram.start(shell("echo one; echo two >&2; exec sleep 64.25", tmp_path))
    await becomes(lambda: server.tail() == "one\ntwo\n")
    assert server.exit_code is None
    await server.stop()
    await server.stop()
    assert server.exit_code is not None
    assert server.why_ended == ""


async def test_descendants_end_with_a_program_where_nothing_supervises_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS: only the process group is left to end them."""
    monkeypatch.setattr("arp.process.program.supervised", list)
    monkeypatch.setattr("arp.process.program.sys.platform", "darwin")
    script = f"sleep 64.25 & echo $! > {tmp_path}/pid; wait"
    result = await run_program(shell(script, tmp_path), 1)
    assert result.exit_code == TIMED_OUT
    child = int((tmp_path / "pid").read_text())
    await becomes(lambda: not psutil.pid_exists(child) or _is_zombie(child))


def _is_zombie(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
