"""`AgentProcess`: how every adapter runs the program of its agent.

The program gets exactly the environment that it is given. It is supervised (`supervise`): whatever
it has started ends with it, also a process in a session of its own, and also when we are killed. On
other systems than Linux only its process group ends with it.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from arp.process.cause import cause_of, is_about_arguments
from arp.process.error_lines import ErrorLines
from arp.process.supervise import GRACE_S, LEFTOVERS_S, supervised
from arp.redact.names import secrets_of

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 * 2**20
"""A message of an agent is a line; images and outputs of tools come whole."""
READ_BYTES = 2**16
NO_MESSAGE_S = 3.0
"""How long a program that has printed something else first may take to send its first message."""
END_S = GRACE_S + LEFTOVERS_S + 2.0
"""How long a supervised program may take to end when it is asked to; then all is killed."""


MAX_QUOTED = 200
"""Characters of a line that an error quotes."""


class ProcessStart(msgspec.Struct, frozen=True):
    """How a program is started."""

    command: Sequence[str]
    """The program, by its path or its name in the `PATH` of the environment, and its arguments."""
    environment: Mapping[str, str]
    """The whole environment of the process."""
    cwd: str
    """Where it works."""
    name: str = ""
    """What messages call it; empty: the name of the program."""


class ProgramResult(NamedTuple):
    """What a program that was run to its end left."""

    exit_code: int | None
    """`None`: it did not end in time, and was killed."""
    output: bytes
    errors: bytes

    def cause(self) -> str:
        """Return the line that names why it failed."""
        lines = self.errors.decode(errors="replace").splitlines()
        return cause_of([one.strip() for one in lines if one.strip()])


class AgentProcess:
    """A program that runs, and its pipes; made by `start`.

    Whoever starts it reads its output to the end: until then it may wait for a reader.
    """

    def __init__(
        self, process: Process, start: ProcessStart, on_error_line: Callable[[str], None]
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.name = start.name or os.path.basename(start.command[0])
        self.input = process.stdin
        self.output = process.stdout
        secrets = secrets_of(start.environment)
        self._lines = ErrorLines(secrets, self._take_error_line)
        self._notes = ErrorLines(secrets, self._take_error_line)
        self._process = process
        self._on_error_line = on_error_line
        self._is_supervised = _is_supervised(start.command)
        self._reading_errors = asyncio.get_running_loop().create_task(self._read_errors())

    @classmethod
    async def start(
        cls, start: ProcessStart, on_error_line: Callable[[str], None] = lambda line: None
    ) -> AgentProcess:
        """Start a program, in a process group of its own; in the thread of the loop.

        Args:
            start: How it is started.
            on_error_line: Gets each line of its standard error, without secrets.

        Raises:
            OSError: It cannot be started.
        """
        process = await asyncio.create_subprocess_exec(
            *supervised(_command_of(start)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(start.environment),
            cwd=start.cwd,
            start_new_session=True,
            limit=MAX_LINE_BYTES,
        )
        return cls(process, start, on_error_line)

    @property
    def errors(self) -> Sequence[str]:
        """The newest lines of its standard error, without secrets."""
        return self._lines.newest

    @property
    def notes(self) -> Sequence[str]:
        """The newest lines of its output that are no messages, without secrets."""
        return self._notes.newest

    def cause(self) -> str:
        """Return the line that names why it ended; empty if it wrote none."""
        cause = cause_of([*self.notes, *self.errors])
        if is_about_arguments(cause):
            return f"{cause}; it may be too old for its arguments: update it, or check its command"
        return cause

    @property
    def exit_code(self) -> int | None:
        """How the program ended, as `Popen.returncode` has it; `None` while it runs."""
        return self._process.returncode

    @property
    def program_id(self) -> int:
        """The id of the program's own process; 0 if it has ended."""
        if self.exit_code is not None:
            return 0
        pid = self._process.pid
        if not self._is_supervised:
            return pid
        with suppress(OSError):
            # The oldest child of `supervise`; the others are orphans that it has taken.
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                return int(child)
        return 0

    async def wait(self, within_s: float) -> int | None:
        """Wait for the end of the program and of its output; return its exit code, if it came.

        Cancel: Safe.
        """
        with suppress(TimeoutError):
            return await asyncio.wait_for(self._process.wait(), within_s)
        return self.exit_code

    async def wait_for_errors(self, within_s: float) -> None:
        """Wait until its standard error has been read to the end."""
        await asyncio.wait([self._reading_errors], timeout=within_s)

    def end_input(self) -> None:
        """End the input, after which most agents end; may be called again."""
        if not self.input.is_closing():
            self.input.close()

    def terminate(self) -> None:
        """Tell the program to end, and all that it has started; may be called again."""
        if not self._is_supervised:
            self._kill_group()
        elif self.exit_code is None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    def kill(self) -> None:
        """Kill the program, so that it does nothing at its end; what it has started ends too."""
        if self.exit_code is not None:
            return
        if program_id := self.program_id:
            with suppress(ProcessLookupError):
                os.kill(program_id, signal.SIGKILL)
        else:
            self.terminate()

    async def stop(self, grace_s: float) -> int | None:
        """End the input, wait for the end of the program, and make it end if that takes longer.

        Returns:
            Its exit code.
        """
        self.end_input()
        if await self.wait(grace_s) is None:
            if grace_s:
                logger.warning("%s does not end by itself within %g s", self.name, grace_s)
            self.terminate()
            if await self.wait(END_S) is None:
                logger.warning("%s does not end, so it is killed", self.name)
                self._kill_group()
                await self.wait(END_S)
        elif not self._is_supervised:
            self._kill_group()  # What it has left.
        # What a grandchild keeps open is not read to its end.
        self._reading_errors.cancel()
        await asyncio.wait([self._reading_errors])
        return self.exit_code

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def _read_errors(self) -> None:
        errors = self._process.stderr
        assert errors is not None
        while data := await errors.read(READ_BYTES):
            self._lines.take(data)
        self._lines.end()

    def note(self, line: bytes) -> None:
        """Take a line for a person that is no message, but came in the output."""
        self._notes.take(line.rstrip(b"\n") + b"\n")

    def _take_error_line(self, line: str) -> None:
        logger.debug("%s: %.75s", self.name, line)
        self._on_error_line(line)


