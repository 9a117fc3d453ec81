"""The one alias for plain JSON, and the check that a value is nothing else."""

from __future__ import annotations

import math
import re
from itertools import chain
from typing import Any, TypeAlias

from arp.protocol.errors import InvalidMessage, ResourceLimit

Json: TypeAlias = Any
"""`None`, `bool`, `int`, `float`, `str`, `list[Json]` or `dict[str, Json]`; nothing else."""

JsonObject: TypeAlias = dict[str, Json]
"""A JSON object."""

MAX_DEPTH = 50
"""Deepest nesting accepted from a peer: 3 levels of components need 15, the rest is margin."""

MAX_INTEGER = 2**63 - 1
"""Largest magnitude of an integer: what SQLite, MessagePack and int64 clients can all hold."""

MAX_VALUES = 20_000
"""Values in what a peer sends at once, over all levels: as many as the largest table has rows.

A text of 1 MiB is one. Each value costs the ledger, every screen and every renderer something.
"""


_ALWAYS_PLAIN = frozenset((str, bool, type(None)))
_NUMBERS = frozenset((int, float))
_SCALARS = _ALWAYS_PLAIN | _NUMBERS
_KINDS = _SCALARS | {list, dict}
_TEXT = frozenset((str,))


def check_plain_json(value: Json, where: str = "$", depth: int = MAX_DEPTH) -> None:
    """Check that `value` survives every encoding unchanged.

    Args:
        value: What a codec decoded, of any shape.
        where: How error messages name the value.
        depth: How many levels of arrays and objects may still follow.

    Raises:
        InvalidMessage: A non-string key, NaN, an infinity, an integer beyond 64 bits, an object
            that is not JSON (a CBOR date, say), or nesting beyond `depth`.
    """
    if not is_plain_json(value, depth):
        _refuse(value, where, depth)


def is_plain_json(value: Json, depth: int = MAX_DEPTH) -> bool:
    """Return what `check_plain_json` would refuse, without saying why.

    It looks at one level of nesting after the other: a level costs a few calls however many values
    it has, since a peer may send a million of them.
    """
    kind = type(value)
    if kind not in (dict, list):
        return kind in _ALWAYS_PLAIN or (kind in _NUMBERS and _numbers_fit([value]))
    if kind is dict and depth > 0 and set(map(type, value)) <= _TEXT:
        # The props of most components are a few texts: their one level is all there is to look at.
        level, depth = list(value.values()), depth - 1
    else:
        level = [value]
    while True:
        kinds = set(map(type, level))
        if kinds <= _ALWAYS_PLAIN:
            return True
        if not kinds <= _KINDS or (not kinds.isdisjoint(_NUMBERS) and not _numbers_fit(level)):
            return False
        if kinds <= _SCALARS:
            return True
        if depth <= 0:
            return False
        depth -= 1
        below: list[Json] = []
        if list in kinds:
            below += chain.from_iterable([one for one in level if type(one) is list])
        if dict in kinds:
            objects = [one for one in level if type(one) is dict]
            if not set(map(type, chain.from_iterable(objects))) <= _TEXT:
                return False
            below += chain.from_iterable(map(dict.values, objects))
        level = below


def _numbers_fit(values: list[Json]) -> bool:
    integers = [one for one in values if type(one) is int]
    if integers and (max(integers) > MAX_INTEGER or min(integers) < -MAX_INTEGER - 1):
        return False
    return all(map(math.isfinite, [one for one in values if type(one) is float]))


def kind_of(value: Any) -> str:
    """Name the kind of a JSON value the way the wire does; other types by their own name."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string"}
    return {**names, list: "array", dict: "object"}.get(type(value), type(value).__name__)


def count_values(value: Json) -> int:
    """Count the values in plain JSON over all levels, itself included."""
    count, level = 0, [value]
    while level:
        count += len(level)
        arrays = chain.from_iterable(one for one in level if type(one) is list)
        objects = (one.values() for one in level if type(one) is dict)
        level = [*arrays, *chain.from_iterable(objects)]
    return count


def check_count(
    value: Json, where: str, detail: str, instead: str = "send a file", others: int = 0
) -> None:
    """Check that plain JSON has at most `MAX_VALUES` values, itself included.

    Args:
        value: What a codec decoded.
        where: How the error names the value.
        detail: The field that the error is about.
        instead: What the sender can do.
        others: Values that came with it, which count too.

    Raises:
        ResourceLimit: It has more.
    """
    if count_values(value) + others > MAX_VALUES:
        raise ResourceLimit(f"{where}: more than {MAX_VALUES} values; {instead}", detail=detail)


_TOKENS = re.compile(
    rb"""[\[{] | [\]}]
        | "[^"\\]*+ (?:\\. [^"\\]*+)*+ "?+ (?:[ \t\r\n]*+ :)?+
        | [^ \t\r\n,:\[\]{}"]++""",
    re.DOTALL | re.VERBOSE,
)
"""A bracket, a string with the colon behind it, or a number or word. Every match is possessive, so
that the time is linear."""

_OPEN, _CLOSE = frozenset(b"[{"), frozenset(b"]}")


def check_json_text(
    data: bytes, where: str, max_values: int = MAX_VALUES, instead: str = "send less at once"
) -> int:
    """Check the number of values and the nesting of JSON before it is parsed.

    The objects that a parser makes take up to a hundred times the memory of the text. Looking stops
    at the first value that is too many. What is no JSON at all is left to the parser.

    Args:
        data: The text.
        where: How the error names it.
        max_values: How many it may have.
        instead: What the sender can do.

    Returns:
        How many values it has at most.

    Raises:
        ResourceLimit: It has more than `max_values` values, itself included.
        InvalidMessage: It is nested deeper than `MAX_DEPTH` levels.
    """
    opening = data.count(b"[") + data.count(b"{")
    most = opening + data.count(b",") + 1
    if opening <= MAX_DEPTH and most <= max_values:
        return most
    values = names = depth = 0
    for found in _TOKENS.finditer(data):
        first, last = data[found.start()], data[found.end() - 1]
        if first in _CLOSE:
            depth -= 1
        elif last == ord(":"):
            names += 1
        else:
            values += 1
        if first in _OPEN:
            depth += 1
        if depth > MAX_DEPTH:
            raise InvalidMessage(f"{where}: nested deeper than {MAX_DEPTH} levels")
        if depth < 0:  # more is closed than was opened
            break
        if max(values, names) > max_values:
            raise ResourceLimit(f"{where}: more than {max_values} values; {instead}", detail=where)
    return values


def _refuse(value: Json, where: str, depth: int) -> None:
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
            _refuse(item, f"{where}[{index}]", depth - 1)
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise InvalidMessage(f"{where}: object key {key!r:.40} is not a string")
            _refuse(item, f"{where}.{key:.40}", depth - 1)
    else:
        raise InvalidMessage(f"{where}: {kind.__name__} is not a JSON value")
