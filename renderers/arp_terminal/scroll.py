"""The transcript as lines: those that are printed for good, and those that are redrawn."""

from __future__ import annotations

from collections.abc import Iterable

from arp_terminal.entries import Entry
from arp_terminal.options import Options
from arp_terminal.painter import Painter
from arp_terminal.transcript import Transcript


class Scroll:
    """Turns a transcript into lines, each printed once."""

    def __init__(self, transcript: Transcript, options: Options) -> None:
        self.transcript = transcript
        self.tail: list[str] = []
        """The lines of what is live, as of the last `advance`."""
        self._painter = Painter(options)
        self._drawn: dict[tuple[str, str, str | int, int], tuple[object, list[str]]] = {}
        self._last_kind: str | None = None

    @property
    def options(self) -> Options:
        """How it is drawn."""
        return self._painter.options

    def resize(self, options: Options) -> None:
        """Redraw what is live with these options; what is printed stays as it is."""
        self._painter = Painter(options)
        self._drawn.clear()

    def advance(self, room: int | None = None, spinner: str = "") -> list[str]:
        """Return the lines to print now, and set `tail`.

        Args:
            room: Lines that the tail may have; what does not fit is printed, or cut from above
                while it grows. `None` = without bound.
            spinner: The sign of what runs.
        """
        entries = self.transcript.entries(spinner)
        printed: list[str] = []
        while entries and entries[0].is_fixed:
            printed += self._print(entries.pop(0))
        while room is not None and entries and not entries[0].growing:
            if len(self._tail(entries)) <= room:
                break
            printed += self._print(entries.pop(0))
        self.tail = self._tail(entries)
        if room is not None and len(self.tail) > room:
            self.tail = self.tail[len(self.tail) - room :]
        self._forget(entries)
        return printed

    def finish(self) -> list[str]:
        """Return the lines of all that is left, as it is now; the tail is empty afterwards."""
        printed = self.advance()
        for entry in self.transcript.entries():
            printed += self._print(entry)
        self.tail = []
        return printed

    def note(self, lines: Iterable[str]) -> list[str]:
        """Return the lines of a note, with an empty line before it where that is due."""
        found = list(lines)
        return self._spaced("note", found, tight=self._last_kind == "note")

    def paint(self, drawing: object) -> list[str]:
        """Return the lines of any drawing."""
        return self._painter.lines(drawing)  # type: ignore[arg-type]  # a renderable

    def _print(self, entry: Entry) -> list[str]:
        lines = self._lines(entry)
        self.transcript.printed(entry)
        self._drawn.pop(entry.key, None)
        return self._spaced(entry.kind, lines, tight=entry.tight)

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
                tail += [""] if self._gap(before, entry.kind, tight=entry.tight) else []
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
        self._drawn[entry.key] = (entry.version, lines)
        return lines

    def _forget(self, entries: list[Entry]) -> None:
        """Drop drawings of what is no longer live."""
        keys = {entry.key for entry in entries}
        for key in self._drawn.keys() - keys:
            del self._drawn[key]
