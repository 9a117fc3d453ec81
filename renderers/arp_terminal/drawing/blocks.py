"""Layout of drawings: stacked, after a rail, after a marker, side by side.

Each drawing gets the width that is left for it. Lines are not padded, so that text copied from the
terminal has no blanks at the ends of its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from arp_terminal.drawing.palette import PLAIN

EMPTY = Text("")


class HangingBlock:
    """A body after a marker: the marker is before the first line, blanks are before the others."""

    def __init__(
        self,
        marker: Text | str,
        body: RenderableType,
        *,
        repeat: bool = False,
        style: Style = PLAIN,
    ) -> None:
        self._marker = marker if isinstance(marker, Text) else Text(marker, style=style)
        self._marker.no_wrap = True
        self._body = body
        self._repeat = repeat

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the lines of the body, each after the marker or its space."""
        indent = cell_len(self._marker.plain)
        inner = options.update_width(max(1, options.max_width - indent))
        marker = console.render_lines(self._marker, options, pad=False)[0]
        room = marker if self._repeat else [Segment(" " * indent)]
        for number, drawn in enumerate(console.render_lines(self._body, inner, pad=False)):
            yield from marker if number == 0 else room
            yield from drawn
            yield Segment.line()


def rail(body: RenderableType, sign: str, style: Style) -> RenderableType:
    """Put a coloured line before all lines of `body`."""
    return HangingBlock(f"{sign} ", body, repeat=True, style=style)


def indented(body: RenderableType, cells: int = 2) -> RenderableType:
    """Move `body` to the right."""
    return HangingBlock(" " * cells, body, repeat=True)


class ColumnBlock:
    """Drawings side by side, in columns of given widths with two cells between."""

    GAP = 2

    def __init__(self, bodies: Sequence[RenderableType], widths: Sequence[int]) -> None:
        self._bodies = bodies
        self._widths = widths

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the lines of all columns; shorter columns are filled with blanks."""
        drawn = [
            console.render_lines(body, options.update_width(width), pad=False)
            for body, width in zip(self._bodies, self._widths, strict=True)
        ]
        for row in range(max(map(len, drawn), default=0)):
            for place, (column, width) in enumerate(zip(drawn, self._widths, strict=True)):
                cells = column[row] if row < len(column) else []
                yield from cells
                if place < len(drawn) - 1:
                    used = sum(segment.cell_length for segment in cells)
                    yield Segment(" " * (width - used + self.GAP))
            yield Segment.line()


class FittedBlock:
    """A drawing that is made when its width is known."""

    def __init__(self, draw: Callable[[int], RenderableType]) -> None:
        self._draw = draw

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the drawing for this width."""
        yield self._draw(options.max_width)


def stack(bodies: Iterable[RenderableType | None], gap: int = 0) -> RenderableType:
    """Put drawings below each other with `gap` empty lines between; `None` is left out."""
    placed: list[RenderableType] = []
    for body in bodies:
        if body is None:
            continue
        if placed:
            placed.extend([EMPTY] * gap)
        placed.append(body)
    return Group(*placed)


def cut_apart(names: Sequence[str], widths: Sequence[int], unicode: bool) -> list[str]:
    """Return names, each cut to its width so that different names stay different.

    Names with the same beginning lose their middle instead of their end. If they are still equal,
    they get numbers.
    """
    shown = [
        cut(Text(name), width, unicode).plain for name, width in zip(names, widths, strict=True)
    ]
    for attempt in (_middle_cut, _numbered_cut):
        meant: dict[str, set[str]] = {}
        for name, one in zip(names, shown, strict=True):
            meant.setdefault(one, set()).add(name)
        for place, (name, width) in enumerate(zip(names, widths, strict=True)):
            if len(meant[shown[place]]) > 1 and cell_len(name) > width:
                shown[place] = attempt(name, width, place + 1, unicode)
    return shown


def _middle_cut(name: str, width: int, number: int, unicode: bool) -> str:
    sign = "…" if unicode else "~"
    room = width - cell_len(sign)
    if room < 2:
        return cut(Text(name), width, unicode).plain
    end = ""
    for char in reversed(name):
        if cell_len(char + end) > (room + 1) * 2 // 3:
            break
        end = char + end
    return set_cell_size(name, room - cell_len(end)).rstrip() + sign + end.lstrip()


def _numbered_cut(name: str, width: int, number: int, unicode: bool) -> str:
    mark = f"#{number}"
    head = cut(Text(name), max(0, width - len(mark)), unicode).plain
    return (head + mark)[:width] if cell_len(head) else mark[:width]


def cut(text: Text, width: int, unicode: bool = True) -> Text:
    """Return a line of at most `width` cells; a longer line ends with an ellipsis."""
    if cell_len(text.plain) <= width:
        return text
    shorter = text.copy()
    sign = "…" if unicode else "~"
    shorter.truncate(max(0, width - 1), overflow="crop")
    shorter.append(sign)
    return shorter
