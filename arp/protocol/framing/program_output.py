"""`printed`: the output of a program as its last screen shows it.

Programs write to a terminal: colours, progress that returns to the beginning of a line, links. What
they print is read here, by a text and its cursor, so that screens of any kind show the words.
Nothing else may be read like this, above all no input that waits for a permission: a line can hide
what was written before it.

Source: ECMA-48. `schemas/cases/program_output.json` has the cases for all renderers.
"""

from __future__ import annotations

import re
from typing import Final

MOST_COLUMNS: Final = 200
"""A cursor that is moved goes no further to the right than the text or this column."""
LONGEST_ERASED: Final = 1_000
"""Longer lines are not filled with blanks: the cost of output stays proportional to its length."""

_WANTS_READING = re.compile("[\x00\x07\x08\x0e\x0f\r\x1b\x90\x98\x9b\x9d-\x9f]")
_STEP = re.compile(
    # Strings of control: OSC, DCS, SOS, PM, APC. One that does not end goes to the end of its line.
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])"
    r"(?:[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c|(?=\n)|\Z)|[^\n]*)"
    r"|(?:\x1b\[|\x9b)(?P<numbers>[0-?]*)[ -/]*(?P<final>[@-~]?)"
    r"|\x1b[ -/]*[0-~]?"
    r"|(?P<sign>[\n\r\b])"
    r"|[\x00\x07\x0e\x0f]"
    r"|(?P<text>[^\x00\x07\x08\x0e\x0f\n\r\x1b\x90\x98\x9b\x9d-\x9f]+)"
)


def printed(text: str) -> str:
    r"""Return what is left of the output of a program when all of it is printed.

    Colours and other sequences are dropped. `\b` and moves of the cursor are obeyed. A `\r` begins
    the line again: what is written next replaces all of it, since programs that show progress
    leave the end of a longer line. Other control characters stay: `sanitise` makes them visible.
    """
    if not _WANTS_READING.search(text):
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
    """Lines of characters, and the place where the next one is written."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = [[]]
        self._row = 0
        self._column = 0
        self._is_returned = False
        """Whether nothing but a colour followed the last carriage return."""

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
        """Obey a control sequence; one that is not known changes nothing."""
        self._is_returned = self._is_returned and final == "m"
        first = numbers.partition(";")[0]
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
        """Erase the line after the cursor (0), up to it (1), or whole (2)."""
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
