"""Start a program, run it to its end, or keep it serving until it is stopped.

Theory of operation. Every program has a process group of its own. It is either supervised or
confined (`sandbox`); in both cases, the processes that it starts end with it. All output is read,
so that a program never blocks, but only the beginning and the end are kept. A program is ended if
it writes more than `MAX_WRITTEN`, or exceeds one of its usage limits. To end a program means to
send SIGTERM, except in bubblewrap, where it would not arrive, and then SIGKILL to the program and
all its descendants.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from arp.process.bounded_output import BoundedOutput, OnLine
from arp.process.cause import cause_of
from arp.process.memory import MemoryLimit, kill_below
from arp.process.sandbox import Confinement, confined
from arp.process.supervise import GRACE_S, LEFTOVERS_S, supervised

KEPT_OUTPUT: Final = 2**20
"""Bytes kept of standard output and of standard error: half from the beginning, half from the
end."""
MAX_WRITTEN: Final = 256 * 2**20
"""Limit of the written bytes; a program that exceeds it is ended."""
KEPT_TAIL: Final = 16 * 2**10
"""Bytes kept from the end of a server's output, to explain why it ended."""
READ_BYTES: Final = 2**16
END_S: Final = GRACE_S + LEFTOVERS_S + 2.0
"""Seconds that a supervised program may take to end when asked; then everything is killed."""
TIMED_OUT: Final = 124
"""Exit code of a program that exceeded its time limit, as in `timeout(1)`."""


class UsageLimit(Protocol):
    """Limit of what a program and its descendants use together."""

    def for_a_run(self) -> UsageLimit:
        """Return the limit for one run; called in a thread before the program starts.

        If it raises an exception, the program is not started.
        """

    async def exceeded(self, pid: int) -> str:
        """Wait until a process and its descendants exceed the limit; return an error text.

        Cancel: Safe.
        """


class ProgramStart(msgspec.Struct, frozen=True):
    """Options for the start of a program."""

    command: Sequence[str]
    """Program and its arguments. Without a confinement, the program is found in the `PATH` of the
    environment."""
    environment: Mapping[str, str]
    """Complete environment."""
    cwd: str = "/"
    """Working directory; a confined program changes to that of its confinement instead."""
    name: str = ""
    """Name for messages; if empty, the name of the program."""
    confinement: Confinement | None = None
    """Limits, user and visible files; `None` means those of this process."""
    sandboxed: bool = False
    """Whether the confinement uses bubblewrap."""
    usage_limits: Sequence[UsageLimit] = ()
    """Further limits besides the memory of the confinement."""

    @property
    def has_network(self) -> bool:
        """Whether it reaches the network and this machine."""
        return self.confinement is None or self.confinement.network


class ProgramResult(msgspec.Struct, frozen=True):
    """Result of a program that ran to its end."""

    exit_code: int
    """Exit code; negative: number of the signal that ended it; `TIMED_OUT`: time limit exceeded."""
    stdout: str
    stderr: str

    def cause(self) -> str:
        """Return the line of standard error that names the reason of the failure; else empty."""
        lines = self.stderr.splitlines()
        return cause_of([one.strip() for one in lines if one.strip()])


# -- to its end ------------------------------------------------------------------------------------


async def run_program(
    start: ProgramStart,
    timeout_s: float,
    *,
    stdin: bytes = b"",
    kept_output: int = KEPT_OUTPUT,
    on_line: OnLine | None = None,
) -> ProgramResult:
    """Run a program to its end, or end it when it exceeds a limit.

    Args:
        start: Program and its options.
        timeout_s: Time limit in seconds.
        stdin: Content of its standard input.
        kept_output: Bytes of standard output that are kept.
        on_line: Receives each line of standard output that begins with `{`, as it arrives.

    Raises:
        OSError, ValueError: It cannot be started. `UsageLimit.for_a_run` may raise other errors.

    Cancel: Safe: the program and all its descendants are ended.
    """
    limits = await _limits_of(start)
    process = await start_process(start, stdin=PIPE if stdin else DEVNULL)
    output, errors = BoundedOutput(kept_output, on_line), BoundedOutput(KEPT_OUTPUT)
    timed_out = False
    try:
        async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
            watching = _watch(group, process, start, limits)
            async with asyncio.TaskGroup() as streams:
                streams.create_task(_feed(process, stdin))
                streams.create_task(_drain(process.stdout, output))
                streams.create_task(_drain(process.stderr, errors))
            await process.wait()
            for one in watching:
                one.cancel()
    except* TimeoutError:
        timed_out = True
        errors.add(f"\narp: it took longer than {timeout_s:g} s and was ended\n".encode())
    except* _OutputLimitExceeded:
        errors.add(f"\narp: it wrote more than {MAX_WRITTEN} bytes and was ended\n".encode())
    except* _UsageLimitExceeded as used:
        errors.add(f"\narp: {used.exceptions[0]}\n".encode())
    finally:
        # Unread output would delay the notice that the process has ended.
        rest = asyncio.create_task(_discard(process), name="rest of a program's output")
        await end_process(process, start.sandboxed)
        rest.cancel()
    code = TIMED_OUT if timed_out else process.returncode
    return ProgramResult(-signal.SIGKILL if code is None else code, output.text(), errors.text())


async def _feed(process: Process, stdin: bytes) -> None:
    if process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):  # the program does not read its input
        process.stdin.write(stdin)
        await process.stdin.drain()
        process.stdin.close()


async def _drain(stream: asyncio.StreamReader | None, kept: BoundedOutput) -> None:
    while stream is not None and (data := await stream.read(READ_BYTES)):
        kept.add(data)
        if kept.written > MAX_WRITTEN:
            raise _OutputLimitExceeded
    kept.end()


