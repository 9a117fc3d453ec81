"""`arp serve --reload`: serve in a child process, and restart it when a file changes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from arp.process.stop_signals import StopSignals, ignore_signals

POLL_S = 0.3
"""Interval between two checks for changed files."""
STOP_S = 12.0
"""Time for the child process to end; more than a graceful stop takes."""


def run_reloading(arguments: Sequence[str], target: str) -> int:
    """Serve in a child process until a signal is received; restart it when a Python file changes.

    Args:
        arguments: Arguments of `arp`, without `--reload`.
        target: Target; the Python files in its directory are watched.

    Returns:
        The exit code of the last child process.
    """
    stop_requested = threading.Event()
    StopSignals(lambda _: stop_requested.set())
    path = Path(target.partition(":")[0])
    directory = path.resolve().parent if path.suffix == ".py" else Path.cwd()
    while True:
        before = modification_times(directory)
        child = subprocess.Popen([sys.executable, "-m", "arp.cli", *arguments])
        while modification_times(directory) == before and not stop_requested.wait(POLL_S):
            pass
        if stop_requested.is_set():
            code = _stop(child)
            ignore_signals()
            return code
        click.echo("arp: a file changed, starting again", err=True)
        _stop(child)


def modification_times(directory: Path) -> dict[Path, int]:
    """Return the modification time of every Python file below a directory, in nanoseconds."""
    times: dict[Path, int] = {}
    for path in directory.rglob("*.py"):
        if any(
            part.startswith(".") or part == "node_modules"
            for part in path.relative_to(directory).parts
        ):
            continue
        try:
            times[path] = path.stat().st_mtime_ns
        except FileNotFoundError:  # deleted since `rglob` found it
            continue
    return times


def _stop(child: subprocess.Popen[bytes]) -> int:
    if child.poll() is None:
        child.terminate()
    try:
        return child.wait(STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()
