"""Check and copy the values that authors pass to a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from arp.protocol.json_value import JsonObject
from arp.record.wording import encoded, plain, well_formed

T = TypeVar("T", bound=msgspec.Struct)

MAX_UNWRITTEN = 16 << 10
"""Number of unwritten characters of text above which a turn waits for the ledger."""

MIN_TIMEOUT_MS = 100
"""Shortest time of an overlay, because a user would not see a shorter one."""

MAX_TIMEOUT_MS = 24 * 3600 * 1000
"""Longest time of an overlay, one day; what stays longer is not an overlay."""


def dict_of(value: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return a mapping as a new dict.

    Raises:
        TypeError: It is not a mapping; the message names `what`.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{what}: expected a dict, got {type(value).__name__}")
    return dict(value)


def text_of(text: str, what: str) -> str:
    """Return a text without characters that no encoding carries.

    Raises:
        TypeError: It is not a string; the message names `what`.
    """
    try:
        return well_formed(text)
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from None


def name_of(text: str, what: str) -> str:
    """Return a name as a plain text.

    Raises:
        TypeError: It is not a string.
        ValueError: It is empty.
    """
    formed = text_of(text, what)
    if not formed:
        raise ValueError(f"{what}: expected a name, got an empty text")
    return formed


def copied_json(value: T) -> T:
    """Return a deep copy as plain values; raise if it cannot be written as JSON."""
    return msgspec.json.decode(encoded(value), type=type(value))


def plain_object(value: msgspec.Struct) -> JsonObject:
    """Return a struct as a JSON object."""
    plain: JsonObject = msgspec.to_builtins(value)
    return plain


def checked_timeout(timeout_ms: int | None) -> int | None:
    """Validate the time of an overlay, in milliseconds.

    Raises:
        TypeError, ValueError: It is not an integer, or out of bounds.
    """
    if timeout_ms is None:
        return None
    milliseconds = whole_number(timeout_ms, "timeout_ms")
    if not MIN_TIMEOUT_MS <= milliseconds <= MAX_TIMEOUT_MS:
        raise ValueError(f"timeout_ms: expected {MIN_TIMEOUT_MS} to {MAX_TIMEOUT_MS}")
    return milliseconds


def whole_number(value: object, name: str) -> int:
    """Return a whole number from an author as an `int`.

    Raises:
        TypeError, ValueError: It is not a whole number.
    """
    number = plain(value)
    if type(number) is not int:
        raise TypeError(f"{name}: expected a whole number, got {type(value).__name__}")
    return number
