"""The process of one Claude Code, as a transport of claude-agent-sdk.

The SDK's own transport passes the whole environment of this process to the program. This one starts
the program in the same way as all adapters (`agent_process`).
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import claude_agent_sdk as sdk

from arp.process.program import READ_BYTES, ProgramStart
from arp.runtime.contract.errors import RuntimeInternal, Unavailable
from arp.runtime.programs.agent_process import (
    MAX_LINE_BYTES,
    NO_MESSAGE_S,
    AgentProcess,
    speaks_no_json,
)
from arp.runtime.programs.claude.messages import Line

EXIT_GRACE_S = 3.0
"""Seconds that Claude Code may take to write its transcript and end, after the end of its input."""
OUTPUT_GRACE_S = 2.0
"""Seconds to wait for the end of the process after the end of its output, and then for the end of
its standard error."""


class ClaudeProcess(sdk.Transport):
    """A process of Claude Code, as a transport of its SDK.

    Args:
        start: Program, environment and directory.
        on_line: Receives each message that the process writes, in order and before the SDK does.
        on_error_line: Receives each line of its standard error.
    """

    def __init__(
        self,
        start: ProgramStart,
        on_line: Callable[[Line], None],
        on_error_line: Callable[[str], None],
    ) -> None:
        self._start = start
        self._on_line = on_line
        self._on_error_line = on_error_line
        self._process: AgentProcess | None = None
        self._write_lock = asyncio.Lock()
        self._has_spoken = False
        """Whether a message has been received."""
        self._first_message_by: float | None = None
        """Deadline of the first message, on the loop's clock; set when text precedes it."""

    @property
    def program_id(self) -> int:
        """Id of the process; 0 before it starts and after it ends."""
        return self._process.program_id if self._process is not None else 0

    async def connect(self) -> None:
        """Start the process.

        Raises:
            Unavailable: It cannot be started.
        """
        try:
            self._process = await AgentProcess.start(self._start, self._on_error_line)
        except OSError as failed:
            problem = f"{self._start.command[0]} cannot be started: {failed.strerror}"
            raise Unavailable(problem) from failed

    async def write(self, data: str) -> None:
        """Write messages.

        Raises:
            Unavailable: The process has ended.
        """
        process = self._process
        if process is None or process.input.is_closing():
            raise Unavailable("Claude Code is not running")
        async with self._write_lock:
            try:
                process.input.write(data.encode())
                await process.input.drain()
            except (OSError, RuntimeError) as failed:
                raise Unavailable("Claude Code does not read any more") from failed

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Return the messages of the process; their end is raised as an error in any case."""
        return self._messages()

    async def _messages(self) -> AsyncIterator[dict[str, Any]]:
        process = self._process
        assert process is not None
        while True:
            try:
                data = await self._next_line(process)
            except ValueError as failed:
                raise RuntimeInternal(
                    f"Claude Code wrote a line of more than {MAX_LINE_BYTES} bytes"
                ) from failed
            if not data:
                break
            line = self._parse(process, data)
            if line is not None:
                yield line
        raise Unavailable(await _end_text(process))

    async def _next_line(self, process: AgentProcess) -> bytes:
        """Return the next line of the output; empty at its end.

        Raises:
            Unavailable: The process printed text, and no message soon after it.
            ValueError: The line is too long.
        """
        printed = next(iter(process.notes), "")
        if printed and self._first_message_by is None:
            self._first_message_by = asyncio.get_running_loop().time() + NO_MESSAGE_S
        try:
            async with asyncio.timeout_at(None if self._has_spoken else self._first_message_by):
                return await process.output.readline()
        except TimeoutError:
            raise Unavailable(speaks_no_json("Claude Code", printed)) from None

    def _parse(self, process: AgentProcess, data: bytes) -> Line | None:
        """Pass the message of a line to `on_line`, and return it.

        Some builds write notes to standard output. A line that does not begin with `{` is such a
        note; it is recorded for error texts.
        """
        if not data.lstrip().startswith(b"{"):
            process.note(data)
            return None
        if not data.endswith(b"\n"):
            return None  # the process ended in the middle of the line; its end is reported next
        try:
            line: Line = json.loads(data)
            self._has_spoken = True
            self._on_line(line)
        except (LookupError, TypeError, ValueError, AttributeError) as failed:
            problem = f"Claude Code wrote what cannot be read ({type(failed).__name__})"
            raise RuntimeInternal(problem) from failed
        return line

    async def end_input(self) -> None:
        """End the input, after which the process ends."""
        if self._process is not None:
            self._process.end_input()

    def terminate(self) -> None:
        """Make the process end, with everything that it has started."""
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """Kill the process, so that it writes nothing more into its transcript."""
        if self._process is not None:
            self._process.kill()

    async def close(self) -> None:
        """End the process and everything that it has started; may be called again."""
        process = self._process
        if process is None:
            return
        discarding = asyncio.get_running_loop().create_task(_discard_output(process))
        await process.stop(EXIT_GRACE_S)
        discarding.cancel()
        await asyncio.wait([discarding])
        self._process = None

    def is_ready(self) -> bool:
        """Return whether messages can be written."""
        return self._process is not None and self._process.exit_code is None


async def _discard_output(process: AgentProcess) -> None:
    """Read the remaining output, because a full pipe would keep the process from ending."""
    with suppress(RuntimeError):  # the SDK is still reading
        while await process.output.read(READ_BYTES):
            pass


async def _end_text(process: AgentProcess) -> str:
    code = await process.wait(OUTPUT_GRACE_S)
    await process.wait_for_errors(OUTPUT_GRACE_S)
    if code is None:
        how = "closed its output"
    elif code < 0:
        how = f"was ended by {signal.Signals(-code).name}"
    else:
        how = f"ended with exit code {code}"
    is_its_own_end = code is not None and code > 0
    cause = process.cause() if is_its_own_end else ""
    return f"Claude Code {how}" + (f": {cause}" if cause else "")