async def _discard(process: Process) -> None:
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(READ_BYTES):
            pass


# -- until it is stopped ---------------------------------------------------------------------------


class ServingProgram:
    """Program that serves until it is stopped; created by `start`."""

    def __init__(self, process: Process, start: ProgramStart, limits: Sequence[UsageLimit]) -> None:
        self._process = process
        self._sandboxed = start.sandboxed
        self._tail = BoundedOutput(KEPT_TAIL)
        self.why_ended = ""
        """Error text of the usage limit that ended the program; empty if none did."""
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._read(process.stdout), name="output of a program"),
            loop.create_task(self._watch(start, limits), name="usage of a program"),
        ]

    @classmethod
    async def start(cls, start: ProgramStart) -> ServingProgram:
        """Start a program; its standard error is part of its output.

        Raises:
            OSError, ValueError: It cannot be started. `UsageLimit.for_a_run` may raise others.
        """
        limits = await _limits_of(start)
        return cls(await start_process(start, stderr=STDOUT), start, limits)

    @property
    def pid(self) -> int:
        """Id of the outermost process, the one to kill; the program may be its descendant."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code; `None` while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for its end; return its exit code.

        Cancel: Safe.
        """
        return await self._process.wait()

    def tail(self) -> str:
        """Return the end of its output."""
        return self._tail.text()

    async def stop(self) -> None:
        """End the program and all its descendants. May be repeated."""
        await end_process(self._process, self._sandboxed)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    async def _read(self, stream: asyncio.StreamReader | None) -> None:
        # A server may run for years, so its output has no limit; only the newest part is kept.
        while stream is not None and (data := await stream.read(READ_BYTES)):
            self._tail.add(data)

    async def _watch(self, start: ProgramStart, limits: Sequence[UsageLimit]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watching = _watch(group, self._process, start, limits)
                await self._process.wait()
                for one in watching:
                    one.cancel()
        except* _UsageLimitExceeded as used:
            self.why_ended = str(used.exceptions[0])


# -- its process -----------------------------------------------------------------------------------


async def start_process(
    start: ProgramStart, *, stdin: int = DEVNULL, stderr: int = PIPE, line_limit: int = 2**16
) -> Process:
    """Start a program in a process group of its own; call this in the thread of the loop.

    The caller must read its output and end it; its usage limits are not enforced.

    Args:
        start: Program and its options.
        stdin: Its standard input, `PIPE` or `DEVNULL`.
        stderr: Its standard error, `PIPE` or `STDOUT`.
        line_limit: Longest line that `readline` and `readuntil` return, in bytes.

    Raises:
        OSError, ValueError: It cannot be started.
    """
    if start.confinement is None:
        command = supervised(_with_path(start))
    else:
        command = confined(start.command, start.confinement, start.sandboxed)
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=stdin,
        stdout=PIPE,
        stderr=stderr,
        env=dict(start.environment),
        cwd=start.cwd,
        start_new_session=True,
        limit=line_limit,
    )


def _with_path(start: ProgramStart) -> list[str]:
    """Return the command with the absolute path of its program.

    Without this check, a missing program would not raise, because `supervise` starts in any case.

    Raises:
        FileNotFoundError: The program does not exist.
    """
    program, *arguments = start.command
    path = shutil.which(program, path=start.environment.get("PATH", ""))
    if path is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    return [os.path.abspath(path), *arguments]


async def end_process(process: Process, sandboxed: bool = False) -> None:
    """End a process and all its descendants, and wait until it is gone. May be repeated.

    Cancel: Safe: the process is then killed at once.
    """
    try:
        if process.returncode is None and not sandboxed:
            with suppress(ProcessLookupError):
                process.terminate()  # `supervise` ends its descendants
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), END_S)
    finally:
        # `supervise` ends the descendants, but only on Linux; elsewhere they may still run.
        if process.returncode is None or sys.platform != "linux":
            kill_group(process)
    await process.wait()


def kill_group(process: Process) -> None:
    """Kill all processes of the group that a process leads, even if it has ended itself."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


# -- usage limits ----------------------------------------------------------------------------------


class _OutputLimitExceeded(Exception):
    """A program wrote more than `MAX_WRITTEN`."""


class _UsageLimitExceeded(Exception):
    """A program exceeded a usage limit; the message is the error text of the limit."""


async def _limits_of(start: ProgramStart) -> list[UsageLimit]:
    """Return the limits for one run, with the memory limit of a confinement."""
    limits = [await asyncio.to_thread(one.for_a_run) for one in start.usage_limits]
    if start.confinement is not None:
        limits.append(MemoryLimit(start.confinement.limits.memory_mb))
    return limits


def _watch(
    group: asyncio.TaskGroup, process: Process, start: ProgramStart, limits: Sequence[UsageLimit]
) -> list[asyncio.Task[None]]:
    """Begin to watch the program's usage; cancel the tasks when it has ended."""
    return [group.create_task(_end_over(limit, process, start)) for limit in limits]


async def _end_over(limit: UsageLimit, process: Process, start: ProgramStart) -> None:
    """Kill a program and all its descendants when they exceed a limit.

    Raises:
        _UsageLimitExceeded: A limit was exceeded.
    """
    used = await limit.exceeded(process.pid)
    if process.returncode is None:
        if start.sandboxed:
            kill_group(process)  # everything in the sandbox ends with it
        else:
            kill_below(process.pid)  # `supervise` then ends, with processes started meanwhile
    raise _UsageLimitExceeded(used)
