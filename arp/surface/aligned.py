"""Tables in monospaced text, with correct widths of wide and combining characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from arp.protocol.components import Cell
from arp.protocol.exact_integers import is_large_integer

GAP = "  "
"""Space between two columns."""

_PLAIN_NUMBER = re.compile(r"[-+]?[0-9][0-9,]*(\.?[0-9]*)")


def cell_text(value: Cell) -> str:
    """Return a cell as one line: numbers in full, `None` as nothing, line breaks as spaces."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return " ".join(value.split())
    return repr(value)


def width(text: str) -> int:
    """Return the number of terminal columns of a line of text."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """Return a line filled with spaces on its right side, or with `right` on its left side."""
    spaces = " " * (columns - width(text))
    return spaces + text if right else text + spaces


def aligned(headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> list[str]:
    """Return a table as lines: the headers, a rule, then one line per row.

    Numbers in a column are aligned at their decimal points. Rows may be longer or shorter than the
    headers. If all headers are empty, the headers and the rule are left out.
    """
    body = [list(row) for row in rows]
    count = max([len(headers), *map(len, body)])
    numeric = [_is_numeric([row[n] for row in body if n < len(row)]) for n in range(count)]
    lines = [[*map(cell_text, row), *[""] * (count - len(row))] for row in body]
    for n in (n for n in range(count) if numeric[n]):
        for line, number in zip(lines, at_one_point([line[n] for line in lines]), strict=True):
            line[n] = number
    if any(headers):
        lines.insert(0, [*map(cell_text, headers), *[""] * (count - len(headers))])
    widths = [max((width(line[n]) for line in lines), default=0) for n in range(count)]
    if any(headers):
        lines.insert(1, ["-" * columns for columns in widths])
    return [
        GAP.join(
            padded(text, columns, right=right)
            for text, columns, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    ]


def at_one_point(numbers: Sequence[str]) -> list[str]:
    """Return numbers with spaces after them, so that right-aligned decimal points line up.

    Numbers with an exponent and other texts are returned unchanged.
    """
    tails = [_tail(number) for number in numbers]
    most = max((tail for tail in tails if tail is not None), default=0)
    return [
        number if tail is None else number + " " * (most - tail)
        for number, tail in zip(numbers, tails, strict=True)
    ]


def _tail(number: str) -> int | None:
    """Return the number of characters from the decimal point on; `None` if not a plain number."""
    found = _PLAIN_NUMBER.fullmatch(number)
    return None if found is None else len(found[1])


def _is_numeric(column: Sequence[Cell]) -> bool:
    numbers = [value for value in column if value is not None]
    return bool(numbers) and all(
        type(value) in (int, float) or is_large_integer(value) for value in numbers
    )


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
