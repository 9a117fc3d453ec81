"""Stock phrases in docstrings and comments, by package.

A stock phrase hides the subject of a sentence or uses a verb that is not a term of the field. Some
are right in some sentences: the count is a signal.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tools.figures.source import SourceFile, read_files

PHRASES = (
    r"of\s+which",
    r"one\s+that",
    r"ones\s+that",
    r"what\s+is\s+none",
    r"that\s+is\s+none",
    r"what\s+came\s+of",
    r"stands?",
    r"tells?",
    r"told",
    r"said",
    r"lets?\s+go",
    r"go(?:es)?\s+on",
    r"nobody",
    r"somebody",
    r"whose",
    r"as\s+which",
    r"by\s+which",
    r"in\s+which",
    r"to\s+which",
    r"for\s+which",
    r"anew",
    r"to\s+be\s+handed",
    r"handed\s+over",
    r"so\s+many",
    r"such\s+as\s+it",
)
"""Patterns of the phrases that count anywhere in a text."""

OPENINGS = (
    r"Of\b",
    r"By\b",
    r"As\s+`",
    r"Which\b",
    r"Whose\b",
    r"Where\b",
    r"Take\b",
    r"Tell\b",
    r"Let\b",
    r"See\s+the\s+class\b",
    r"Gives\b",
)
"""Patterns of the phrases that count at the start of a text only."""

_ANYWHERE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
_AT_START = re.compile(rf"\s*(?:{'|'.join(OPENINGS)})")

_TYPESCRIPT = re.compile(
    r"""(?P<doc>/\*.*?\*/)
    |(?P<line>//[^\n]*(?:\n[ \t]*//[^\n]*)*)
    |"(?:\\.|[^"\\\n])*"
    |'(?:\\.|[^'\\\n])*'
    |`(?:\\.|[^`\\])*`
    |(?:(?<=[=(,:\[!&|?{};])|(?<=[=(,:\[!&|?{};][ ])|(?<=return[ ]))
      /(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/""",
    re.DOTALL | re.VERBOSE,
)
"""Comments of TypeScript and CSS; strings, templates and regular expressions are passed over."""

PYTHON_FOLDERS = ("arp", "renderers/arp_terminal")
"""Folders whose docstrings have ceilings."""

CEILINGS = "tests/structure/wording.json"
"""File of the ceilings, from the root."""


class Hit(NamedTuple):
    """A stock phrase in a file."""

    file: str
    line: int
    phrase: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.phrase!r}"


def phrases_in(text: str) -> list[tuple[int, str]]:
    """Return offset and words of each stock phrase in a docstring or comment."""
    found = []
    opening = _AT_START.match(text)
    if opening is not None:
        phrase = opening.group().lstrip()
        found.append((opening.end() - len(phrase), phrase))
    begin = 0 if opening is None else opening.end()
    found += [(one.start(), one.group()) for one in _ANYWHERE.finditer(text, begin)]
    return [(offset, " ".join(phrase.split())) for offset, phrase in found]


def docstring_hits(file: SourceFile) -> list[Hit]:
    """Return the phrases in docstrings and in strings below fields, by line."""
    hits = []
    for node in file.documentation:
        text = str(node.value)
        for offset, phrase in phrases_in(text):
            hits.append(Hit(file.name, node.lineno + text.count("\n", 0, offset), phrase))
    return sorted(hits)


def comment_hits(file: SourceFile) -> list[Hit]:
    """Return the phrases in the `#` comments of a Python file, each comment line by itself."""
    return [
        Hit(file.name, line, phrase)
        for line, comment in file.comments
        for _, phrase in phrases_in(comment.lstrip("# "))
    ]


def typescript_comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each comment; `//` lines below each other are one comment."""
    for match in _TYPESCRIPT.finditer(text):
        comment = match["doc"] or match["line"]
        if comment:
            plain = re.sub(r"^[ \t]*(?://+|/\*+|\*+/|\*+)[ \t]?|\*/$", "", comment, flags=re.M)
            yield text.count("\n", 0, match.start()) + 1, plain


def typescript_hits(file: SourceFile) -> list[Hit]:
    """Return the phrases in the comments of a TypeScript or CSS file."""
    return [
        Hit(file.name, line + comment.count("\n", 0, offset), phrase)
        for line, comment in typescript_comments(file.text)
        for offset, phrase in phrases_in(comment)
    ]


def markdown_hits(file: SourceFile) -> list[Hit]:
    """Return the phrases in the prose of a Markdown file; blocks of code are not prose."""
    blocks = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    prose = blocks.sub(lambda block: "\n" * block.group().count("\n"), file.text)
    return [
        Hit(file.name, prose.count("\n", 0, one.start()) + 1, " ".join(one.group().split()))
        for one in _ANYWHERE.finditer(prose)
    ]


def package_of(name: str) -> str:
    """Return the top-level package of a Python file: `arp/hub`, `arp/app.py`."""
    parts = name.split("/")
    return "/".join(parts[:2])


def docstring_hits_by_package(root: Path) -> dict[str, list[Hit]]:
    """Return the phrases in docstrings of each package, in files that people write.

    A package without any has an empty list.
    """
    found: dict[str, list[Hit]] = {}
    for folder in PYTHON_FOLDERS:
        for file in read_files(root, folder, ".py"):
            if not file.is_generated:
                found.setdefault(package_of(file.name), []).extend(docstring_hits(file))
    return found


def counts(hits: Mapping[str, Iterable[Hit]]) -> dict[str, int]:
    """Return how many phrases each package has, by name."""
    return {name: sum(1 for _ in some) for name, some in sorted(hits.items())}


def most_frequent(hits: Iterable[Hit], most: int) -> list[tuple[str, int]]:
    """Return the most frequent phrases with their numbers."""
    return Counter(hit.phrase.lower() for hit in hits).most_common(most)


def lowered(ceilings: Mapping[str, int] | None, now: Mapping[str, int]) -> dict[str, int]:
    """Return new ceilings: never above the old ones, and without packages that are gone.

    Args:
        ceilings: The committed ceilings; `None` if there are none yet. A package that is not in
            them has ceiling 0.
        now: The present counts.
    """
    if ceilings is None:
        return dict(now)
    return {name: min(count, ceilings.get(name, 0)) for name, count in now.items()}


def read_ceilings(root: Path) -> dict[str, int] | None:
    """Return the committed ceilings by package, or `None` if there is no such file."""
    path = root / CEILINGS
    if not path.exists():
        return None
    ceilings: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))
    return ceilings


def write_ceilings(root: Path, ceilings: Mapping[str, int]) -> None:
    """Write the ceilings, one package on a line."""
    (root / CEILINGS).write_text(json.dumps(dict(ceilings), indent=1) + "\n", encoding="utf-8")


def excess(ceilings: Mapping[str, int], hits: Mapping[str, list[Hit]]) -> list[str]:
    """Return a message for each package above its ceiling, with the place of each phrase."""
    messages = []
    for name, some in hits.items():
        ceiling = ceilings.get(name, 0)
        if len(some) > ceiling:
            places = "\n  ".join(map(str, some))
            messages.append(
                f"{name} has {len(some)} stock phrases in docstrings; its ceiling is {ceiling}. "
                f"The count may only fall: reword the sentence that is new.\n  {places}"
            )
    return messages
