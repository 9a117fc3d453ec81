"""A child process's stdin and stdout: NDJSON, one message a line; end of file closes.

Source: protocol.md 6. The child is started anew for every connection, in a session of its own, so
that Ctrl-C reaches the application alone. Its stderr is ours, or is read line by line.
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
"""How much of a line of stderr is passed on."""

LAST_WORDS_S = 0.2
"""How long the pipes of a child that has ended are read."""

GRACE_S = 2.0
"""How long a child may take to end by itself, and then again after SIGTERM."""


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
        self._complaints: asyncio.Task[None] | None = None
        """Reads its stderr."""
        if on_stderr is not None:
            assert process.stderr is not None
            self._complaints = asyncio.create_task(_report(process.stderr, on_stderr))

    async def receive(self) -> bytes:
        """Return the next line that is not empty."""
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
        """Write a line."""
        try:
            self._stdin.write(frame + b"\n")
            await self._stdin.drain()
        except OSError:
            raise await self._ended() from None

    async def aclose(self) -> None:
        """End the child: by end of file, else by SIGTERM, else by SIGKILL; each gets its time."""
        self._stdin.close()
        drained = asyncio.create_task(_drain(self._stdout))
        for end in (self._process.terminate, self._process.kill):
            if await self._exited():
                break
            end()
        await self._exited()
        readers = [drained] if self._complaints is None else [drained, self._complaints]
        # A grandchild may hold a pipe open; what the child itself wrote is read by then.
        await asyncio.wait(readers, timeout=LAST_WORDS_S)
        for reader in readers:
            reader.cancel()
        await asyncio.wait(readers)
        # Asyncio has no other way to let go of a pipe that a grandchild still holds.
        self._process._transport.close()  # type: ignore[attr-defined]

    async def _ended(self) -> LinkLost:
        self._stdin.close()
        if not await self._exited():
            return LinkLost(f"{self._name} closed its stdout")
        return LinkLost(f"{self._name} ended with exit code {self._process.returncode}")

    async def _exited(self) -> bool:
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
    """Start a child, send it `hello`, and return it.

    Args:
        address: With its command.
        hello: The first frame.
        grace_s: How long it may take to end by itself.
        on_stderr: Is called with each line of its stderr; `None`: it writes to ours.

    Raises:
        LinkLost: There is no such program, or it ended at once.
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


async def _report(stream: asyncio.StreamReader, on_line: Callable[[str], None]) -> None:
    """Pass each line on, without control characters; of a longer one the first characters."""
    is_new = True
    while part := await _line_of(stream):
        if is_new:
            line = part.decode("utf-8", "replace").rstrip("\r\n")
            on_line(sanitise_line(printed(line[:MOST_LINE_CHARACTERS])))
        is_new = part.endswith(b"\n")


async def _line_of(stream: asyncio.StreamReader) -> bytes:
    """Return the next line; a part of it if it is too long, and nothing at the end."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError as overrun:
        return await stream.read(overrun.consumed)


async def _drain(stream: asyncio.StreamReader) -> None:
    """Read what nobody wants, so that a child that still writes can come to its end."""
    while await stream.read(1 << 16):
        pass
