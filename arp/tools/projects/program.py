"""Programs of local tools: one runs to its end, the other serves until it is stopped.

Theory of operation. Both kinds are confined (`arp.process.sandbox`) and have a process group of
their own. All output is read, so that a program never blocks, but only the beginning and the end
are kept. A program is ended if it writes more than `MAX_WRITTEN`, if it and its descendants use too
much memory, or if its project uses too much of the disk. Ending a program means SIGTERM, where it
can receive that (only without bubblewrap), then SIGKILL for it and all its descendants.
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
"""Bytes kept of standard output and of standard error: half from the beginning, half from the
end."""
MAX_WRITTEN: Final = 256 * 2**20
"""Limit of the written bytes; a program that exceeds it is ended."""
MAX_LINE: Final = 2**20
"""Limit of the bytes of a line for `on_line`."""
MAX_LINES: Final = 100_000
"""Limit of the lines for `on_line`; millions of lines would block the event loop."""
KEPT_TAIL: Final = 16 * 2**10
"""Bytes kept from the end of a server's output, to explain why it ended."""
END_S: Final = GRACE_S + LEFTOVERS_S + 2.0
TIMED_OUT: Final = 124
"""Exit code of a program that exceeded its time limit, as in `timeout(1)`."""

_OBJECT: Final = re.compile(rb"^[ \t]*\{.*", re.MULTILINE)
"""Line that begins a JSON object."""

OnLine = Callable[[bytes], None]


class CommandResult(msgspec.Struct, frozen=True):
    """Result of a program that ran to its end."""

    exit_code: int
    """Exit code; negative: number of the signal that ended it; `TIMED_OUT`: time limit exceeded."""
    stdout: str
    stderr: str


class ProgramStart(msgspec.Struct, frozen=True):
    """Options for the start of a program."""

    command: Sequence[str]
    environment: Mapping[str, str]
    """Complete environment."""
    confinement: Confinement
    sandboxed: bool
    stdin: bytes = b""
    kept_output: int = KEPT_OUTPUT
    """Bytes of standard output that are kept."""
    disk: DiskLimit | None = None
    """Disk limit of its project; `None` means no limit."""


async def run_program(
    start: ProgramStart, timeout_s: float, on_line: OnLine | None = None
) -> CommandResult:
    """Run a program to its end, or end it when it exceeds its time limit.

    Args:
        start: Program and its options.
        timeout_s: Time limit in seconds.
        on_line: Receives each line of standard output that begins with `{`, as it arrives.

    Raises:
        ToolCallFailed: It cannot be started.
        CapacityExceeded: Its project is too full to run anything.

    Cancel: Safe: the program and all its descendants are ended.
    """
    start = await _with_run_limit(start)
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
    """Program that serves until it is stopped; created by `start`."""

    def __init__(self, process: Process, start: ProgramStart) -> None:
        self._process = process
        self._sandboxed = start.sandboxed
        self._tail = BoundedOutput(KEPT_TAIL)
        self.why_ended = ""
        """Reason why a watcher ended it; empty if none did."""
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
            CapacityExceeded: Its project is too full to run anything.
        """
        start = await _with_run_limit(start)
        return cls(await _spawn(start, DEVNULL, merge=True), start)

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

    async def _read(self, stream: asyncio.StreamReader) -> None:
        # A server may run for years, so its output has no limit; only the newest part is kept.
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
    """Error of a program that wrote more than `MAX_WRITTEN`."""


class _UsedTooMuch(Exception):
    """Error of a program that used too much memory or disk; the message has the amount."""


class BoundedOutput:
    """Beginning and end of an output.

    Args:
        limit: Number of bytes that are kept.
        on_line: Receives each line that begins with `{`, without its line end.
    """

    def __init__(self, limit: int, on_line: OnLine | None = None) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._line = bytearray()
        self._on_line = on_line
        self._lines_left = MAX_LINES
        self.written = 0
        """Number of bytes received."""

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
            self._split_lines(data)

    def text(self) -> str:
        """Return the kept text, with a line in the middle that says how much is missing."""
        tail = bytes(self._tail[-self._half :]) if self._half else b""
        dropped = self.written - len(self._head) - len(tail)
        middle = f"\n[… {dropped} bytes left out …]\n".encode() if dropped > 0 else b""
        return (bytes(self._head) + middle + tail).decode(errors="replace")

    def end(self) -> None:
        """Emit the last line, if it has no line end."""
        self._emit(bytes(self._line))
        self._line.clear()

    def _split_lines(self, data: bytes) -> None:
        first, ends, rest = data.partition(b"\n")
        if len(self._line) < MAX_LINE:
            self._line += first
        if not ends:
            return
        self._emit(bytes(self._line))
        lines, _, last = rest.rpartition(b"\n")
        self._line = bytearray(last)
        # A regular expression skips other lines much faster than a loop in Python.
        for line in _OBJECT.finditer(lines):
            self._emit(line.group())

    def _emit(self, line: bytes) -> None:
        if self._on_line is not None and self._lines_left > 0 and _OBJECT.match(line):
            self._lines_left -= 1
            self._on_line(line[:MAX_LINE])


async def end_process(process: Process, sandboxed: bool) -> None:
    """End a process and all its descendants, and wait until it is gone. May be repeated.

    Cancel: Safe: it is killed all the same.
    """
    try:
        if process.returncode is None and not sandboxed:
            with suppress(ProcessLookupError):
                process.terminate()  # `supervise` ends its descendants
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


async def _with_run_limit(start: ProgramStart) -> ProgramStart:
    """Return the start options with the disk limit for this run.

    Raises:
        CapacityExceeded: The project is too full to run anything.
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
    """Begin to watch the program's usage; the tasks end with it, or raise `_UsedTooMuch`."""
    watching = [group.create_task(_end_over_memory(process, start))]
    if start.disk is not None:
        watching.append(group.create_task(_end_over_disk(process, start, start.disk)))
    return watching


async def _end_over_memory(process: Process, start: ProgramStart) -> None:
    """Kill a program and all its descendants when they use too much memory.

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
    """Kill a program and all its descendants when its project uses too much of the disk.

    Raises:
        _UsedTooMuch: It did.
    """
    said = await over_disk(limit, process.pid)
    _kill_all(process, start)
    raise _UsedTooMuch(f"it was ended: {said}")


def _kill_all(process: Process, start: ProgramStart) -> None:
    if start.sandboxed:
        kill_group(process)  # everything in the sandbox ends with it
    elif process.returncode is None:
        kill_below(process.pid)  # `supervise` then ends itself and processes that started just now


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
