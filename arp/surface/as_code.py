"""What a diff becomes where diffs are not known: a unified diff in a code block."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import msgspec

from arp.protocol.components import DiffProps
from arp.protocol.json_value import JsonObject

CONTEXT_LINES = 3

MAX_COMPARED = 1_000_000
"""Most lines before × lines after, those that are equal at both ends not counted: comparing may
take that many steps. Beyond it, all that is between the ends is shown as replaced."""

NO_NEWLINE = "\\ No newline at end of file"


def diff_as_code(props: JsonObject) -> JsonObject:
    """Return the props of a `code-block` in the language `diff`."""
    diff = msgspec.convert(props, DiffProps)
    code = "\n".join(
        unified(diff.before, diff.after, diff.before_label or "before", diff.after_label or "after")
    )
    block: JsonObject = {"language": "diff", "code": code}
    return block if diff.title is None else {"title": diff.title, **block}


def unified(before: str, after: str, before_label: str, after_label: str) -> list[str]:
    """Return the lines of a unified diff, headers included; say so if nothing differs."""
    old, new = _lines(before), _lines(after)
    if old and new and before.endswith("\n") != after.endswith("\n"):
        unended = new if before.endswith("\n") else old
        unended[-1] += f"\n{NO_NEWLINE}"
    if old == new:
        return [f"--- {before_label}", f"+++ {after_label}", "(no difference)"]
    head = _equal_lines(old, new)
    tail = _equal_lines(old[head:][::-1], new[head:][::-1])
    if (len(old) - head - tail) * (len(new) - head - tail) > MAX_COMPARED:
        hunk = _replaced(old, new, head, tail)
        return [f"--- {before_label}", f"+++ {after_label}", *hunk]
    return list(
        difflib.unified_diff(old, new, before_label, after_label, n=CONTEXT_LINES, lineterm="")
    )


def _replaced(old: Sequence[str], new: Sequence[str], head: int, tail: int) -> list[str]:
    """Return the one hunk that replaces all between the equal lines at both ends."""
    start = max(0, head - CONTEXT_LINES)
    context = min(tail, CONTEXT_LINES)
    old_count, new_count = (len(lines) - tail + context - start for lines in (old, new))
    return [
        f"@@ -{start + 1},{old_count} +{start + 1},{new_count} @@",
        *(f" {line}" for line in old[start:head]),
        *(f"-{line}" for line in old[head : len(old) - tail]),
        *(f"+{line}" for line in new[head : len(new) - tail]),
        *(f" {line}" for line in old[len(old) - tail :][:context]),
    ]


def _equal_lines(old: Sequence[str], new: Sequence[str]) -> int:
    """Count the lines that are equal at the beginning of both."""
    return next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
