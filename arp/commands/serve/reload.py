"""`arp serve --reload`: a child that serves, started again when a file changes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from arp.process.stop_signals import StopSignals, ignore_signals

POLL_S = 0.3
STOP_S = 12.0
"""Longer than a graceful stop takes."""


def run_reloading(arguments: Sequence[str], target: str) -> int:
    """Serve in a child until it is interrupted; a change of a Python file starts it again.

    Args:
        arguments: Of `arp`, without `--reload`.
        target: Beside which files are watched.

    Returns:
        The exit code of the last child.
    """
    asked = threading.Event()
    StopSignals(lambda _: asked.set())
    place = Path(target.partition(":")[0])
    watched = place.resolve().parent if place.suffix == ".py" else Path.cwd()
    while True:
        before = stamps(watched)
        child = subprocess.Popen([sys.executable, "-m", "arp.cli", *arguments])
        while stamps(watched) == before and not asked.wait(POLL_S):
            pass
        if asked.is_set():
            code = _stop(child)
            ignore_signals()
            return code
        click.echo("arp: a file changed, starting again", err=True)
        _stop(child)


def stamps(directory: Path) -> dict[Path, int]:
    """Return the modification time of every Python file below a directory, in nanoseconds."""
    found: dict[Path, int] = {}
    for path in directory.rglob("*.py"):
        if any(
            part.startswith(".") or part == "node_modules"
            for part in path.relative_to(directory).parts
        ):
            continue
        try:
            found[path] = path.stat().st_mtime_ns
        except FileNotFoundError:
            continue
    return found


def _stop(child: subprocess.Popen[bytes]) -> int:
    if child.poll() is None:
        child.terminate()
    try:
        return child.wait(STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()
