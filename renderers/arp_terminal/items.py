"""What a turn is told in: items as they are kept, entries as they are handed out to be printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from rich.console import RenderableType

from arp_terminal.options import Options

Kind = Literal["input", "thought", "tool", "text", "component", "answer", "update", "error", "end"]


class Item(Struct):
    """One thing that a turn tells, at its place."""

    kind: Kind
    ref: str | int = 0
    """The id of a component or text part, or the number of an input, tool or error of the turn."""
    start: int = 0
    """Of a piece of text: its first character in the part."""
    end: int | None = None
    """Of a piece of text: behind its last character; `None` while it may grow."""
    tight: bool = False
    """Of a piece of text: it goes on in a list without an empty line before it."""
    number: int | None = None
    """Of a piece of text: the number of the list item that it begins with."""
    fence: str = ""
    """Of a piece of text that begins inside of a code block: the line that opened that."""


class Entry(Struct, frozen=True):
    """One item as it is to be drawn now."""

    log: str
    """Which turn or surface it belongs to."""
    kind: Kind
    ref: str | int
    start: int
    version: object
    """Equal versions of one entry look equal."""
    draw: Callable[[Options], RenderableType]
    settled: bool
    """Nothing of it will change (or only as an update)."""
    growing: bool = False
    """More of it is coming; it cannot be printed before that."""
    tight: bool = False
    """No empty line before it."""

    asks: bool = False
    """It is a question that is open."""

    @property
    def key(self) -> tuple[str, str, str | int, int]:
        """Tells entries apart."""
        return (self.log, self.kind, self.ref, self.start)
