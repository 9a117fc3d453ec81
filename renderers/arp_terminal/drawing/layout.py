"""Components with children: group, tabs, split."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.json_value import Json, JsonObject
from arp_terminal.drawing.blocks import ColumnBlock, stack
from arp_terminal.drawing.palette import BAND, DIM
from arp_terminal.drawing.props import items, line, number, objects
from arp_terminal.options import Options

Draw = Callable[[Json, Options], RenderableType]
"""Function that draws a child from its JSON in the props of the parent."""

GAPS = {"none": 0, "small": 0, "medium": 1, "large": 2}
"""Empty lines between the children of a group."""

MIN_BESIDE = 24
"""Minimum width of a column in cells; narrower columns become rows."""


def group(props: JsonObject, options: Options, draw: Draw) -> RenderableType:
    """Draw `group`: its children below each other, or side by side if there is room."""
    children = items(props.get("children"))
    gap = GAPS.get(line(props.get("gap"), "medium"), 1)
    if props.get("direction") == "horizontal" and children:
        shares = [1.0] * len(children)
        widths = columns(shares, options.width)
        if widths is not None:
            return _beside(children, widths, options, draw)
    return stack((draw(child, options) for child in children), gap=gap)


def tabs(props: JsonObject, options: Options, draw: Draw) -> RenderableType:
    """Draw `tabs`: all tabs below each other, each under its label."""
    drawn = []
    for tab in objects(props.get("tabs")):
        icon = f"{line(tab.get('icon'))} " if tab.get("icon") else ""
        head = Text(f" {icon}{line(tab.get('label'))} ", style=BAND)
        if not options.colour:
            head = Text(f"[{head.plain.strip()}]")
        drawn.append(stack([head, draw(tab.get("component"), options)]))
    return stack(drawn, gap=1)


def split(props: JsonObject, options: Options, draw: Draw) -> RenderableType:
    """Draw `split`: two components by their ratio, or below each other if there is no room."""
    both = [props.get("left"), props.get("right")]
    if props.get("direction", "horizontal") == "horizontal":
        widths = columns(ratio(props.get("ratio")), options.width)
        if widths is not None:
            return _beside(both, widths, options, draw)
    return stack((draw(child, options) for child in both), gap=1)


def columns(shares: list[float], width: int) -> list[int] | None:
    """Return the widths of columns with gaps between; `None` if a column would be too narrow."""
    room = width - ColumnBlock.GAP * (len(shares) - 1)
    whole = sum(shares)
    widths = [int(room * share / whole) for share in shares]
    widths[-1] += room - sum(widths)
    return widths if min(widths) >= MIN_BESIDE else None


def ratio(value: Json) -> list[float]:
    """Return the ratio in `"1:2"` or `0.3`; halves for any other value."""
    parts = [part.strip() for part in value.split(":")] if isinstance(value, str) else []
    if len(parts) == 2 and all(part.isdecimal() and len(part) < 4 for part in parts):
        left, right = (float(part) for part in parts)
        if left and right:
            return [left, right]
    found = number(value)
    if isinstance(found, float) and 0 < found < 1:
        return [found, 1 - found]
    return [1.0, 1.0]


def _beside(
    children: list[Json], widths: list[int], options: Options, draw: Draw
) -> RenderableType:
    drawn = [
        draw(child, replace(options, width=width))
        for child, width in zip(children, widths, strict=True)
    ]
    return ColumnBlock(drawn, widths)


def too_deep() -> RenderableType:
    """Return the drawing that replaces components which are nested too deep."""
    return Text("… nested too deep to be shown", style=DIM)
