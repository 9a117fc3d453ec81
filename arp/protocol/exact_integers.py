"""Integers that a reader with doubles would round: text on every screen, refused where one counts.

JSON has one kind of number, and most of its readers (browsers above all) keep it as a double: from
2^53 on they change integers without a word. So the agent side never sends such a number. What it
shows goes out as text of its digits, which every renderer can show. A chart or a field for a number
calculates with the number, so there it is refused. The ledger keeps the integer.

Source: protocol.md 1.
"""

from __future__ import annotations

import re
from typing import Final

from arp.protocol.json_value import Json, JsonObject

MAX_EXACT: Final = 2**53 - 1
"""The largest magnitude of an integer that no double rounds, and that no other integer rounds to:
`Number.MAX_SAFE_INTEGER` of ECMAScript."""

_DIGITS: Final = 16
"""How many digits `MAX_EXACT` has."""

_LARGE: Final = re.compile(r"-?[1-9][0-9]{15,}")

_RUN: Final = b"0" * _DIGITS
_AS_RUN: Final = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
"""Makes every digit a 0, and every other byte a space."""

_TOKEN: Final = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+" | -?+[0-9][0-9.eE+-]*+', re.DOTALL | re.VERBOSE
)
"""A string or a number of JSON. Every match is possessive, so that the time is linear."""


def is_exact(value: Json) -> bool:
    """Return whether a value is no integer that a double would round."""
    return type(value) is not int or -MAX_EXACT <= value <= MAX_EXACT


def exact_cell(value: Json) -> Json:
    """Return a value for a cell: an integer that a double would round as text of its digits."""
    return value if is_exact(value) else str(value)


def is_large_integer(value: Json) -> bool:
    """Return whether a value is text of an integer that `exact_cell` would make: still a number."""
    if not isinstance(value, str) or _LARGE.fullmatch(value) is None:
        return False
    digits = value.removeprefix("-")
    return len(digits) > _DIGITS or digits > str(MAX_EXACT)


def exact_json(frame: bytes) -> bytes:
    """Return JSON in which each integer that a double would round is text of its digits.

    Args:
        frame: JSON as our encoder writes it.

    Returns:
        The same bytes if there is no such integer, which nearly always costs no more than a look.
    """
    if _RUN not in frame.translate(_AS_RUN):
        return frame
    return _TOKEN.sub(_exact_token, frame)


def _exact_token(found: re.Match[bytes]) -> bytes:
    token = found[0]
    digits = token.removeprefix(b"-")
    is_large = len(digits) >= _DIGITS and digits.isdigit() and int(digits) > MAX_EXACT
    return b'"%b"' % token if is_large else token


def rounded_at(value: Json, where: str) -> str | None:
    """Return the place of the first integer in plain JSON that a double would round.

    Args:
        value: Plain JSON.
        where: How messages name it.
    """
    if type(value) is int:
        return None if is_exact(value) else where
    if type(value) is list:
        places = ((f"{where}[{number}]", one) for number, one in enumerate(value))
    elif type(value) is dict:
        places = ((f"{where}.{name}", one) for name, one in value.items())
    else:
        return None
    found = (rounded_at(one, place) for place, one in places)
    return next((place for place in found if place is not None), None)


def numbers_of(type_name: str, props: JsonObject, where: str) -> list[tuple[str, Json]]:
    """Return what of a component's props renderers calculate with, each with its place.

    Args:
        type_name: A type of the catalog.
        props: They fit the type.
        where: How messages name the props.
    """
    if type_name == "chart":
        return [(where, props)]
    if type_name != "form":
        return []
    found: list[tuple[str, Json]] = []
    for number, field in enumerate(props["fields"]):
        if field.get("field_type") == "number":
            place = f"{where}.fields[{number}]"
            found.append((f"{place}.value", field.get("value")))
            found.append((f"{place}.validation", field.get("validation")))
    return found


TOO_LARGE: Final = (
    f"an integer beyond ±{MAX_EXACT} (2⁵³ − 1), which many renderers would round; "
    "give it as a float, or as text where it is a name"
)
"""Why a chart or a field for a number does not take one, and what to do."""
