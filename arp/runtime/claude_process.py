"""The process of one Claude Code, as a transport of claude-agent-sdk.

The SDK's own transport gives the process everything that is in this one's environment; here it gets
exactly what it is told. It is supervised (`supervise`): what it has started ends with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import claude_agent_sdk as sdk
import msgspec

from arp.runtime.claude_messages import Line
from arp.runtime.errors import RuntimeInternal, Unavailable
from arp.runtime.supervise import GRACE_S, LEFTOVERS_S, supervised

MAX_LINE_BYTES = 64 * 2**20
"""A message: images and outputs of tools come whole."""
EXIT_GRACE_S = 3.0
"""How long Claude Code may take to end after the end of its input; it writes its transcript."""
TERMINATE_GRACE_S = 2.0
"""The same after SIGTERM."""
KEPT_ERROR_LINES = 20


class ProcessStart(msgspec.Struct, frozen=True):
    """How a process is started."""

    command: Sequence[str]
    """The program and its arguments."""
    environment: Mapping[str, str]
    """The whole environment of the process."""
    cwd: str
    """Where it works."""


class ClaudeProcess(sdk.Transport):
    """One process; `on_line` gets each message before the SDK does, in order.

    Args:
        start: How it is started.
        on_line: Gets each message that the process writes.
        on_error_line: Gets each line of its standard error.
    """

    def __init__(
        self,
        start: ProcessStart,
        on_line: Callable[[Line], None],
        on_error_line: Callable[[str], None],
    ) -> None:
        self.errors: deque[str] = deque(maxlen=KEPT_ERROR_LINES)
        """The last lines of its standard error."""
        self._start = start
        self._on_line = on_line
        self._on_error_line = on_error_line
        self._process: Process | None = None
        self._error_reader: asyncio.Task[None] | None = None
        self._write_lock = asyncio.Lock()

    @property
    def pid(self) -> int:
        """The id of the process; 0 before it has started."""
        return self._process.pid if self._process is not None else 0

    async def connect(self) -> None:
        """Start the process.

        Raises:
            Unavailable: It cannot be started.
        """
        try:
            self._process = await asyncio.create_subprocess_exec(
                *supervised(self._start.command),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=dict(self._start.environment),
                cwd=self._start.cwd,
                start_new_session=True,
                limit=MAX_LINE_BYTES,
            )
        except OSError as failed:
            problem = f"{self._start.command[0]} cannot be started: {failed.strerror}"
            raise Unavailable(problem) from failed
        self._error_reader = asyncio.get_running_loop().create_task(self._read_errors())

    async def write(self, data: str) -> None:
        """Write messages.

        Raises:
            Unavailable: The process is gone.
        """
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            raise Unavailable("Claude Code is not running")
        async with self._write_lock:
            try:
                process.stdin.write(data.encode())
                await process.stdin.drain()
            except (OSError, RuntimeError) as failed:
                raise Unavailable("Claude Code does not read any more") from failed

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Return the messages of the process; the end of them is an error, whatever it is."""
        return self._messages()

    async def _messages(self) -> AsyncIterator[dict[str, Any]]:
        assert self._process is not None
        assert self._process.stdout is not None
        while True:
            try:
                data = await self._process.stdout.readline()
            except ValueError as failed:
                raise RuntimeInternal(
                    f"Claude Code wrote a line of more than {MAX_LINE_BYTES} bytes"
                ) from failed
            if not data:
                break
            line = self._parsed(data)
            if line is not None:
                yield line
        raise Unavailable(await self._how_it_ended())

    def _parsed(self, data: bytes) -> Line | None:
        """Return the message of a line, after `on_line` has had it.

        Some builds write notes to standard output; what is not even meant as JSON is such a note.
        """
        if not data.lstrip().startswith(b"{"):
            if data.strip():
                self._note(data)
            return None
        if not data.endswith(b"\n"):
            return None  # It was cut off by the end of the process, which is told next.
        try:
            line: Line = json.loads(data)
            self._on_line(line)
        except (LookupError, TypeError, ValueError, AttributeError) as failed:
            problem = f"Claude Code wrote what cannot be read ({type(failed).__name__})"
            raise RuntimeInternal(problem) from failed
        return line

    async def _how_it_ended(self) -> str:
        assert self._process is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(TERMINATE_GRACE_S):
                await self._process.wait()
            if self._error_reader is not None:
                async with asyncio.timeout(TERMINATE_GRACE_S):
                    await asyncio.wait([self._error_reader])
        code = self._process.returncode
        if code is None:
            how = "closed its output"
        elif code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        else:
            how = f"ended with exit code {code}"
        is_its_own_end = code is not None and code > 0
        last = self.errors[-1] if self.errors and is_its_own_end else ""
        return f"Claude Code {how}" + (f": {last}" if last else "")

    async def _read_errors(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        while True:
            try:
                data = await self._process.stderr.readline()
            except ValueError:
                continue  # Longer than a message: nobody reads that.
            if not data:
                return
            self._note(data)

    def _note(self, data: bytes) -> None:
        text = data.decode(errors="replace").strip()
        if text:
            self.errors.append(text)
            self._on_error_line(text)

    async def end_input(self) -> None:
        """End the input, after which the process ends."""
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            process.stdin.close()

    async def close(self) -> None:
        """End the process and what is in its group; may be called again."""
        process = self._process
        if process is None:
            return
        await self.end_input()
        if not await self._ends_within(EXIT_GRACE_S):
            self.signal(signal.SIGTERM)
            if not await self._ends_within(GRACE_S + LEFTOVERS_S + TERMINATE_GRACE_S):
                self.signal(signal.SIGKILL)
                await self._ends_within(TERMINATE_GRACE_S)
        if self._error_reader is not None:
            self._error_reader.cancel()
            await asyncio.wait([self._error_reader])
        self._process = None

    async def _ends_within(self, seconds: float) -> bool:
        """Wait for the end of the process; what it still writes is read, or it could not end."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                while await process.stdout.read(2**16):
                    pass
                await process.wait()
        except TimeoutError:
            return process.returncode is not None
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process group."""
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def is_ready(self) -> bool:
        """Return whether messages can be written."""
        return self._process is not None and self._process.returncode is None
