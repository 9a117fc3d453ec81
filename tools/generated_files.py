"""Write generated files, or check that they are up to date."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(root: Path, texts: Mapping[str, str], label: str, arguments: list[str]) -> int:
    """Write every file that is out of date, and print its name; return the exit code.

    With `--check` among the arguments, nothing is written, and the exit code is 1 if a file is out
    of date.

    Args:
        root: Directory of the files.
        texts: Content of each file, by its path from the root.
        label: Name of this kind of files, at the beginning of each printed line.
        arguments: Arguments of the command line.
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
    """Return Python code in the format of this project."""
    ruff = [sys.executable, "-m", "ruff", "format", "--config", str(ROOT / "pyproject.toml"), "-"]
    done = subprocess.run(ruff, input=source, capture_output=True, text=True, check=True)
    return done.stdout
