"""Programs of local tools: one that runs to its end, and one that serves until it is stopped.

Theory of operation. Both are confined (`arp.process.sandbox`) and in a process group of their own.
Their output is read to its end, whatever they write, but only its beginning and its end are kept,
and one that writes more than `MAX_WRITTEN` is ended. So is one that uses more memory, with all that
it has started, than it may, or with which its project uses more of the disk. To end a program
means: SIGTERM where it gets that (only without bubblewrap), then SIGKILL for all that it has
started.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from arp.process.memory import kill_below, over_limit
from arp.process.sandbox import MIB, Confinement, confined
from arp.process.supervise import GRACE_S, LEFTOVERS_S
from arp.tools.errors import ToolCallFailed
from arp.tools.projects.project_disk import DiskLimit, over_disk

logger = logging.getLogger(__name__)

KEPT_OUTPUT: Final = 2**20
"""Bytes of standard output, and of standard error, that are kept: half of the first, half of the
last."""
MAX_WRITTEN: Final = 256 * 2**20
"""A program that writes more is ended."""
MAX_LINE: Final = 2**20
"""Bytes of a line that `on_line` gets."""
MAX_LINES: Final = 100_000
"""So many lines it gets; a program that writes millions of them would keep the loop busy."""
KEPT_TAIL: Final = 16 * 2**10
"""Bytes of the output of a server that are kept, to say why it ended."""
END_S: Final = GRACE_S + LEFTOVERS_S + 2.0
TIMED_OUT: Final = 124
"""Exit code of a program that was ended because it took too long, as of `timeout(1)`."""

_OBJECT: Final = re.compile(rb"^[ \t]*\{.*", re.MULTILINE)
"""A line that begins an object."""

OnLine = Callable[[bytes], None]


class CommandResult(msgspec.Struct, frozen=True):
    """The result of a program that ran to its end."""

    exit_code: int
    """Negative: the signal that ended it. `TIMED_OUT`: it took too long."""
    stdout: str
    stderr: str


class ProgramStart(msgspec.Struct, frozen=True):
    """How a program is started."""

    command: Sequence[str]
    environment: Mapping[str, str]
    """The whole environment."""
    confinement: Confinement
    sandboxed: bool
    stdin: bytes = b""
    kept_output: int = KEPT_OUTPUT
    """Bytes of standard output that are kept."""
    disk: DiskLimit | None = None
    """What its project may use of the disk; `None`: it has none."""


async def run_program(
    start: ProgramStart, timeout_s: float, on_line: OnLine | None = None
) -> CommandResult:
    """Run a program to its end, or end it when it takes too long.

    Args:
        start: How it is started.
        timeout_s: How long it may take, in seconds.
        on_line: Gets each line of its standard output that begins with `{`, as it comes.

    Raises:
        ToolCallFailed: It cannot be started.
        CapacityExceeded: Its project is so full that nothing may run in it.

    Cancel: Safe: the program and all that it has started are ended.
    """
    start = await _with_room(start)
    process = await _spawn(start, PIPE if start.stdin else DEVNULL)
    output, errors = BoundedOutput(start.kept_output, on_line), BoundedOutput(KEPT_OUTPUT)
    timed_out = False
    try:
        async with asyncio.timeout(timeout_s):
            await _communicate(process, start, output, errors)
    except* TimeoutError:
        timed_out = True
        errors.add(f"\narp: it took longer than {timeout_s:g} s and was ended\n".encode())
    except* _WroteTooMuch:
        errors.add(f"\narp: it wrote more than {MAX_WRITTEN} bytes and was ended\n".encode())
    except* _UsedTooMuch as used:
        errors.add(f"\narp: {used.exceptions[0]}\n".encode())
    finally:
        # Unread output would delay the notice that the process has ended.
        rest = asyncio.create_task(_discard(process), name="rest of a program's output")
        await end_process(process, start.sandboxed)
        rest.cancel()
    code = TIMED_OUT if timed_out else process.returncode
    return CommandResult(-signal.SIGKILL if code is None else code, output.text(), errors.text())


class ServingProgram:
    """A program that serves until it is stopped; made by `start`."""

    def __init__(self, process: Process, start: ProgramStart) -> None:
        self._process = process
        self._sandboxed = start.sandboxed
        self._tail = BoundedOutput(KEPT_TAIL)
        self.why_ended = ""
        """Why we ended it, if it was not stopped."""
        assert process.stdout is not None
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._read(process.stdout), name="output of a local tool"),
            loop.create_task(self._watch(start), name="memory of a local tool"),
        ]

    @classmethod
    async def start(cls, start: ProgramStart) -> ServingProgram:
        """Start a program; its standard error is part of its output.

        Raises:
            ToolCallFailed: It cannot be started.
            CapacityExceeded: Its project is so full that nothing may run in it.
        """
        start = await _with_room(start)
        return cls(await _spawn(start, DEVNULL, merge=True), start)

    @property
    def pid(self) -> int:
        """Of the process that was started: the one to kill, not the program's own."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; `None` while it runs."""
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
        """End it and all that it has started. May be repeated."""
        await end_process(self._process, self._sandboxed)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    async def _read(self, stream: asyncio.StreamReader) -> None:
        # A server may write for years: it is not ended for that, only its newest output is kept.
        while data := await stream.read(2**16):
            self._tail.add(data)

    async def _watch(self, start: ProgramStart) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watching = _watchers(group, self._process, start)
                await self._process.wait()
                for one in watching:
                    one.cancel()
        except* _UsedTooMuch as used:
            self.why_ended = str(used.exceptions[0])


class _WroteTooMuch(Exception):
    """A program wrote more than `MAX_WRITTEN`."""


