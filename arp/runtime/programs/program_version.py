"""The version of a program, and whether it is too old."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from arp.process.program import ProgramStart, run_program

VERSION_S = 10.0
"""Seconds that `--version` may take."""

_NUMBERS = re.compile(r"\b(\d+)\.(\d+)\.(\d+)\S*")


class ProgramVersions:
    """Versions of programs; a program is run again only when its file has changed.

    Args:
        name: Name of the program for messages.
        oldest: Oldest version that works, such as `2.0.0`.
    """

    def __init__(self, name: str, oldest: str) -> None:
        self._name = name
        self._oldest = oldest
        self._known: dict[tuple[str, int], str] = {}

    async def of(self, program: str, environment: Mapping[str, str], cwd: Path) -> str:
        """Return the version of a program; empty if it prints none."""
        with suppress(OSError):
            file = program, os.stat(program).st_mtime_ns
            if file not in self._known:
                start = ProgramStart([program, "--version"], environment, str(cwd))
                result = await run_program(start, VERSION_S)
                found = _NUMBERS.search(result.stdout)
                self._known = {file: found[0] if found else ""}
            return self._known[file]
        return ""

    def problem(self, version: str) -> str:
        """Return an error text if a version is too old; empty for a newer or unknown version."""
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
