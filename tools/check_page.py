"""Check that the built page in `arp/server/static/` matches its sources, without Node.js.

    python -m tools.check_page

`make web` builds the page and writes `manifest.json` beside it, with a hash of all sources and a
list of the built files. This script reports a change of `web/` that was not followed by a build.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

SOURCES = (
    "core/src",
    "elements/src",
    "page/src",
    "page/index.html",
    "page/build.mjs",
    "package-lock.json",
)
"""Source files and folders, relative to `web/`; the same list as in `web/page/build.mjs`."""

OTHERS = frozenset({"manifest.json", "inspect"})
"""Files beside the page that the manifest does not list."""


def main() -> int:
    """Print the problems; return the exit code."""
    faults = problems(ROOT / "web", ROOT / "arp" / "server" / "static")
    for fault in faults:
        print(f"page: {fault}")
    return 1 if faults else 0


def problems(web: Path, static: Path) -> list[str]:
    """Return the problems of a built page, one per line; none if it matches its sources."""
    manifest = json.loads((static / "manifest.json").read_text(encoding="utf-8"))
    found = []
    if manifest["sources"] != hash_of_sources(web):
        found.append("is not built from what lies in web/; run make web")
    for name, made in manifest["files"].items():
        found += _differences(static, name, made)
    listed = {
        name + ending
        for name, made in manifest["files"].items()
        for ending in ("", *(f".{packed}" for packed in ("br", "gz") if packed in made))
    }
    there = {path.name for path in static.iterdir()} - OTHERS
    found += [f"{name} is not in the manifest; run make web" for name in sorted(there - listed)]
    found += [f"{name} is missing; run make web" for name in sorted(listed - there)]
    return found


def hash_of_sources(web: Path) -> str:
    """Return one hash of all sources of the page, computed as in `web/page/build.mjs`."""
    names = [
        path.relative_to(web).as_posix()
        for place in SOURCES
        for path in (sorted((web / place).rglob("*")) if (web / place).is_dir() else [web / place])
        if path.is_file()
    ]
    whole = hashlib.sha256()
    for name in sorted(names):
        content = hashlib.sha256((web / name).read_bytes()).hexdigest()
        whole.update(f"{name}\0{content}\n".encode())
    return whole.hexdigest()


def _differences(static: Path, name: str, made: dict[str, Any]) -> list[str]:
    path = static / name
    if not path.exists():
        return []  # reported as missing
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != made["sha256"]:
        return [f"{name} is not what was built; run make web"]
    packed = static / f"{name}.gz"
    if packed.exists() and gzip.decompress(packed.read_bytes()) != data:
        return [f"{name}.gz holds something else; run make web"]
    return []


if __name__ == "__main__":
    sys.exit(main())
