"""Check the built site: `python -m tools.check_site site`. It fetches nothing from elsewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc(?:set)?=[\"']?(https?:)?//"
    r"|<link\b(?=[^>]*rel=[\"']?(?:stylesheet|preconnect|preload|icon))[^>]*href=[\"']?(https?:)?//"
)
"""What a browser loads from another server when it shows a page."""

IMPORTED = re.compile(r"@import\s+url\(|url\([\"']?https?:")
"""The same in a style sheet."""


def faults(site: Path) -> list[str]:
    """Return what is wrong with a site, by file."""
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
