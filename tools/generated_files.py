"""Writes generated files, or checks that they are up to date."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(root: Path, texts: Mapping[str, str], label: str, arguments: list[str]) -> int:
    """Write every file that is out of date, and print its name; return the exit code.

    With `--check` among the arguments nothing is written, and the code is 1 if a file is out of
    date.

    Args:
        root: The directory that the files are in.
        texts: What each file must contain, by its path from the root.
        label: What the files are, as each line of the output begins.
        arguments: Of the command line.
    """
    check = "--check" in arguments
    command = "make fixtures" if label == "fixtures" else "make gen"
    stale = []
    for name, text in texts.items():
        path = root / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{label}: {name} {f'is out of date; run {command}' if check else 'written'}")
    return 1 if stale and check else 0


def formatted(source: str) -> str:
    """Return Python as this project writes it."""
    ruff = [sys.executable, "-m", "ruff", "format", "--config", str(ROOT / "pyproject.toml"), "-"]
    done = subprocess.run(ruff, input=source, capture_output=True, text=True, check=True)
    return done.stdout
