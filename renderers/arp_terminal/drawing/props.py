"""Read props without trust: accept any JSON, return safe text and lists of the wanted kind.

*Safe* text has no control characters; they are made visible. Our agent side validates the props
that it sends, but another one may not, and a drawing must never fail.
"""

from __future__ import annotations

import json
import math

from rich.style import Style
from rich.text import Text

from arp.protocol.framing.program_output import printed
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.safe_text import sanitise, sanitise_line
from arp_terminal.drawing.palette import PLAIN

Number = int | float

MAX_SHOWN_JSON = 2_000
"""Maximum length of an object or array that is shown in place of a plain value."""


def line(value: Json, absent: str = "") -> str:
    """Return any JSON value as one safe line; `absent` for null."""
    if isinstance(value, str):
        return sanitise_line(value)
    if value is None:
        return absent
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return figure(value)
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return sanitise_line(shown[:MAX_SHOWN_JSON])


def lines(value: Json) -> str:
    """Return any JSON value as safe text that keeps its newlines; tabs become spaces."""
    return sanitise(value).expandtabs(4) if isinstance(value, str) else line(value)


def output(value: Json) -> str:
    """Return text that a program printed as a terminal would show it, as safe text."""
    return lines(printed(value) if isinstance(value, str) else value)


def figure(value: Number) -> str:
    """Return a number as text: no exponent for whole numbers, no `.0`."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def label(value: Json, style: Style = PLAIN) -> Text:
    """Return a value as one line of styled text; text that is appended has its own style."""
    return Text().append(line(value), style=style)


def paragraph(value: Json, style: Style = PLAIN) -> Text:
    """Return a value as styled text of several lines."""
    return Text().append(lines(value), style=style)


def items(value: Json) -> list[Json]:
    """Return a list unchanged, and an empty list for any other value."""
    return value if isinstance(value, list) else []


def objects(value: Json) -> list[JsonObject]:
    """Return the objects in a list, without its other items."""
    return [item for item in items(value) if isinstance(item, dict)]


def number(value: Json) -> Number | None:
    """Return a finite number unchanged, and `None` for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return value if abs(value) < 1 << 1000 else None
    return value if math.isfinite(value) else None
