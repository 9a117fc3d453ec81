"""Starts and ends the second processes of the store's tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def child(
    role: str, path: Path, module: str = "tests.store.child"
) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Runs `tests/store/child.py`, or another module, in a role; kills it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, role, str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout
    finally:
        process.kill()
        process.stdout.read()
        process.stdout.close()
        process.wait(timeout=10)
