"""Reads payloads of facts that anyone may have written: what is not as expected is as if not there.

A read model must come out of any log that the store holds. So nothing here raises for what a fact
says, and nothing that is kept can grow: texts are cut, lists end.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from arp.protocol.json_value import Json, JsonObject

TEXT_CHARACTERS: Final = 200
"""Of a text that is kept: a line on a screen; the whole of it stands in the fact."""

LIST_ITEMS: Final = 20
"""Of a list that is kept."""

VALUE_BYTES: Final = 1024
"""Of a JSON value that is kept as it is; a larger one becomes the beginning of its text."""

VALUE_BRACKETS: Final = 64
"""Arrays and objects in such a value, so that it cannot nest deeper than anyone can encode."""

MOST: Final = 2**53
"""Where counting stops: the largest integer that every reader of JSON holds exactly."""


def text(payload: JsonObject, *names: str) -> str | None:
    """Return the first of these fields that is a text and not empty, cut."""
    for name in names:
        value = payload.get(name)
        if value and isinstance(value, str):
            return value[:TEXT_CHARACTERS]
    return None


def whole(payload: JsonObject, *names: str) -> int | None:
    """Return the first of these fields that counts something: an integer of 0 … `MOST`."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST:
            return value
    return None


def number(payload: JsonObject, name: str) -> int | float | None:
    """Return a field that is a number of at most `MOST` either way."""
    value = payload.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MOST:
        return value
    return None


def flag(payload: JsonObject, name: str) -> bool | None:
    """Return a field that is true or false."""
    value = payload.get(name)
    return value if isinstance(value, bool) else None


def texts(payload: JsonObject, name: str, most: int = LIST_ITEMS) -> list[str]:
    """Return the texts in a list, the first `most` of them, cut."""
    value = payload.get(name)
    if not isinstance(value, list):
        return []
    return [one[:TEXT_CHARACTERS] for one in value if isinstance(one, str) and one][:most]


def values(payload: JsonObject, name: str) -> list[Json]:
    """Return the first `LIST_ITEMS` values of a list, each as it may be kept."""
    value = payload.get(name)
    return [brief(one) for one in value[:LIST_ITEMS]] if isinstance(value, list) else []


def part(payload: Json, name: str) -> JsonObject:
    """Return a field that is an object; an empty one for anything else."""
    value = payload.get(name) if isinstance(payload, dict) else None
    return value if isinstance(value, dict) else {}


def brief(value: Json) -> Json:
    """Return a JSON value as it may be kept: itself, or the beginning of its text."""
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
    """Return a count and what comes to it, up to `MOST`."""
    total += more or 0
    return total if total < MOST else MOST


def milliseconds(began: str | None, ended: str | None) -> int | None:
    """Return the time between two moments; `None` if one is missing or no RFC 3339.

    A clock that was set back gives 0: order comes from the sequence, and nothing takes less.
    """
    if began is None or ended is None:
        return None
    try:
        took = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    except (TypeError, ValueError):  # no time; or one with a zone and one without
        return None
    return max(0, round(took.total_seconds() * 1000))
