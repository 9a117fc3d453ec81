"""`WriterProcess`: a second process with the same storage, which can be killed at any moment."""

from __future__ import annotations

import asyncio
import os
import pkgutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from arp.conformance.cases import CaseFailed

MODULE: Final = "arp.conformance.store.writer_roles"
"""Module that the process runs."""

LINE_S: Final = 30.0
"""Time in seconds that a process may take for its next line, its start included."""

MAX_LINE: Final = 1 << 20
"""Maximum length of a line in bytes."""


class WriterProcess:
    """A process that was started with a role."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        assert process.stdout is not None
        self._output = process.stdout

    @classmethod
    async def start(cls, role: str, factory: str, directory: Path) -> WriterProcess:
        """Start a process.

        Args:
            role: Name of its role.
            factory: `module:name` of the factory.
            directory: Argument of the factory.
        """
        path = os.pathsep.join(place or os.getcwd() for place in sys.path)
        return cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", MODULE, role, factory, str(directory)),
                env={**os.environ, "PYTHONPATH": path},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=MAX_LINE,
            )
        )

    async def line(self) -> str:
        """Return the next line of the process.

        Raises:
            CaseFailed: The process ended, or wrote no line within `LINE_S`.
        """
        try:
            async with asyncio.timeout(LINE_S):
                line = await self._output.readline()
        except TimeoutError:
            raise CaseFailed(f"Timeout: another process did nothing for {LINE_S:g} s") from None
        if not line.endswith(b"\n"):
            raise CaseFailed(f"another process ended: {await self._last_error()}")
        return line.decode().rstrip("\n")

    async def kill(self) -> Sequence[str]:
        """End the process with SIGKILL; return the complete lines that were not read yet."""
        with suppress(ProcessLookupError):
            self._process.kill()
        output, _ = await self._process.communicate()
        return output.decode().split("\n")[:-1]

    async def _last_error(self) -> str:
        assert self._process.stderr is not None
        async with asyncio.timeout(LINE_S):
            lines = (await self._process.stderr.read(MAX_LINE)).decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "without an error message")


def import_name(factory: object) -> str | None:
    """Return `module:name` of a factory, or `None` if it cannot be imported by this name."""
    module = getattr(factory, "__module__", None)
    name = f"{module}:{getattr(factory, '__qualname__', None)}"
    try:
        found = pkgutil.resolve_name(name)
    except (ValueError, ImportError, AttributeError):
        return None
    return name if found is factory and module != "__main__" else None
