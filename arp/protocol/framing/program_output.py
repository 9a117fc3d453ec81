"""`printed`: the output of a program as a terminal shows it at the end.

Programs write for a terminal: colours, links, progress bars that return to the beginning of a line.
This module applies their control characters to lines of text, so that any screen can show the
result. Do not use it for anything else, above all not for an input that waits for permission: a
line can hide what was written before it.

Source: ECMA-48. `schemas/cases/program_output.json` has the cases for all renderers.
"""

from __future__ import annotations

import re
from typing import Final

MOST_COLUMNS: Final = 200
"""Last column that a cursor movement can reach, unless the line is longer."""
LONGEST_ERASED: Final = 1_000
"""Longest line that is erased up to the cursor or completely, so that the cost stays linear."""

_NEEDS_INTERPRETING = re.compile("[\x00\x07\x08\x0e\x0f\r\x1b\x90\x98\x9b\x9d-\x9f]")
_STEP = re.compile(
    # Control strings: OSC, DCS, SOS, PM, APC. An unterminated one ends at the end of its line.
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])"
    r"(?:[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c|(?=\n)|\Z)|[^\n]*)"
    r"|(?:\x1b\[|\x9b)(?P<numbers>[0-?]*)[ -/]*(?P<final>[@-~]?)"
    r"|\x1b[ -/]*[0-~]?"
    r"|(?P<sign>[\n\r\b])"
    r"|[\x00\x07\x0e\x0f]"
    r"|(?P<text>[^\x00\x07\x08\x0e\x0f\n\r\x1b\x90\x98\x9b\x9d-\x9f]+)"
)


def printed(text: str) -> str:
    r"""Return the text that is on the screen after the whole output of a program.

    Colours and other sequences are removed. `\b` and cursor movements are applied. After a `\r`,
    the next text replaces the whole line, because programs that show progress leave the end of a
    longer line. Other control characters are kept: `sanitise` makes them visible.
    """
    if not _NEEDS_INTERPRETING.search(text):
        return text
    paper = _Paper()
    for step in _STEP.finditer(text.replace("\r\n", "\n")):
        if words := step["text"]:
            paper.write(words)
        elif sign := step["sign"]:
            paper.obey_sign(sign)
        elif final := step["final"]:
            paper.obey(final, step["numbers"])
    return "\n".join("".join(line) for line in paper.lines)


class _Paper:
    """Lines of characters, with a cursor."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = [[]]
        self._row = 0
        self._column = 0
        self._is_returned = False
        """Whether nothing but colours has followed the last carriage return."""

    def write(self, text: str) -> None:
        line = self.lines[self._row]
        if self._is_returned:
            line.clear()
            self._is_returned = False
        line.extend(" " * (self._column - len(line)))
        line[self._column : self._column + len(text)] = text
        self._column += len(text)

    def obey_sign(self, sign: str) -> None:
        if sign == "\n":
            self._row += 1
            if self._row == len(self.lines):
                self.lines.append([])
        self._column = max(0, self._column - 1) if sign == "\b" else 0
        self._is_returned = sign == "\r"

    def obey(self, final: str, numbers: str) -> None:
        """Apply a control sequence; ignore unknown ones."""
        self._is_returned = self._is_returned and final == "m"
        first = numbers.partition(";")[0]
        # Cut: `int` raises an error for a number of thousands of digits.
        given = int(first[:6]) if first.isdecimal() else 0
        count = max(1, given)
        match final:
            case "A" | "B":
                self._to_row(count if final == "B" else -count)
            case "E" | "F":
                self._to_row(count if final == "E" else -count)
                self._column = 0
            case "C":
                self._to_column(self._column + count)
            case "D":
                self._column = max(0, self._column - count)
            case "G" | "`":
                self._to_column(count - 1)
            case "K":
                self._erase(given)
            case "J" if given == 0:
                del self.lines[self._row + 1 :]
                self._erase(0)
            case _:
                pass

    def _to_row(self, by: int) -> None:
        self._row = min(max(0, self._row + by), len(self.lines) - 1)

    def _to_column(self, column: int) -> None:
        self._column = min(column, max(len(self.lines[self._row]), MOST_COLUMNS))

    def _erase(self, which: int) -> None:
        """Erase the line after the cursor (0), up to the cursor (1), or completely (2)."""
        line = self.lines[self._row]
        if which == 0:
            del line[self._column :]
        elif len(line) > LONGEST_ERASED:
            return
        elif which == 1:
            end = min(self._column + 1, len(line))
            line[:end] = " " * end
        elif which == 2:
            line.clear()
