"""Lines, areas and points on a canvas of dots; a cell is 2 × 4 dots in braille, or one mark."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby

from msgspec import Struct
from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from arp_terminal.drawing.blocks import stack
from arp_terminal.drawing.palette import DIM

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of the braille dots by row and column of a cell."""

MAX_POINTS = 20_000
"""Maximum number of points of a series that are drawn; from more, points are chosen evenly."""

CELLS_A_TICK = 9
"""Cells of the x axis for each number below it."""

SMALLEST_STEP = 1e-200
"""Minimum distance between two ticks; below it, floats have no digits left."""


class Plot(Struct, frozen=True):
    """The content and the options of a plot."""

    kind: str
    """`line`, `area` or `scatter`."""
    labels: list[str]
    """Names below the x axis, evenly spread."""
    lines: list[list[float | None]]
    """The y values of each series; `None` is a gap."""
    xs: list[list[float | None]]
    """The x values of each series; empty if its points are evenly spread."""
    styles: list[Style]
    marks: str
    """Signs of the series; empty for braille."""
    width: int
    rows: int
    unicode: bool
    name: Callable[[float], str]
    """Function that returns the text of a number at an axis."""
    x_title: str = ""
    """Title below the middle of the x axis."""
    y_title: str = ""
    """Title above the y axis."""


