"""Which version of a program is there, and whether it is too old."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from arp.runtime.programs.agent_process import ProcessStart, run_program

VERSION_S = 10.0
"""How long `--version` may take."""

_NUMBERS = re.compile(r"\b(\d+)\.(\d+)\.(\d+)\S*")


class ProgramVersions:
    """Asks programs for their versions, each once until it is another file.

    Args:
        name: What messages call the program.
        oldest: The oldest version that works, such as `2.0.0`.
    """

    def __init__(self, name: str, oldest: str) -> None:
        self._name = name
        self._oldest = oldest
        self._known: dict[tuple[str, int], str] = {}

    async def of(self, program: str, environment: Mapping[str, str], cwd: Path) -> str:
        """Return the version of a program; empty if it does not tell one."""
        with suppress(OSError):
            file = program, os.stat(program).st_mtime_ns
            if file not in self._known:
                start = ProcessStart([program, "--version"], environment, str(cwd))
                result = await run_program(start, VERSION_S)
                told = _NUMBERS.search(result.output.decode(errors="replace"))
                self._known = {file: told[0] if told else ""}
            return self._known[file]
        return ""

    def problem(self, version: str) -> str:
        """Return that a version is too old, and what to do; empty if it is not, or not known."""
        numbers, oldest = _numbers(version), _numbers(self._oldest)
        is_own_build = numbers == (0, 0, 0)
        if not numbers or is_own_build or numbers >= oldest:
            return ""
        return (
            f"{self._name} {version} is too old: {self._oldest} or newer is needed; update it, or "
            "name the path of another one"
        )


def _numbers(version: str) -> tuple[int, ...]:
    found = _NUMBERS.match(version)
    return tuple(map(int, found.groups())) if found else ()
