"""Reading props without trust: any JSON in, harmless text and lists of the wanted kind out.

The agent side has validated what it sends, but another agent side may not have; a drawing must
never fail.
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
"""Characters of an object or array that is shown where a plain value belongs."""


def line(value: Json, absent: str = "") -> str:
    """Return any JSON value as one harmless line; `absent` for null."""
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
    """Return any JSON value as harmless text in which newlines and tabs stay."""
    return sanitise(value).expandtabs(4) if isinstance(value, str) else line(value)


def output(value: Json) -> str:
    """Return text that a program printed as harmless text of several lines; as `lines`."""
    return lines(printed(value) if isinstance(value, str) else value)


def figure(value: Number) -> str:
    """Return a number as people write it: no exponent for whole numbers, no `.0`."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def label(value: Json, style: Style = PLAIN) -> Text:
    """Return a value as one line of styled text; what is added to it has a style of its own."""
    return Text().append(line(value), style=style)


def paragraph(value: Json, style: Style = PLAIN) -> Text:
    """Return a value as styled text of several lines."""
    return Text().append(lines(value), style=style)


def items(value: Json) -> list[Json]:
    """Return a list as it is, anything else as an empty one."""
    return value if isinstance(value, list) else []


def objects(value: Json) -> list[JsonObject]:
    """Return the objects of a list; others are left out."""
    return [item for item in items(value) if isinstance(item, dict)]


def number(value: Json) -> Number | None:
    """Return a finite number as it is, anything else as `None`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return value if abs(value) < 1 << 1000 else None
    return value if math.isfinite(value) else None