class _UsedTooMuch(Exception):
    """A program and what it has started used more memory than they may; it says how much."""


class BoundedOutput:
    """The first and the last bytes of an output.

    Args:
        limit: How many bytes are kept.
        on_line: Gets each line that begins with `{`, without its end.
    """

    def __init__(self, limit: int, on_line: OnLine | None = None) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._line = bytearray()
        self._on_line = on_line
        self._lines_left = MAX_LINES
        self.written = 0
        """All bytes that came."""

    def add(self, data: bytes) -> None:
        """Append bytes of the output."""
        self.written += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            rest = data[room:]
        else:
            rest = data
        self._tail += rest
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]
        if self._on_line is not None and self._lines_left > 0:
            self._lines(data)

    def text(self) -> str:
        """Return the kept text, with a line in the middle that says how much is missing."""
        tail = bytes(self._tail[-self._half :]) if self._half else b""
        dropped = self.written - len(self._head) - len(tail)
        middle = f"\n[… {dropped} bytes left out …]\n".encode() if dropped > 0 else b""
        return (bytes(self._head) + middle + tail).decode(errors="replace")

    def end(self) -> None:
        """Hand out the last line, which has no end of line."""
        self._hand_out(bytes(self._line))
        self._line.clear()

    def _lines(self, data: bytes) -> None:
        first, ends, rest = data.partition(b"\n")
        if len(self._line) < MAX_LINE:
            self._line += first
        if not ends:
            return
        self._hand_out(bytes(self._line))
        lines, _, last = rest.rpartition(b"\n")
        self._line = bytearray(last)
        # A regular expression passes over other lines far faster than Python would.
        for line in _OBJECT.finditer(lines):
            self._hand_out(line.group())

    def _hand_out(self, line: bytes) -> None:
        if self._on_line is not None and self._lines_left > 0 and _OBJECT.match(line):
            self._lines_left -= 1
            self._on_line(line[:MAX_LINE])


async def end_process(process: Process, sandboxed: bool) -> None:
    """End a process and all that it has started, and wait until it is gone. May be repeated.

    Cancel: Safe: it is killed all the same.
    """
    try:
        if process.returncode is None and not sandboxed:
            with suppress(ProcessLookupError):
                process.terminate()  # `supervise` ends what is below it
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), END_S)
    finally:
        kill_group(process)
    await process.wait()


def kill_group(process: Process) -> None:
    """Kill a process and its group, if it still runs."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


async def _with_room(start: ProgramStart) -> ProgramStart:
    """Return a start with what its project may use of the disk during this run.

    Raises:
        CapacityExceeded: It uses so much that nothing may run.
    """
    if start.disk is None:
        return start
    return msgspec.structs.replace(start, disk=await asyncio.to_thread(start.disk.for_a_run))


async def _spawn(start: ProgramStart, stdin: int, merge: bool = False) -> Process:
    command = confined(start.command, start.confinement, start.sandboxed)
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=stdin,
            stdout=PIPE,
            stderr=asyncio.subprocess.STDOUT if merge else PIPE,
            env=dict(start.environment),
            cwd="/",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ToolCallFailed(f"{start.command[0]:.80} cannot be started: {error}") from error


async def _communicate(
    process: Process, start: ProgramStart, output: BoundedOutput, errors: BoundedOutput
) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    async with asyncio.TaskGroup() as group:
        watching = _watchers(group, process, start)
        async with asyncio.TaskGroup() as streams:
            streams.create_task(_feed(process, start.stdin))
            streams.create_task(_drain(process.stdout, output))
            streams.create_task(_drain(process.stderr, errors))
        await process.wait()
        for one in watching:
            one.cancel()


def _watchers(
    group: asyncio.TaskGroup, process: Process, start: ProgramStart
) -> list[asyncio.Task[None]]:
    """Begin to watch what a program uses; the tasks end with it, or raise `_UsedTooMuch`."""
    watching = [group.create_task(_end_over_memory(process, start))]
    if start.disk is not None:
        watching.append(group.create_task(_end_over_disk(process, start, start.disk)))
    return watching


async def _end_over_memory(process: Process, start: ProgramStart) -> None:
    """Kill a program and all that it has started once they use more memory than they may.

    Raises:
        _UsedTooMuch: They did.
    """
    limit_mb = start.confinement.limits.memory_mb
    used = await over_limit(process.pid, limit_mb * MIB)
    _kill_all(process, start)
    raise _UsedTooMuch(
        f"it and the processes that it started used {-(-used // MIB)} MiB of memory together; "
        f"their limit is {limit_mb} MiB, so all were ended"
    )


async def _end_over_disk(process: Process, start: ProgramStart, limit: DiskLimit) -> None:
    """Kill a program and all that it has started once its project uses too much of the disk.

    Raises:
        _UsedTooMuch: It does.
    """
    said = await over_disk(limit, process.pid)
    _kill_all(process, start)
    raise _UsedTooMuch(f"it was ended: {said}")


def _kill_all(process: Process, start: ProgramStart) -> None:
    if start.sandboxed:
        kill_group(process)  # all in the sandbox ends with it
    elif process.returncode is None:
        kill_below(process.pid)  # `supervise` then ends itself, and what began in this moment


async def _discard(process: Process) -> None:
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(2**16):
            pass


async def _feed(process: Process, stdin: bytes) -> None:
    if process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):  # it does not read its input
        process.stdin.write(stdin)
        await process.stdin.drain()
        process.stdin.close()


async def _drain(stream: asyncio.StreamReader, kept: BoundedOutput) -> None:
    while data := await stream.read(2**16):
        kept.add(data)
        if kept.written > MAX_WRITTEN:
            raise _WroteTooMuch
    kept.end()
