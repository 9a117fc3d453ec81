"""Measure how long the tests of a run take: the slowest tests, and the sum for each file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SLOWEST = 20
"""Number of tests in the list of the slowest tests."""


class Durations:
    """Plugin for pytest that adds up the durations of tests, including their fixtures."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the duration of one phase of a test: its setup, its call or its teardown."""
        self._seconds[report.nodeid] += report.duration

    def slowest(self) -> Iterator[str]:
        """Yield one line for each of the slowest tests, slowest first."""
        ordered = sorted(self._seconds.items(), key=lambda pair: -pair[1])
        for nodeid, seconds in ordered[:SLOWEST]:
            yield f"{seconds:7.1f} s  {nodeid}"

    def write(self, file: Path) -> None:
        """Write the slowest tests, and for each file its seconds and its number of tests."""
        sums: dict[str, list[float]] = defaultdict(list)
        for nodeid, seconds in self._seconds.items():
            sums[nodeid.partition("::")[0]].append(seconds)
        lines = ["# The slowest tests, in seconds", *self.slowest()]
        lines += ["", "# All files: seconds, number of tests"]
        for path, each in sorted(sums.items(), key=lambda pair: -sum(pair[1])):
            lines.append(f"{sum(each):7.1f} s  {len(each):4}  {path}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