def speaks_no_json(name: str, printed: str) -> str:
    """Return what is wrong with a program that prints text where messages are expected."""
    quoted = printed if len(printed) <= MAX_QUOTED else printed[:MAX_QUOTED] + "…"
    return (
        f"{name} prints no JSON: it printed {quoted!r}; check that its command starts it as an "
        "agent that speaks over its pipes"
    )


async def run_program(start: ProcessStart, within_s: float) -> ProgramResult:
    """Run a program that reads nothing to its end, supervised like an agent.

    Raises:
        OSError: It cannot be started.

    Cancel: Safe; the program is ended.
    """
    process = await asyncio.create_subprocess_exec(
        *supervised(_command_of(start)),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=dict(start.environment),
        cwd=start.cwd,
    )
    try:
        async with asyncio.timeout(within_s):
            output, errors = await process.communicate()
        return ProgramResult(process.returncode, output, errors)
    except TimeoutError:
        return ProgramResult(None, b"", b"it did not end")
    finally:
        if process.returncode is None:
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a program with all that it has started, and wait until it has ended.

    Without waiting, the loop could be closed before it hears of the end, and nobody would.
    """
    for end in (process.terminate, process.kill):
        with suppress(ProcessLookupError):
            end()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await process.wait()
                return


def _command_of(start: ProcessStart) -> list[str]:
    """Return the command with the path of its program: `supervise` is always found.

    Raises:
        FileNotFoundError: There is no such program.
    """
    program, *arguments = start.command
    path = shutil.which(program, path=start.environment.get("PATH", ""))
    if path is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    return [os.path.abspath(path), *arguments]


def _is_supervised(command: Sequence[str]) -> bool:
    return supervised(command) != list(command)