class Canvas:
    """Dots of several series; a cell has the style of the series that drew in it last."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.width, self.height = columns * 2, rows * 4
        self._bits = [[0] * columns for _ in range(rows)]
        self._owners = [[0] * columns for _ in range(rows)]

    def dot(self, x: int, y: int, owner: int) -> None:
        """Set one dot; `y` counts from the bottom. Dots outside the canvas are dropped."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return
        top = self.height - 1 - y
        self._bits[top // 4][x // 2] |= _DOTS[top % 4][x % 2]
        self._owners[top // 4][x // 2] = owner

    def stroke(self, start: tuple[int, int], end: tuple[int, int], owner: int) -> None:
        """Set the dots of a straight line."""
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        for step in range(steps + 1):
            x = round(start[0] + (end[0] - start[0]) * step / steps)
            y = round(start[1] + (end[1] - start[1]) * step / steps)
            self.dot(x, y, owner)

    def line(self, row: int, styles: list[Style], marks: str) -> Text:
        """Return one row of cells."""
        text = Text(no_wrap=True, overflow="crop")
        cells = zip(self._bits[row], self._owners[row], strict=True)
        for owner, run in groupby(cells, key=lambda cell: cell[1] if cell[0] else None):
            if owner is None:
                text.append(" " * len(list(run)))
                continue
            mark = marks[owner % len(marks)] if marks else ""
            text.append("".join(mark or chr(0x2800 + bits) for bits, _ in run), style=styles[owner])
        return text


def draw_plot(plot: Plot) -> RenderableType:
    """Draw axes, ticks and series."""
    values = [value for line in plot.lines for value in line if value is not None]
    low, high = _bounds(values, with_zero=plot.kind == "area")
    ticks = _ticks(low, high, max(2, plot.rows // 3))
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    names = {_row(tick, low, high, plot.rows): plot.name(tick) for tick in ticks}
    margin = max(map(cell_len, names.values()))
    canvas = Canvas(max(4, plot.width - margin - 2), plot.rows)
    for owner, line in enumerate(plot.lines):
        _draw_series(canvas, plot, owner, line, (low, high))
    side, tick_sign, corner, bottom = "│┤└─" if plot.unicode else "|++-"
    rows: list[RenderableType] = [_dim(plot.y_title)] if plot.y_title else []
    for row in range(plot.rows):
        name = names.get(row, "")
        text = canvas.line(row, plot.styles, plot.marks)
        axis = _dim(" " * (margin - cell_len(name)) + name + " " + (tick_sign if name else side))
        rows.append(Text.assemble(axis, text, no_wrap=True, overflow="crop"))
    rows.append(_dim(" " * (margin + 1) + corner + bottom * canvas.columns))
    rows.append(_dim(" " * (margin + 2) + _axis(plot, canvas.columns)))
    if plot.x_title:
        spare = max(0, canvas.columns - cell_len(plot.x_title)) // 2
        rows.append(_dim(" " * (margin + 2 + spare) + plot.x_title))
    return stack(rows)


def _dim(line: str) -> Text:
    return Text(line, style=DIM, no_wrap=True, overflow="crop")


def _draw_series(
    canvas: Canvas, plot: Plot, owner: int, line: list[float | None], bounds: tuple[float, float]
) -> None:
    low, high = bounds
    span = high - low or 1.0
    floor = round((max(low, min(0.0, high)) - low) / span * (canvas.height - 1))
    last: tuple[int, int] | None = None
    for x, value in _positions(plot, owner, line, canvas.width):
        if value is None:
            last = None
            continue
        point = (x, round((value - low) / span * (canvas.height - 1)))
        if plot.kind == "scatter" or last is None:
            canvas.dot(*point, owner)
        else:
            canvas.stroke(last, point, owner)
        if plot.kind == "area":
            _fill_down(canvas, last or point, point, floor, owner)
        last = point


def _fill_down(
    canvas: Canvas, start: tuple[int, int], end: tuple[int, int], floor: int, owner: int
) -> None:
    for x in range(start[0], end[0] + 1):
        share = (x - start[0]) / max(1, end[0] - start[0])
        y = round(start[1] + (end[1] - start[1]) * share)
        canvas.stroke((x, floor), (x, y), owner)


def _positions(
    plot: Plot, owner: int, line: list[float | None], width: int
) -> list[tuple[int, float | None]]:
    """Return the column and the value of each point; columns are counted in dots."""
    step = max(1, math.ceil(len(line) / MAX_POINTS))
    places = range(0, len(line), step)
    own = plot.xs[owner]
    if not own:
        count = max(len(line), len(plot.labels))
        if count == 1:
            return [(width // 2, line[0])]
        return [(round(place * (width - 1) / (count - 1)), line[place]) for place in places]
    ticks = _x_ticks(plot, width // 2)
    low, span = ticks[0], ticks[-1] - ticks[0] or 1.0
    found = []
    for place in places:
        x = own[place] if place < len(own) else None
        found.append(
            (round(((x or 0.0) - low) / span * (width - 1)), line[place] if x is not None else None)
        )
    return found


def _x_ticks(plot: Plot, columns: int) -> list[float]:
    """Return round x values that include the first and the last point."""
    known = [x for xs in plot.xs for x in xs if x is not None]
    low, high = _bounds(known, with_zero=False)
    return _ticks(low, high, max(2, columns // CELLS_A_TICK))


def _bounds(values: list[float], *, with_zero: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if with_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    return low, high


def _ticks(low: float, high: float, wanted: int) -> list[float]:
    """Return about `wanted` round numbers; they include `low` and `high`."""
    rough = (high - low) / wanted
    if rough < SMALLEST_STEP:
        return [low, high]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def _row(value: float, low: float, high: float, rows: int) -> int:
    """Return the row of cells of a value, from the top."""
    height = rows * 4
    y = round((value - low) / ((high - low) or 1.0) * (height - 1))
    return (height - 1 - y) // 4


def _axis(plot: Plot, columns: int) -> str:
    """Return the names below the axis: as many as have room, with the first and the last."""
    numbers = _x_ticks(plot, columns) if any(plot.xs) else []
    names = [f"{x:.12g}" for x in numbers] or plot.labels
    if not names:
        return ""
    widest = max(map(cell_len, names[:1000]))
    count = max(1, min(len(names), columns // (widest + 2)))
    if numbers:  # at even distances, as numbers are
        chosen = list(range(0, len(names), math.ceil((len(names) - 1) / max(1, count - 1)) or 1))
    else:
        last = len(names) - 1
        chosen = sorted({round(place * last / max(1, count - 1)) for place in range(count)})
    line = ""
    for place in chosen:
        at = columns // 2 if len(names) == 1 else round(place * (columns - 1) / (len(names) - 1))
        width = cell_len(names[place])
        start = max(0, min(at - width // 2, columns - width))
        if cell_len(line) and start < cell_len(line) + 1:
            continue
        line += " " * (start - cell_len(line)) + names[place]
    return line
