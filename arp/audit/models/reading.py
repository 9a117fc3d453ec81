"""Read payloads of facts from any program: an unexpected value counts as absent.

A read model must be computable from any log in the store. So nothing here raises because of a
payload, and every kept value has a limit: long texts and lists are cut.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from arp.protocol.json_value import Json, JsonObject

TEXT_CHARACTERS: Final = 200
"""Maximum length of a kept text, in characters: a line on a screen. The fact has the full text."""

LIST_ITEMS: Final = 20
"""Maximum length of a kept list."""

VALUE_BYTES: Final = 1024
"""Maximum size of a kept JSON value; of a larger value the beginning of its JSON text is kept."""

VALUE_BRACKETS: Final = 64
"""Maximum number of arrays and objects in a kept JSON value. It also limits the nesting, because
encoders refuse values that are nested too deeply."""

MOST: Final = 2**53
"""Maximum of every count: the largest integer that every JSON reader represents exactly."""


def text(payload: JsonObject, *names: str) -> str | None:
    """Return the first of these fields that is a non-empty text, cut to `TEXT_CHARACTERS`."""
    for name in names:
        value = payload.get(name)
        if value and isinstance(value, str):
            return value[:TEXT_CHARACTERS]
    return None


def whole(payload: JsonObject, *names: str) -> int | None:
    """Return the first of these fields that is an integer from 0 to `MOST`."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST:
            return value
    return None


def number(payload: JsonObject, name: str) -> int | float | None:
    """Return a field that is a number from -`MOST` to `MOST`."""
    value = payload.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MOST:
        return value
    return None


def flag(payload: JsonObject, name: str) -> bool | None:
    """Return a field that is a boolean."""
    value = payload.get(name)
    return value if isinstance(value, bool) else None


def texts(payload: JsonObject, name: str, most: int = LIST_ITEMS) -> list[str]:
    """Return the first `most` non-empty texts of a list, each cut to `TEXT_CHARACTERS`."""
    value = payload.get(name)
    if not isinstance(value, list):
        return []
    return [one[:TEXT_CHARACTERS] for one in value if isinstance(one, str) and one][:most]


def values(payload: JsonObject, name: str) -> list[Json]:
    """Return the first `LIST_ITEMS` values of a list, each as `brief` returns it."""
    value = payload.get(name)
    return [brief(one) for one in value[:LIST_ITEMS]] if isinstance(value, list) else []


def part(payload: Json, name: str) -> JsonObject:
    """Return a field that is an object; an empty object for anything else."""
    value = payload.get(name) if isinstance(payload, dict) else None
    return value if isinstance(value, dict) else {}


def brief(value: Json) -> Json:
    """Return a JSON value that may be kept: the value itself, or the beginning of its JSON text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value[:TEXT_CHARACTERS]
    if isinstance(value, int | float):
        return value if abs(value) <= MOST else None
    data = msgspec.json.encode(value)
    if len(data) <= VALUE_BYTES and data.count(b"[") + data.count(b"{") <= VALUE_BRACKETS:
        return value
    return data[:TEXT_CHARACTERS].decode("utf-8", "ignore")


def added(total: int, more: int | None) -> int:
    """Return the sum of a count and `more`, at most `MOST`."""
    total += more or 0
    return total if total < MOST else MOST


def milliseconds(began: str | None, ended: str | None) -> int | None:
    """Return the milliseconds between two times; `None` if one is missing or not RFC 3339.

    The result is never negative. If the clock was set back, it is 0.
    """
    if began is None or ended is None:
        return None
    try:
        took = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    except (TypeError, ValueError):  # not a time, or only one of them has a time zone
        return None
    return max(0, round(took.total_seconds() * 1000))
