"""The transcript as lines: printed lines, which stay, and the tail, which is redrawn.

Theory of operation. `advance` prints the entries that are final and draws the others as the tail.
A tail that does not fit into the terminal is printed early from the top, because lines above the
window cannot be redrawn. If a smaller window pushes part of the tail out of sight, `leave` counts
all of it as printed. For text that still grows, `_left` then remembers which characters are
printed, so that the next drawing begins after them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct
from rich.text import Text

from arp_terminal.drawing.blocks import indented
from arp_terminal.log.entries import Entry
from arp_terminal.log.transcript import Transcript
from arp_terminal.options import Options
from arp_terminal.painter import Painter

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_TABLE = re.compile(r"[|─━│┃]")
"""Characters that are drawn for tables; the next row may change the width of a whole table."""
_CONTINUED = re.compile(r"^\s*[↪>] ")
"""Sign before the rest of a line of code that was too long; its place depends on the width."""
_MARK = re.compile(r"[*_`~<\[]")
"""Characters in growing text that may begin a mark that is not closed yet."""


class Tail(Struct, frozen=True):
    """The live entries as one `advance` has drawn them."""

    lines: tuple[str, ...] = ()
    entries: tuple[tuple[Entry, tuple[str, ...]], ...] = ()
    """Each entry with its own lines."""
    is_whole: bool = True
    """Whether nothing was cut from the top."""


class Scroll:
    """Turns a transcript into lines, each printed once."""

    def __init__(self, transcript: Transcript, options: Options) -> None:
        self.transcript = transcript
        self.live = Tail()
        """The tail of the last `advance`."""
        self._painter = Painter(options)
        self._drawn: dict[tuple[str, str, str | int, int], tuple[object, list[str]]] = {}
        self._last_kind: str | None = None
        self._left: dict[tuple[str, str, str | int, int], str] = {}
        """Characters of growing text that are printed already; the text after them is live."""

    @property
    def tail(self) -> list[str]:
        """The lines of the tail of the last `advance`."""
        return list(self.live.lines)

    @property
    def options(self) -> Options:
        """How to draw."""
        return self._painter.options

    def resize(self, options: Options) -> None:
        """Redraw the tail with these options from now on; printed lines stay as they are."""
        self._painter = Painter(options)
        self._drawn.clear()

    def advance(self, room: int | None = None, spinner: str = "") -> list[str]:
        """Return the lines to print now, and set `tail`.

        Args:
            room: Maximum number of lines of the tail; `None` means no limit. Entries that do not
                fit are printed. Growing text is printed except for its last lines; while its first
                lines may still change, they are cut from the tail instead.
            spinner: Current sign of the spinner.
        """
        entries = self.transcript.entries(spinner)
        printed: list[str] = []
        while entries and entries[0].is_fixed:
            printed += self._print(entries.pop(0))
        # Lines above the window cannot be redrawn: terminals would keep a stale copy of each frame.
        # So entries at the top are printed early, although they may still change.
        while room is not None and entries and not entries[0].growing:
            if len(self._tail(entries)) <= room:
                break
            printed += self._print(entries.pop(0))
        if room is not None and entries and len(self._tail(entries)) > room:
            printed += self._print_top(entries[0], room // 2)
        tail = self._tail(entries)
        is_whole = room is None or len(tail) <= room
        lines = tail if is_whole else tail[len(tail) - (room or 0) :]
        drawn = tuple((entry, tuple(self._lines(entry))) for entry in entries)
        self.live = Tail(tuple(lines), drawn, is_whole)
        self._forget(entries)
        return printed

    def leave(self, tail: Tail) -> bool:
        """Count a tail as printed where it was drawn; only what follows is drawn from now on.

        Growing text continues after its characters in the tail. If its beginning changes later,
        such as a word that becomes bold, all of it is printed again.

        Args:
            tail: The tail that is on the screen.

        Returns:
            `False` if part of it cannot stay, because it was cut from the top, has changed since,
            or will change. Nothing has changed then.
        """
        entries = self.transcript.entries()
        if not tail.is_whole or len(entries) < len(tail.entries):
            return False
        last = len(tail.entries) - 1
        for place, ((drawn, lines), entry) in enumerate(zip(tail.entries, entries, strict=False)):
            # A drawing that has changed since, or a table that may get other widths, must not stay.
            # The terminal would show both the old and the new drawing.
            is_same = drawn.version == entry.version and not drawn.growing
            is_text = drawn.kind == "text" and (drawn.is_code or not _TABLE.search("".join(lines)))
            is_open = is_text and place == last
            if drawn.key != entry.key or not (is_same or is_open):
                return False
        for drawn, lines in tail.entries:
            if drawn.growing:
                self._left[drawn.key] = self._left.get(drawn.key, "") + _characters(drawn, lines)
            else:
                self.transcript.printed(drawn)
            self._last_kind = drawn.kind if lines else self._last_kind
        self._drawn.clear()
        self.live = Tail()
        return True

    def finish(self) -> list[str]:
        """Return the lines of everything that is not printed; the tail is empty afterwards."""
        printed = self.advance()
        for entry in self.transcript.entries():
            printed += self._print(entry)
        self.live = Tail()
        return printed

    def note(self, lines: Iterable[str]) -> list[str]:
        """Return the lines of a note, after an empty line unless it follows another note."""
        found = list(lines)
        return self._spaced("note", found, tight=self._last_kind == "note")

    def paint(self, drawing: object) -> list[str]:
        """Return the lines of any drawing."""
        return self._painter.lines(drawing)  # type: ignore[arg-type]  # a renderable

    def _print(self, entry: Entry) -> list[str]:
        lines, tight = self._lines(entry), self._is_tight(entry)
        self.transcript.printed(entry)
        self._drawn.pop(entry.key, None)
        self._left.pop(entry.key, None)
        return self._spaced(entry.kind, lines, tight=tight)

    def _print_top(self, entry: Entry, rest: int) -> list[str]:
        """Print the first lines of growing text if they cannot change any more."""
        lines = self._lines(entry)
        top = lines[: max(0, len(lines) - max(1, rest))]
        while top and not top[-1]:
            top.pop()
        shown = _characters(entry, top)
        # A table may get other widths, and an open mark may turn the words after it bold.
        is_sure = entry.is_code or not (_TABLE.search("".join(lines)) or _MARK.search(shown))
        if not top or entry.kind != "text" or not is_sure:
            return []
        tight = self._is_tight(entry)
        self._left[entry.key] = self._left.get(entry.key, "") + shown
        del self._drawn[entry.key]
        return self._spaced(entry.kind, top, tight=tight)

    def _is_tight(self, entry: Entry) -> bool:
        return entry.tight or entry.key in self._left

    def _spaced(self, kind: str, lines: list[str], *, tight: bool) -> list[str]:
        if not lines:
            return []
        gap = self._gap(self._last_kind, kind, tight=tight)
        self._last_kind = kind
        return ["", *lines] if gap else lines

    @staticmethod
    def _gap(before: str | None, kind: str, *, tight: bool) -> bool:
        both_tools = before == kind == "tool"
        # The name of an author is the first line of what they say.
        return before not in (None, "author") and not tight and not both_tools

    def _tail(self, entries: list[Entry]) -> list[str]:
        tail: list[str] = []
        before = self._last_kind
        for entry in entries:
            lines = self._lines(entry)
            if lines:
                tight = self._is_tight(entry)
                tail += [""] if self._gap(before, entry.kind, tight=tight) else []
                tail += lines
                before = entry.kind
        return tail

    def _lines(self, entry: Entry) -> list[str]:
        known = self._drawn.get(entry.key)
        if known is not None and known[0] == entry.version:
            return known[1]
        lines = self._painter.lines(entry.draw(self._painter.options))
        while lines and not lines[-1]:
            lines.pop()
        if entry.key in self._left:
            lines = self._after(lines, entry)
        self._drawn[entry.key] = (entry.version, lines)
        return lines

    def _after(self, lines: list[str], entry: Entry) -> list[str]:
        """Return the lines after the characters that are printed already; all if they differ."""
        left, seen = self._left[entry.key], 0
        for number, line in enumerate(lines):
            found = _characters(entry, [line])
            same = left[seen : seen + len(found)]
            if not found.startswith(same):
                break  # the beginning has changed: to continue after it would lose words
            seen += len(same)
            if seen == len(left):
                if same or not found:
                    return [*self._end_of(line, len(found) - len(same)), *lines[number + 1 :]]
                return lines[number:]
        del self._left[entry.key]
        return lines

    def _end_of(self, line: str, count: int) -> list[str]:
        """Return the last characters of a line as a line with the same indent."""
        if not count:
            return []
        text = Text.from_ansi(line)
        plain = text.plain
        start = len(plain)
        while count:
            start -= 1
            count -= not plain[start].isspace()
        indent = len(plain) - len(plain.lstrip())
        return self._painter.lines(indented(text[start:], indent))

    def _forget(self, entries: list[Entry]) -> None:
        """Drop the drawings of entries that are no longer live."""
        keys = {entry.key for entry in entries}
        for known in (self._drawn, self._left):
            for key in known.keys() - keys:
                del known[key]


def _characters(entry: Entry, lines: Iterable[str]) -> str:
    """Return the characters that lines of an entry show, without those that depend on the width."""
    plain = [_STYLE.sub("", line) for line in lines]
    if entry.is_code:
        plain = [_CONTINUED.sub("", line) for line in plain]
    return "".join("".join(line.split()) for line in plain)
