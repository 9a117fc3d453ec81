"""`chart`: bars, lines, areas, points and shares as text."""

from __future__ import annotations

from msgspec import Struct
from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.text import Text

from arp.protocol.json_value import Json, JsonObject
from arp_terminal.drawing.blocks import cut, cut_apart, stack
from arp_terminal.drawing.palette import DIM, HEADING, PLAIN, series
from arp_terminal.drawing.plot import Plot, draw_plot
from arp_terminal.drawing.props import items, label, line, number, objects
from arp_terminal.options import Options

EIGHTHS = " ▏▎▍▌▋▊▉"
FILLS = "█▓▒░"
"""Fills of the series of a bar chart without colour."""

ASCII_FILLS = "#=+-"
MARKS = "●▲■◆○△"
ASCII_MARKS = "*+xo#@"
MAX_LABEL = 40
"""Maximum width of the labels beside bars, in cells."""

MIN_BAR = 16
"""Minimum width of the bars beside long labels, in cells."""

MAX_BAR = 72
"""Maximum length of a bar in cells; beside a longer one the eye loses the label."""

MAX_BARS = 200
"""Maximum number of labels of a bar or pie chart; the others are counted."""

LARGEST = 1e100
"""Limit of numbers; larger ones are drawn as gaps, because their differences would overflow."""


MAX_UNIT = 8
"""Maximum width of a unit after each value; a longer unit is shown with the title."""


class Axes(Struct, frozen=True):
    """The labels of the axes; each is one safe line, which may be empty."""

    x: str
    y: str
    unit: str

    def figure(self, value: float) -> str:
        """Return a value with its unit: `12 USD`, `5%`."""
        if not self.unit or cell_len(self.unit) > MAX_UNIT:
            return amount(value)
        return f"{amount(value)}{'' if self.unit in ('%', '°') else ' '}{self.unit}"

    def values(self, *, shown: bool) -> str:
        """Return the name of the values, with the unit unless it is `shown` after each value."""
        if not self.unit or (shown and cell_len(self.unit) <= MAX_UNIT):
            return self.y
        return f"{self.y} ({self.unit})" if self.y else self.unit


class Series(Struct, frozen=True):
    """One dataset."""

    label: str
    values: list[float | None]
    xs: list[float | None]
    """The x value of each point; empty if the points have none."""
    style: Style


def chart(props: JsonObject, options: Options) -> RenderableType:
    """Draw `chart`: title, legend, and the drawing of its kind."""
    found = [
        _series(data, place, options) for place, data in enumerate(objects(props.get("datasets")))
    ]
    title = line(props.get("title"))
    kind = line(props.get("type"))
    labels = items(props.get("labels"))
    axes = Axes(*(line(props.get(name)) for name in ("x_title", "y_title", "unit")))
    drawing: RenderableType
    if not any(value is not None for one in found for value in one.values):
        drawing = Text("no data", style=DIM)
    elif kind == "pie":
        drawing = _shares(labels, found, axes, options)
    elif kind in ("line", "area", "scatter"):
        drawing = _plotted(kind, labels, found, props, axes, options)
    else:
        drawing = _bars(labels, found, axes, options)
    head = label(title, HEADING) if title else None
    return stack([head, _legend(kind, found, options), drawing])


def _series(data: JsonObject, place: int, options: Options) -> Series:
    points = items(data.get("data"))
    values = [
        _value(point[-1] if isinstance(point, list) and point else _field(point, "y"))
        for point in points
    ]
    xs = [
        _value(point[0] if isinstance(point, list) and point else _field(point, "x", None))
        for point in points
    ]
    style = series(place) if options.colour else PLAIN
    return Series(
        line(data.get("label")), values, xs if any(x is not None for x in xs) else [], style
    )


def _field(point: Json, name: str, default: Json = 0) -> Json:
    if isinstance(point, dict):
        return point.get(name)
    return point if default is not None else None


def _value(value: Json) -> float | None:
    found = number(value)
    return float(found) if found is not None and abs(found) < LARGEST else None


def _legend(kind: str, found: list[Series], options: Options) -> Text | None:
    """Return the name of each series after its sign in the drawing."""
    if kind == "pie" or not any(one.label for one in found):
        return None
    text = Text()
    for place, one in enumerate(found):
        text.append("   " if place else "")
        text.append(f"{_sign(kind, place, len(found), options)} ", style=one.style)
        text.append(one.label or f"series {place + 1}", style=DIM)
    return text


def _sign(kind: str, place: int, count: int, options: Options) -> str:
    if kind in ("line", "area", "scatter"):
        marks = MARKS if options.unicode else ASCII_MARKS
        return "━" if _is_braille(kind, count, options) else marks[place % len(marks)]
    return _fill(place, options) if options.unicode else ASCII_FILLS[place % len(ASCII_FILLS)]


def _is_braille(kind: str, count: int, options: Options) -> bool:
    return options.unicode and kind != "scatter" and (options.colour or count == 1)


def _fill(place: int, options: Options) -> str:
    if not options.unicode:
        return ASCII_FILLS[place % len(ASCII_FILLS)]
    return "█" if options.colour else FILLS[place % len(FILLS)]


# -- bars ------------------------------------------------------------------------------------


