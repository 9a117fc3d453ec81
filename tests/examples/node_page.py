"""The renderer in Node.js as a process: what its screen shows, and lines that are typed."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

RENDERER = Path(__file__).parents[2] / "examples" / "node_renderer" / "renderer.mjs"
# Node.js 20 has its WebSocket client behind this option; newer versions accept it.
COMMAND = ("node", "--experimental-websocket", "--no-warnings", str(RENDERER))
WAIT_S = 30.0


class NodePage:
    """A renderer that runs."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child
        self._printed = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    @property
    def shown(self) -> str:
        """What its screen shows now."""
        return self._printed.rpartition("\f")[2]

    def type(self, line: str) -> None:
        """Types a line; `until` waits for what is drawn behind it."""
        assert self.child.stdin is not None
        self._printed = ""
        self.child.stdin.write(f"{line}\n".encode())

    async def until(self, ending: str) -> str:
        """Waits until the screen ends with a text, and returns all that it shows."""
        assert self.child.stdout is not None
        try:
            async with asyncio.timeout(WAIT_S):
                while not self.shown.endswith(ending):
                    data = await self.child.stdout.read(1 << 16)
                    assert data, f"it ended; it shows {self.shown!r}"
                    self._printed += self._decoder.decode(data)
        except TimeoutError:
            raise AssertionError(f"no {ending!r} at the end of {self.shown!r}") from None
        return self.shown

    async def ended(self) -> int:
        """Closes its input, and returns its exit code."""
        assert self.child.stdin is not None
        self.child.stdin.close()
        async with asyncio.timeout(WAIT_S):
            printed, _ = await self.child.communicate()
        self._printed += self._decoder.decode(printed)
        assert self.child.returncode is not None
        return self.child.returncode


@asynccontextmanager
async def node_page(ws: str, session: str) -> AsyncIterator[NodePage]:
    """Runs the renderer on a session."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*COMMAND, ws, session, stdin=pipe, stdout=pipe)
    try:
        yield NodePage(child)
    finally:
        if child.returncode is None:
            child.kill()
            await child.communicate()
