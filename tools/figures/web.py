"""Figures of the web packages."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tools.figures.source import SourceFile, read_files

PACKAGES = ("core", "bindings", "elements", "react", "vue", "page")
"""Packages whose `src` is measured, without tests and benchmarks."""

FOLDERS = ("web/elements/src/chat", "web/core/src", "renderers/arp_terminal")
"""Folders that the redesign names."""

SCRIPTS = (".ts", ".tsx")


def sources(root: Path) -> list[SourceFile]:
    """Return the TypeScript of all packages."""
    return [file for name in PACKAGES for file in read_files(root, f"web/{name}/src", *SCRIPTS)]


def files_side_by_side(root: Path, folder: str) -> int:
    """Return how many source files are directly in a folder; style sheets are not counted."""
    return sum(path.suffix in (".py", *SCRIPTS) for path in (root / folder).glob("*.*"))


def significant_lines(files: Iterable[SourceFile]) -> Counter[str]:
    """Return lines of code, without imports, comments and lines that contain only brackets."""
    found: Counter[str] = Counter()
    for file in files:
        text = re.sub(r"/\*.*?\*/", "", file.text, flags=re.DOTALL)
        text = re.sub(r"^import\b.*?;$", "", text, flags=re.DOTALL | re.MULTILINE)
        lines = (line.strip() for line in text.splitlines())
        found.update(line for line in lines if re.search(r"\w", line) and line[:2] != "//")
    return found


def identical_in_vue(root: Path) -> tuple[int, int]:
    """Return the number of hand-written React lines that Vue has too, and of all React lines."""
    react, vue = (
        significant_lines(
            file for file in read_files(root, folder, *SCRIPTS) if not file.is_generated
        )
        for folder in ("web/react/src", "web/vue/src")
    )
    return sum((react & vue).values()), sum(react.values())


def first_load_bytes(root: Path) -> int | None:
    """Return the size of the page's first load with gzip; `None` if the page is not built."""
    path = root / "arp/server/static/manifest.json"
    if not path.exists():
        return None
    manifest = json.loads(path.read_text(encoding="utf-8"))
    return sum(int(manifest["files"][name].get("gz", 0)) for name in manifest["first"])


def listeners_to_everything(files: Iterable[SourceFile]) -> list[str]:
    """Return the files that subscribe to every change of the store instead of one cell of it."""
    return [file.name for file in files if re.search(r"\bstore\.subscribe\(", file.text)]