def _bars(labels: list[Json], found: list[Series], axes: Axes, options: Options) -> RenderableType:
    count = max(len(one.values) for one in found)
    names = [
        label(labels[row]) if row < len(labels) else Text(str(row + 1)) for row in range(count)
    ]
    figures = [axes.figure(value) for one in found for value in one.values if value is not None]
    plain = [name.plain for name in names[:MAX_BARS]]
    width = _label_width([axes.x, *plain], figures, options)
    names = [*map(Text, cut_apart(plain, [width] * len(plain), options.unicode))]
    room = options.width - width - 2 - max(map(cell_len, figures)) - 1
    room = max(4, min(MAX_BAR, room))
    scale = Scale([value for one in found for value in one.values if value is not None], room)
    drawn = _heads(axes, width, options)
    for row, name in enumerate(names):
        for place, one in enumerate(found):
            text = cut(name, width, options.unicode) if place == 0 else Text()
            text.append(" " * (width - cell_len(text.plain) + 2))
            value = one.values[row] if row < len(one.values) else None
            text.append_text(scale.bar(value, _fill(place, options), one.style))
            text.append(f" {axes.figure(value)}" if value is not None else " –", style=PLAIN)
            text.no_wrap, text.overflow = True, "crop"
            drawn.append(text)
    if count > MAX_BARS:
        drawn.append(Text(f"… {count - MAX_BARS:,} more", style=DIM))
    return stack(drawn)


def _label_width(names: list[str], figures: list[str], options: Options) -> int:
    """Return the width of the labels: what they need, as long as the bars have room."""
    needed = max(map(cell_len, names), default=1)
    free = options.width - max(map(cell_len, figures), default=0) - 3 - MIN_BAR
    return max(1, min(needed, max(free, min(MAX_LABEL, options.width * 2 // 5))))


def _heads(axes: Axes, width: int, options: Options) -> list[RenderableType]:
    """Return the names of the labels and of the values, above them; empty if there are none."""
    values = axes.values(shown=True)
    if not axes.x and not values:
        return []
    head = cut(Text(axes.x), width, options.unicode)
    head.append(" " * (width - cell_len(head.plain) + 2) + values)
    head.rstrip()
    head.stylize(DIM)
    head.no_wrap, head.overflow = True, "ellipsis" if options.unicode else "crop"
    return [head]


class Scale:
    """The scale of a bar chart: converts values to bars."""

    def __init__(self, values: list[float], room: int) -> None:
        self._low, self._high = min(0.0, *values), max(0.0, *values)
        self._room = room

    def bar(self, value: float | None, fill: str, style: Style) -> Text:
        """Return a bar from zero to `value`, after the space of the values below zero."""
        span = self._high - self._low or 1.0
        zero = round(self._room * -self._low / span)
        if value is None:
            return Text(" " * zero)
        if value < 0:
            length = max(1, round(self._room * -value / span)) if value else 0
            length = min(length, zero)
            text = Text(" " * (zero - length))
            return text.append(fill * length, style=style)
        eighths = round(self._room * 8 * value / span)
        full, rest = divmod(min(eighths, 8 * (self._room - zero)), 8)
        sign = EIGHTHS[rest].strip() if fill == "█" else fill * (rest >= 4)
        if not full and not sign and value > 0:
            sign = "▏" if fill == "█" else fill
        text = Text(" " * zero)
        return text.append(fill * full + sign, style=style)


def _shares(
    labels: list[Json], found: list[Series], axes: Axes, options: Options
) -> RenderableType:
    """Draw each dataset of a pie as bars of percentages."""
    about = ": ".join(filter(None, (axes.x, axes.values(shown=True))))
    parts: list[RenderableType | None] = [Text(about, style=DIM) if about else None]
    for one in found:
        values = [max(0.0, value or 0.0) for value in one.values][:MAX_BARS]
        whole = sum(values) or 1.0
        names = [
            line(labels[row]) if row < len(labels) else str(row + 1) for row in range(len(values))
        ]
        figures = [f"{100 * value / whole:5.1f} %  {axes.figure(value)}" for value in values]
        width = _label_width(names, figures, options)
        names = cut_apart(names, [width] * len(names), options.unicode)
        room = max(4, min(40, options.width - width - 3 - max(map(len, figures), default=0)))
        parts.append(Text(one.label, style=DIM) if one.label else None)
        for row, (name, value, share) in enumerate(zip(names, values, figures, strict=True)):
            style = series(row) if options.colour else PLAIN
            text = Text(name)
            text.append(" " * (width - cell_len(name) + 2))
            bar = Scale([whole], room).bar(value, _fill(0, options), style)
            text.append_text(bar)
            text.append(" " * (room - cell_len(bar.plain) + 1) + share)
            text.no_wrap, text.overflow = True, "crop"
            parts.append(text)
    return stack(parts)


# -- plots -----------------------------------------------------------------------------------


def _plotted(
    kind: str,
    labels: list[Json],
    found: list[Series],
    props: JsonObject,
    axes: Axes,
    options: Options,
) -> RenderableType:
    marks = MARKS if options.unicode else ASCII_MARKS
    if kind == "scatter":
        numeric = [_value(name) for name in labels]
        axis = numeric if numeric and all(x is not None for x in numeric) else []
    else:
        axis = []
    plot = Plot(
        kind=kind,
        labels=[line(name) for name in labels],
        lines=[one.values for one in found],
        xs=[one.xs or axis for one in found],
        styles=[one.style for one in found],
        marks="" if _is_braille(kind, len(found), options) else marks,
        width=max(16, options.width),
        rows=_rows(props.get("height")),
        unicode=options.unicode,
        name=amount,
        x_title=axes.x,
        y_title=axes.values(shown=False),
    )
    return draw_plot(plot)


def _rows(height: Json) -> int:
    """Return the rows of a plot: one for each 20 pixels of its height; ten without a height."""
    found = number(height)
    return 10 if found is None else max(5, min(20, int(min(found, 10_000)) // 20))


def amount(value: float) -> str:
    """Return a number as text: grouped thousands, two decimals, three digits below one."""
    if abs(value) >= 1e15:
        return f"{value:.3g}"
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) < 1:
        return f"{value:.3g}"
    return f"{value:,.2f}".rstrip("0").rstrip(".")
