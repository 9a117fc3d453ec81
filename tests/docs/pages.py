"""The pages of the docs, cut into what tests look at: blocks of code, links, headings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [README, *DOCS]

_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^(#+) +(.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:href|src)=\"([^\"]+)\"")


READ: set[str] = set()
"""Blocks whose code a test has read since this was cleared; see `conftest.py`."""


class Block(NamedTuple):
    """One fenced block."""

    page: str
    line: int
    language: str
    text: str

    @property
    def code(self) -> str:
        """What stands in it; whoever runs or checks a block reads it here."""
        READ.add(str(self))
        return self.text

    def with_code(self, code: str) -> Block:
        """Return the block with other code in it, such as another address."""
        return self._replace(text=code)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def text_of(name: str) -> str:
    """Return a page by its name."""
    return next(page for page in PAGES if page.name == name).read_text(encoding="utf-8")


def blocks(*languages: str, page: str | None = None) -> list[Block]:
    """Gives every block of some languages, in order; of one page or of all."""
    return [
        Block(path.name, text.count("\n", 0, found.start()) + 1, found[1], found[2])
        for path in PAGES
        if page in (None, path.name)
        for text in [path.read_text(encoding="utf-8")]
        for found in _FENCE.finditer(text)
        if found[1] in languages
    ]


def section(name: str, heading: str) -> str:
    """Return what stands below a heading, up to the next one of its level or above."""
    text = text_of(name)
    for found in _HEADING.finditer(text):
        if found[2].strip() == heading:
            level = len(found[1])
            ends = re.search(rf"^#{{1,{level}}} ", text[found.end() :], re.MULTILINE)
            return text[found.end() : found.end() + ends.start()] if ends else text[found.end() :]
    raise AssertionError(f"{name} has no heading {heading!r}")


def without_code(text: str) -> str:
    """Return a page without its blocks of code."""
    return _FENCE.sub("", text)


def links(page: Path) -> list[str]:
    """Gives where a page leads."""
    return [a or b for a, b in _LINK.findall(without_code(page.read_text(encoding="utf-8")))]


def anchors(page: Path) -> set[str]:
    """Return the names by which links reach the headings of a page, as GitHub makes them."""
    found: set[str] = set()
    for _, title in _HEADING.findall(without_code(page.read_text(encoding="utf-8"))):
        plain = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        name, number = plain, 0
        while name in found:
            number += 1
            name = f"{plain}-{number}"
        found.add(name)
    return found
