"""`cause_of`: the line of a program's last output that says why it ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b")
"""Last line of a Python traceback, with the name of the exception."""
_NAMED: Final = re.compile(
    r"\b(?:fatal|panic(?:ked)?|uncaught|unhandled)\b|\w*(?:error|exception)\b\s*(?:\[[^\]]*\])?:|^error\b",
    re.IGNORECASE,
)
"""A line that is marked as an error."""
_WORDS_OF_ERRORS: Final = re.compile(
    r"\b(?:cannot|can't|could not|couldn't|denied|failed|failure|invalid|missing|no such|not found|"
    r"not logged in|refused|unable|unexpected|unknown|unrecognized|unsupported)\b",
    re.IGNORECASE,
)
"""A line with words of error messages; used only if no line is marked as an error."""
_AROUND: Final = re.compile(r"at\s|File \"|note:|\[?caused by|tip:|hint:|usage:", re.IGNORECASE)
"""A line of a stack trace, a hint or a usage text."""
_ARGUMENT: Final = re.compile(
    r"\b(?:unknown|unrecognized|unexpected|invalid|no such)\b.{0,30}"
    r"\b(?:argument|option|flag|command|subcommand)s?\b",
    re.IGNORECASE,
)


def cause_of(lines: Sequence[str]) -> str:
    """Return the line that names the cause of a failure.

    The line is not always the last one: a stack trace, a hint or a usage text may follow. After a
    Python traceback, the last exception counts, because it ended the program. In other outputs the
    first error counts, because later ones are often its consequences.

    Args:
        lines: Last lines of the program's output.

    Returns:
        The line; the last line if no line looks like an error; empty if there are no lines.
    """
    if not lines:
        return ""
    if _TRACEBACK in lines:
        raised = [one for one in lines if _RAISED.match(one)]
        if raised:
            return raised[-1]
    plain = [one for one in lines if not _AROUND.match(one)]
    for pattern in (_NAMED, _WORDS_OF_ERRORS):
        found = next((place for place, one in enumerate(plain) if pattern.search(one)), None)
        if found is not None:
            return _with_next(plain[found:])
    return lines[-1]


def _with_next(lines: Sequence[str]) -> str:
    """Return the first line; add the next one if the first only announces it (`Error:`)."""
    first, *rest = lines
    is_announcing = first.endswith(":") and len(first) < 200
    return f"{first} {rest[0]}" if is_announcing and rest else first


def is_about_arguments(line: str) -> bool:
    """Return whether a line is about an argument that the program does not know."""
    return _ARGUMENT.search(line) is not None
