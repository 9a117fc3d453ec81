"""stdin and stdout of a child process: NDJSON, one message per line; end of file closes.

A new child process is started for every connection. It runs in its own process session, so that
Ctrl-C interrupts only the application. It uses the stderr of this process, or its stderr is read
line by line.

Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
import shlex
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable

from arp.client.address import Address
from arp.client.errors import LinkLost, ServerRefused
from arp.client.link import MAX_FRAME_BYTES
from arp.protocol.framing.program_output import printed
from arp.protocol.safe_text import sanitise_line

MOST_LINE_CHARACTERS = 2000
"""Maximum number of characters of a line of stderr that are passed on."""

LAST_WORDS_S = 0.2
"""Time to read the pipes of a child process after it has ended."""

GRACE_S = 2.0
"""Time for a child process to end by itself, and again after SIGTERM."""


class StdioLink:
    """One child process."""

    carries_acks = True
    is_remote = False

    def __init__(
        self,
        process: Process,
        name: str,
        grace_s: float,
        on_stderr: Callable[[str], None] | None = None,
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._name = name
        self._grace_s = grace_s
        self._stderr_task: asyncio.Task[None] | None = None
        """Task that reads the child's stderr, if the caller receives the lines."""
        if on_stderr is not None:
            assert process.stderr is not None
            self._stderr_task = asyncio.create_task(_read_lines(process.stderr, on_stderr))

    async def receive(self) -> bytes:
        """Wait for the next line that is not empty and return it."""
        line = b""
        while not line.strip():
            try:
                line = await self._stdout.readline()
            except ValueError:
                problem = f"{self._name} wrote a line of more than {MAX_FRAME_BYTES} bytes"
                raise LinkLost(problem, error=ServerRefused(problem)) from None
            if not line.endswith(b"\n"):
                raise await self._ended()
        return line

    async def send(self, frame: bytes) -> None:
        """Write a frame as one line.

        Raises:
            LinkLost: The connection has ended.
        """
        try:
            self._stdin.write(frame + b"\n")
            await self._stdin.drain()
        except OSError:
            raise await self._ended() from None

    async def aclose(self) -> None:
        """End the child process: by end of file, then by SIGTERM, then by SIGKILL.

        Each step waits for the grace time.
        """
        self._stdin.close()
        drained = asyncio.create_task(_drain(self._stdout))
        for end in (self._process.terminate, self._process.kill):
            if await self._exited():
                break
            end()
        await self._exited()
        readers = [drained] if self._stderr_task is None else [drained, self._stderr_task]
        # A process that the child has started may keep a pipe open forever, so do not wait for the
        # end of file. The output of the child itself has been read after this time.
        await asyncio.wait(readers, timeout=LAST_WORDS_S)
        for reader in readers:
            reader.cancel()
        await asyncio.wait(readers)
        # asyncio has no public way to close a pipe that such a process keeps open.
        self._process._transport.close()  # type: ignore[attr-defined]

    async def _ended(self) -> LinkLost:
        self._stdin.close()
        if not await self._exited():
            return LinkLost(f"{self._name} closed its stdout")
        return LinkLost(f"{self._name} ended with exit code {self._process.returncode}")

    async def _exited(self) -> bool:
        """Wait for the grace time; return whether the child process has ended."""
        try:
            async with asyncio.timeout(self._grace_s):
                await self._process.wait()
        except TimeoutError:
            return self._process.returncode is not None
        return True


async def open_stdio(
    address: Address,
    hello: bytes,
    grace_s: float = GRACE_S,
    on_stderr: Callable[[str], None] | None = None,
) -> StdioLink:
    """Start a child process, send it `hello`, and return the link.

    Args:
        address: Address with the command.
        hello: The first frame.
        grace_s: Time for the child process to end by itself, in seconds.
        on_stderr: Called with each line of the child's stderr. `None` means that the child uses
            the stderr of this process.

    Raises:
        LinkLost: The program does not exist, or it ended immediately.
    """
    name = shlex.join(address.command)
    try:
        process = await asyncio.create_subprocess_exec(
            *address.command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=None if on_stderr is None else PIPE,
            limit=MAX_FRAME_BYTES,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        problem = f"{name} cannot be started: {error}"
        raise LinkLost(problem, error=ServerRefused(problem)) from None
    link = StdioLink(process, name, grace_s, on_stderr)
    try:
        if hello:
            await link.send(hello)
    except BaseException:
        await link.aclose()
        raise
    return link


async def _read_lines(stream: asyncio.StreamReader, on_line: Callable[[str], None]) -> None:
    """Call `on_line` with each line, without control characters; a long line is cut."""
    is_new = True
    while part := await _next_part(stream):
        if is_new:
            line = part.decode("utf-8", "replace").rstrip("\r\n")
            on_line(sanitise_line(printed(line[:MOST_LINE_CHARACTERS])))
        is_new = part.endswith(b"\n")


async def _next_part(stream: asyncio.StreamReader) -> bytes:
    """Return the next line, or a part of it if it is too long; empty at the end of the stream."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError as overrun:
        return await stream.read(overrun.consumed)


async def _drain(stream: asyncio.StreamReader) -> None:
    """Read and ignore the output, because a child that cannot write it would not end."""
    while await stream.read(1 << 16):
        pass
