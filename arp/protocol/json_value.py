"""The one alias for plain JSON, and the check that a value is nothing else."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from arp.protocol.errors import InvalidMessage

Json: TypeAlias = Any
"""`None`, `bool`, `int`, `float`, `str`, `list[Json]` or `dict[str, Json]`; nothing else."""

JsonObject: TypeAlias = dict[str, Json]
"""A JSON object."""

MAX_DEPTH = 50
"""Deepest nesting accepted from a peer: 3 levels of components need 15, the rest is margin."""

MAX_INTEGER = 2**63 - 1
"""Largest magnitude of an integer: what SQLite, MessagePack and int64 clients can all hold."""


def check_plain_json(value: Json, where: str = "$", depth: int = MAX_DEPTH) -> None:
    """Guarantees that `value` survives every encoding unchanged.

    Args:
        value: What a codec decoded, of any shape.
        where: How error messages name the value.
        depth: How many levels of arrays and objects may still follow.

    Raises:
        InvalidMessage: A non-string key, NaN, an infinity, an integer beyond 64 bits, an object
            that is not JSON (a CBOR date, say), or nesting beyond `depth`.
    """
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return
    if kind is int:
        if not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
            raise InvalidMessage(f"{where}: integer beyond 64 bits")
        return
    if kind is float:
        if not math.isfinite(value):
            raise InvalidMessage(f"{where}: {value} is not a JSON number")
        return
    if depth <= 0 and kind in (list, dict):
        raise InvalidMessage(f"{where}: nested deeper than {MAX_DEPTH} levels")
    if kind is list:
        for index, item in enumerate(value):
            check_plain_json(item, f"{where}[{index}]", depth - 1)
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise InvalidMessage(f"{where}: object key {key!r:.40} is not a string")
            check_plain_json(item, f"{where}.{key:.40}", depth - 1)
    else:
        raise InvalidMessage(f"{where}: {kind.__name__} is not a JSON value")
