"""Draw a component: `render(component, options)` is pure and never fails.

The table at the end has all component types of the terminal. Other types are drawn as their
fallback.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.capabilities import LEVELS
from arp.protocol.components import AUTHOR, Component
from arp.protocol.json_value import Json, JsonObject
from arp_terminal.drawing import layout
from arp_terminal.drawing.blocks import FittedBlock, stack
from arp_terminal.drawing.cards import (
    author,
    image,
    key_value,
    product_cards,
    progress,
    status_card,
)
from arp_terminal.drawing.chart import chart
from arp_terminal.drawing.code_block import code_block
from arp_terminal.drawing.diff import diff
from arp_terminal.drawing.palette import DIM
from arp_terminal.drawing.pieces import draw_markdown
from arp_terminal.drawing.props import line, paragraph
from arp_terminal.drawing.questions import choices, confirm, form, text_input
from arp_terminal.drawing.table import table
from arp_terminal.options import MAX_DEPTH, Options

Drawing = Callable[[JsonObject, Options], RenderableType]


def render(component: Component, options: Options) -> RenderableType:
    """Draw a component of any type; equal components and options result in equal lines.

    It never raises. `props` may be any JSON; control characters in its texts become visible.
    """
    if options.depth >= MAX_DEPTH:
        return layout.too_deep()
    draw = _DRAWINGS.get(component.type)
    shown = LEVELS.get(options.level, LEVELS["standard"])
    named = component.type == AUTHOR and options.level != "minimal"
    known = draw is not None and (component.type in shown or named)
    inner = replace(options, depth=options.depth + 1)
    if not known and options.simplify is not None:
        return stack((render(part, inner) for part in options.simplify(component)), gap=1)
    if not known and component.fallback is not None:
        return render(component.fallback, inner)
    if draw is not None:
        return _fitted(draw, component.props, options)
    return Text(f"({line(component.type)} cannot be shown in a terminal)", style=DIM)


def _fitted(draw: Drawing, props: JsonObject, options: Options) -> RenderableType:
    """Draw at the width that is available, which is less inside other components."""
    return FittedBlock(lambda width: draw(props, replace(options, width=min(width, options.width))))


def text(props: JsonObject, options: Options) -> RenderableType:
    """Draw `text`: as it is, or as markdown if its `format` says so."""
    content = props.get("content", props.get("text"))
    if props.get("format") == "markdown" and isinstance(content, str):
        return draw_markdown(content, options)
    return paragraph(content)


def _markdown(props: JsonObject, options: Options) -> RenderableType:
    content = props.get("content")
    return draw_markdown(content, options) if isinstance(content, str) else paragraph(content)


def _child(plain: Json, options: Options) -> RenderableType:
    """Draw a component that is in the props of another one."""
    inner = replace(options, depth=options.depth + 1)
    if inner.depth >= MAX_DEPTH:
        return layout.too_deep()
    try:
        return render(msgspec.convert({"id": "", "props": {}, **plain}, Component), inner)
    except (msgspec.ValidationError, TypeError):
        return Text("(a part that cannot be read)", style=DIM)


def _group(props: JsonObject, options: Options) -> RenderableType:
    return layout.group(props, options, _child)


def _tabs(props: JsonObject, options: Options) -> RenderableType:
    return layout.tabs(props, options, _child)


def _split(props: JsonObject, options: Options) -> RenderableType:
    return layout.split(props, options, _child)


_DRAWINGS: Mapping[str, Drawing] = MappingProxyType(
    {
        "text": text,
        "markdown": _markdown,
        "status-card": status_card,
        "table": table,
        "code-block": code_block,
        "diff": diff,
        "key-value": key_value,
        "progress": progress,
        "chart": chart,
        "image": image,
        "product-cards": product_cards,
        "form": form,
        "confirm": confirm,
        "choices": choices,
        "text-input": text_input,
        "group": _group,
        "tabs": _tabs,
        "split": _split,
        AUTHOR: author,
    }
)
