"""Components in the bytes that a renderer takes: whole where they fit, else simpler or shorter.

What does not fit loses rows if it is a table, characters if it is text or code, and becomes text
first if it is anything else. It keeps its id, and says at its end how much is missing. So what a
renderer gets of a component depends on the component alone, never on how it came to be.

Source: protocol.md 2.2 (`max_message_bytes`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import msgspec

from arp.protocol.codec import ENCODINGS, encode_shown, recode
from arp.protocol.components import Component
from arp.protocol.limits import RendererLimits
from arp.surface.conversions import cut_table
from arp.surface.degrade import as_one_text

ENVELOPE_BYTES = 700
"""Of a message around a component: the names of a session, a surface, a turn, and the places of an
`insert`, each as long as it may be."""

_TEXTS = {"text": "content", "markdown": "content", "code-block": "code"}
"""What is shortened and stays what it is, and in which property."""

_GROWTH = 3
"""How much longer than JSON another encoding may be: a number such as 0.5 has nine bytes there."""


def room(limits: RendererLimits) -> int | None:
    """Return how many bytes one component may have; `None` where the renderer set no limit."""
    most = limits.max_message_bytes
    return None if most is None else most - ENVELOPE_BYTES


def fits(value: object, most: int) -> bool:
    """Return whether a component or an op has at most so many bytes, in every encoding."""
    frame = encode_shown(value)
    if _GROWTH * len(frame) <= most:
        return True
    return all(len(recode(frame, encoding)) <= most for encoding in ENCODINGS)


def shrunk(component: Component, most: int, max_table_rows: int | None) -> Component:
    """Return a component that fits: itself, or something shorter or simpler under its id."""
    if fits(component, most):
        return component
    if component.type == "table" and "tabs" not in component.props:
        count = len(component.props["rows"])
        keep = _most(count, lambda rows: fits(_with_rows(component, rows), most))
        if keep > 0:
            return _with_rows(component, keep)
    if component.type not in _TEXTS or _TEXTS[component.type] not in component.props:
        component = as_one_text(component, max_table_rows)
    return _shorter(component, _TEXTS[component.type], most)


def shortened(text: str, keep: int) -> str:
    """Return the beginning of a text, and says how much is not shown."""
    missing = len(text) - keep
    unit = "character" if missing == 1 else "characters"
    return f"{text[:keep]}\n… {missing:,} more {unit} not shown" if missing else text


def longest(text: str, is_short_enough: Callable[[str], bool]) -> str:
    """Return as much of a text as fits, with the words that say what is missing; at least those."""
    return shortened(text, _most(len(text), lambda keep: is_short_enough(shortened(text, keep))))


def _shorter(component: Component, name: str, most: int) -> Component:
    text = longest(component.props[name], lambda shown: fits(_with(component, name, shown), most))
    shown = _with(component, name, text)
    if fits(shown, most):
        return shown
    # What is long is not its text: a title, or an id.
    return Component(component.id, "text", {"content": text, "format": "plain"})


def _most(count: int, holds: Callable[[int], bool]) -> int:
    """Return the largest number below `count` for which something holds that holds for less too."""
    return max(0, bisect_right(range(count), False, key=lambda number: not holds(number)) - 1)


def _with(component: Component, name: str, text: str) -> Component:
    props = {**component.props, name: text}
    return msgspec.structs.replace(component, props=props, fallback=None)


def _with_rows(component: Component, rows: int) -> Component:
    props = cut_table(component.props, rows)
    return msgspec.structs.replace(component, props=props, fallback=None)
