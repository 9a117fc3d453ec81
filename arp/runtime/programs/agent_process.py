"""`AgentProcess`: runs the program of an agent, for all adapters.

The program gets exactly the environment that the adapter passes. On Linux it runs under
`supervise`: everything that it starts ends with it, including processes in sessions of their own.
All of them also end if this process is killed. On other systems, only the program's process group
ends with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from arp.process.cause import cause_of, is_about_arguments
from arp.process.error_lines import ErrorLines
from arp.process.program import END_S, READ_BYTES, ProgramStart, kill_group, start_process
from arp.process.supervise import supervised
from arp.redact.names import secrets_of

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 64 * 2**20
"""Largest message of an agent, which is one line; images and tool outputs are sent as a whole."""
NO_MESSAGE_S = 3.0
"""Seconds that a program may take from its first text to its first message.

Some agents print a note before their first message, so the text alone is no reason to end the
program. If a program prints nothing, only the time limit of its start applies.
"""
MAX_QUOTED = 200
"""Characters of a line that an error quotes."""


class AgentProcess:
    """A running program and its pipes; create it with `start`.

    The caller must read the output to its end: the program may wait until it is read.
    """

    def __init__(
        self, process: Process, start: ProgramStart, on_error_line: Callable[[str], None]
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.name = start.name or os.path.basename(start.command[0])
        self.input = process.stdin
        self.output = process.stdout
        secrets = secrets_of(start.environment)
        self._lines = ErrorLines(secrets, self._on_error_output)
        self._notes = ErrorLines(secrets, self._on_error_output)
        self._process = process
        self._on_error_line = on_error_line
        self._is_supervised = _is_supervised(start.command)
        self._reading_errors = asyncio.get_running_loop().create_task(self._read_errors())

    @classmethod
    async def start(
        cls, start: ProgramStart, on_error_line: Callable[[str], None] = lambda line: None
    ) -> AgentProcess:
        """Start a program in a process group of its own; call this in the thread of the loop.

        Args:
            start: Program to start.
            on_error_line: Receives each line of its standard error, without secrets.

        Raises:
            OSError: The program cannot be started.
        """
        process = await start_process(start, stdin=PIPE, line_limit=MAX_LINE_BYTES)
        return cls(process, start, on_error_line)

    @property
    def errors(self) -> Sequence[str]:
        """Newest lines of its standard error, without secrets."""
        return self._lines.newest

    @property
    def notes(self) -> Sequence[str]:
        """Newest lines of its output that are not messages, without secrets."""
        return self._notes.newest

    def cause(self) -> str:
        """Return the line of its output that explains its end; empty if it wrote none."""
        cause = cause_of([*self.notes, *self.errors])
        if is_about_arguments(cause):
            return f"{cause}; it may be too old for its arguments: update it, or check its command"
        return cause

    @property
    def exit_code(self) -> int | None:
        """Exit code, as in `Popen.returncode`; `None` while it runs."""
        return self._process.returncode

    @property
    def program_id(self) -> int:
        """Id of the program's own process; 0 if it has ended."""
        if self.exit_code is not None:
            return 0
        pid = self._process.pid
        if not self._is_supervised:
            return pid
        with suppress(OSError):
            # The oldest child of `supervise` is the program; the others are orphans that it has
            # adopted.
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                return int(child)
        return 0

    async def wait(self, within_s: float) -> int | None:
        """Wait for the end of the program and its output; return the exit code, `None` if it runs.

        Cancel: Safe.
        """
        with suppress(TimeoutError):
            return await asyncio.wait_for(self._process.wait(), within_s)
        return self.exit_code

    async def wait_for_errors(self, within_s: float) -> None:
        """Wait until its standard error has been read to the end."""
        await asyncio.wait([self._reading_errors], timeout=within_s)

    def end_input(self) -> None:
        """Close the input; most agents then end. May be called again."""
        if not self.input.is_closing():
            self.input.close()

    def terminate(self) -> None:
        """End the program and everything that it has started; may be called again."""
        if not self._is_supervised:
            kill_group(self._process)
        elif self.exit_code is None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    def kill(self) -> None:
        """Kill the program at once, so that it cannot write anything before it ends.

        Everything that it has started ends too.
        """
        if self.exit_code is not None:
            return
        if program_id := self.program_id:
            with suppress(ProcessLookupError):
                os.kill(program_id, signal.SIGKILL)
        else:
            self.terminate()

    async def stop(self, grace_s: float) -> int | None:
        """Close the input and wait for the program to end; end it by force after `grace_s`.

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
                kill_group(self._process)
                await self.wait(END_S)
        elif not self._is_supervised:
            kill_group(self._process)  # processes that it has left behind
        # A grandchild may keep the pipe open for ever, so it is not read to its end.
        self._reading_errors.cancel()
        await asyncio.wait([self._reading_errors])
        return self.exit_code

    async def _read_errors(self) -> None:
        errors = self._process.stderr
        assert errors is not None
        while data := await errors.read(READ_BYTES):
            self._lines.receive(data)
        self._lines.end()

    def note(self, line: bytes) -> None:
        """Record a line of the output that is text for people instead of a message."""
        self._notes.receive(line.rstrip(b"\n") + b"\n")

    def _on_error_output(self, line: str) -> None:
        logger.debug("%s: %.75s", self.name, line)
        self._on_error_line(line)


def speaks_no_json(name: str, printed: str) -> str:
    """Return the error text for a program that prints text instead of messages."""
    quoted = printed if len(printed) <= MAX_QUOTED else printed[:MAX_QUOTED] + "…"
    return (
        f"{name} prints no JSON: it printed {quoted!r}; check that its command starts it as an "
        "agent that speaks over its pipes"
    )


def _is_supervised(command: Sequence[str]) -> bool:
    return supervised(command) != list(command)
