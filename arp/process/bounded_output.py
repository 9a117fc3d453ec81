"""`BoundedOutput`: the beginning and the end of an output of any length."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

MAX_LINE: Final = 2**20
"""Longest line that `on_line` receives, in bytes; a longer one is cut."""
MAX_LINES: Final = 100_000
"""Maximum number of lines for `on_line`; millions of lines would block the event loop."""

_OBJECT: Final = re.compile(rb"^[ \t]*\{.*", re.MULTILINE)
"""Line that begins a JSON object."""

OnLine = Callable[[bytes], None]


class BoundedOutput:
    """Beginning and end of an output.

    Args:
        limit: Number of bytes that are kept.
        on_line: Receives each line that begins with `{`, without its line end.
    """

    def __init__(self, limit: int, on_line: OnLine | None = None) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._line = bytearray()
        self._on_line = on_line
        self._lines_left = MAX_LINES
        self.written = 0
        """Number of bytes received."""

    def add(self, data: bytes) -> None:
        """Append bytes of the output."""
        self.written += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            rest = data[room:]
        else:
            rest = data
        self._tail += rest
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]
        if self._on_line is not None and self._lines_left > 0:
            self._split_lines(data)

    def text(self) -> str:
        """Return the kept text, with a line in the middle that says how much is missing."""
        tail = bytes(self._tail[-self._half :]) if self._half else b""
        dropped = self.written - len(self._head) - len(tail)
        middle = f"\n[… {dropped} bytes left out …]\n".encode() if dropped > 0 else b""
        return (bytes(self._head) + middle + tail).decode(errors="replace")

    def end(self) -> None:
        """Emit the last line, if it has no line end."""
        self._emit(bytes(self._line))
        self._line.clear()

    def _split_lines(self, data: bytes) -> None:
        first, ends, rest = data.partition(b"\n")
        if len(self._line) < MAX_LINE:
            self._line += first
        if not ends:
            return
        self._emit(bytes(self._line))
        lines, _, last = rest.rpartition(b"\n")
        self._line = bytearray(last)
        # A regular expression skips other lines much faster than a loop in Python.
        for line in _OBJECT.finditer(lines):
            self._emit(line.group())

    def _emit(self, line: bytes) -> None:
        if self._on_line is not None and self._lines_left > 0 and _OBJECT.match(line):
            self._lines_left -= 1
            self._on_line(line[:MAX_LINE])
