"""Components within the size limit of a renderer: whole if they fit, or else shorter or simpler.

A table that is too large loses rows; text and code lose characters; any other component becomes
text first. The component keeps its id, and its end says how much is missing. The result depends on
the component alone, not on its history, so that all ways to the same state give the same result.

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
"""Largest size of a message without its component: the longest ids of a session, a surface and a
turn, and the ids in an `insert`."""

_TEXTS = {"text": "content", "markdown": "content", "code-block": "code"}
"""Types that are shortened without becoming another type → the prop to shorten."""

_GROWTH = 3
"""Greatest ratio of the size in another encoding to JSON: 0.5 has three bytes in JSON and nine in
MessagePack."""


def room(limits: RendererLimits) -> int | None:
    """Return the most bytes of one component; `None` if the renderer set no limit."""
    most = limits.max_message_bytes
    return None if most is None else most - ENVELOPE_BYTES


def fits(value: object, most: int) -> bool:
    """Return whether a component or an operation has at most `most` bytes in every encoding."""
    frame = encode_shown(value)
    if _GROWTH * len(frame) <= most:  # saves the other encodings in nearly all cases
        return True
    return all(len(recode(frame, encoding)) <= most for encoding in ENCODINGS)


def shrunk(component: Component, most: int, max_table_rows: int | None) -> Component:
    """Return a component that fits: the component itself, or a shorter or simpler one."""
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
    """Return the first `keep` characters of a text and a note on how many are not shown."""
    missing = len(text) - keep
    unit = "character" if missing == 1 else "characters"
    return f"{text[:keep]}\n… {missing:,} more {unit} not shown" if missing else text


def longest(text: str, is_short_enough: Callable[[str], bool]) -> str:
    """Return the longest beginning of a text that fits with its note; at least the note."""
    return shortened(text, _most(len(text), lambda keep: is_short_enough(shortened(text, keep))))


def _shorter(component: Component, name: str, most: int) -> Component:
    text = longest(component.props[name], lambda shown: fits(_with(component, name, shown), most))
    shown = _with(component, name, text)
    if fits(shown, most):
        return shown
    # Something other than the text is too long, such as a title.
    return Component(component.id, "text", {"content": text, "format": "plain"})


def _most(count: int, holds: Callable[[int], bool]) -> int:
    """Return the largest number below `count` that fulfils a monotonic condition, or 0."""
    return max(0, bisect_right(range(count), False, key=lambda number: not holds(number)) - 1)


def _with(component: Component, name: str, text: str) -> Component:
    props = {**component.props, name: text}
    return msgspec.structs.replace(component, props=props, fallback=None)


def _with_rows(component: Component, rows: int) -> Component:
    props = cut_table(component.props, rows)
    return msgspec.structs.replace(component, props=props, fallback=None)
