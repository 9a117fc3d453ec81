"""Integers that clients with doubles would round: sent as text, or refused in calculations.

JSON has one number type. Most clients, above all browsers, read numbers as doubles and silently
change integers from 2^53 on. The agent side therefore never sends such an integer: it sends the
digits as text, which every renderer can show. Charts and number fields calculate with the number,
so they refuse it. The ledger keeps the integer.

Source: protocol.md 1.
"""

from __future__ import annotations

import re
from typing import Final

from arp.protocol.json_value import Json, JsonObject

MAX_EXACT: Final = 2**53 - 1
"""Largest magnitude of an integer that a double represents without ambiguity:
`Number.MAX_SAFE_INTEGER` of ECMAScript."""

_DIGITS: Final = 16
"""Number of digits of `MAX_EXACT`."""

_LARGE: Final = re.compile(r"-?[1-9][0-9]{15,}")

_RUN: Final = b"0" * _DIGITS
_AS_RUN: Final = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
"""Translation table: digits become 0, other bytes become spaces."""

_TOKEN: Final = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+" | -?+[0-9][0-9.eE+-]*+', re.DOTALL | re.VERBOSE
)
"""A string or a number of JSON. All quantifiers are possessive, so that the time is linear."""


def is_exact(value: Json) -> bool:
    """Return `False` for an integer that a double would round, `True` for any other value."""
    return type(value) is not int or -MAX_EXACT <= value <= MAX_EXACT


def exact_cell(value: Json) -> Json:
    """Return a value for a cell; an integer that a double would round becomes text."""
    return value if is_exact(value) else str(value)


def is_large_integer(value: Json) -> bool:
    """Return whether a value is the text of a large integer, as made by `exact_cell`."""
    if not isinstance(value, str) or _LARGE.fullmatch(value) is None:
        return False
    digits = value.removeprefix("-")
    return len(digits) > _DIGITS or digits > str(MAX_EXACT)


def exact_json(frame: bytes) -> bytes:
    """Return JSON with text in place of each integer that a double would round.

    Args:
        frame: JSON that our encoder wrote.

    Returns:
        The changed JSON, or `frame` itself if it has no such integer.
    """
    # Fast path for nearly all frames: without 16 digits in a row there is no such integer.
    if _RUN not in frame.translate(_AS_RUN):
        return frame
    return _TOKEN.sub(_exact_token, frame)


def _exact_token(found: re.Match[bytes]) -> bytes:
    token = found[0]
    digits = token.removeprefix(b"-")
    is_large = len(digits) >= _DIGITS and digits.isdigit() and int(digits) > MAX_EXACT
    return b'"%b"' % token if is_large else token


def rounded_at(value: Json, where: str) -> str | None:
    """Return the path of the first integer in plain JSON that a double would round, or `None`.

    Args:
        value: Plain JSON.
        where: Path of the value.
    """
    if type(value) is int:
        return None if is_exact(value) else where
    if type(value) is list:
        items = ((f"{where}[{number}]", one) for number, one in enumerate(value))
    elif type(value) is dict:
        items = ((f"{where}.{name}", one) for name, one in value.items())
    else:
        return None
    found = (rounded_at(one, path) for path, one in items)
    return next((path for path in found if path is not None), None)


def numbers_of(type_name: str, props: JsonObject, where: str) -> list[tuple[str, Json]]:
    """Return the values in props that renderers calculate with, each with its path.

    Args:
        type_name: A type of the catalog.
        props: Props that fit the type.
        where: Path of the props.
    """
    if type_name == "chart":
        return [(where, props)]
    if type_name != "form":
        return []
    found: list[tuple[str, Json]] = []
    for number, field in enumerate(props["fields"]):
        if field.get("field_type") == "number":
            path = f"{where}.fields[{number}]"
            found.append((f"{path}.value", field.get("value")))
            found.append((f"{path}.validation", field.get("validation")))
    return found


TOO_LARGE: Final = (
    f"an integer beyond ±{MAX_EXACT} (2⁵³ − 1), which many renderers would round; "
    "give it as a float, or as text where it is a name"
)
"""Error text for a large integer in a chart or a number field."""
