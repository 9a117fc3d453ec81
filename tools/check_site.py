"""Check that no page of the built site loads files from other servers.

Usage: `python -m tools.check_site site`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc(?:set)?=[\"']?(https?:)?//"
    r"|<link\b(?=[^>]*rel=[\"']?(?:stylesheet|preconnect|preload|icon))[^>]*href=[\"']?(https?:)?//"
)
"""Elements of a page that a browser loads from another server."""

IMPORTED = re.compile(r"@import\s+url\(|url\([\"']?https?:")
"""References in a style sheet that a browser loads from another server."""


def faults(site: Path) -> list[str]:
    """Return the faults of a site, by file."""
    pages = sorted(site.rglob("*.html"))
    found = [] if pages else [f"{site}: there are no pages"]
    for page in pages:
        loaded = FETCHED.search(page.read_text(encoding="utf-8"))
        if loaded is not None:
            found.append(f"{page}: fetches from elsewhere: {loaded[0]}")
    sheets = [sheet for sheet in sorted(site.rglob("*.css")) if IMPORTED.search(sheet.read_text())]
    return found + [f"{sheet}: fetches from elsewhere" for sheet in sheets]


def main(arguments: list[str]) -> int:
    """Check a site; return the exit code."""
    found = faults(Path(arguments[0]))
    for fault in found:
        print(f"docs: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
