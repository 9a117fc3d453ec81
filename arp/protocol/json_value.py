"""The type alias for plain JSON, and the checks of values and texts."""

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
"""Largest magnitude of an integer that SQLite, MessagePack and clients with int64 can store."""

MAX_VALUES = 20_000
"""Largest number of values, on all levels, that a peer may send at once.

It equals the number of rows of the largest table. A text of 1 MiB counts as one value. Each value
has a cost in the ledger, every screen and every renderer.
"""


_ALWAYS_PLAIN = frozenset((str, bool, type(None)))
_NUMBERS = frozenset((int, float))
_SCALARS = _ALWAYS_PLAIN | _NUMBERS
_KINDS = _SCALARS | {list, dict}
_TEXT = frozenset((str,))


def check_plain_json(value: Json, where: str = "$", depth: int = MAX_DEPTH) -> None:
    """Check that a value is plain JSON, which is the same in every encoding.

    Args:
        value: Any decoded value.
        where: Name of the value in error messages.
        depth: Levels of arrays and objects that are allowed.

    Raises:
        InvalidMessage: The value is not plain JSON. Either it has a key that is not a string, or
            it is nested deeper than `depth`, or it contains one of these: NaN, an infinity, an
            integer beyond 64 bits, an object of a type that JSON lacks (such as a CBOR date).
    """
    if not is_plain_json(value, depth):
        _refuse(value, where, depth)


def is_plain_json(value: Json, depth: int = MAX_DEPTH) -> bool:
    """Return whether `check_plain_json` accepts a value.

    The check processes one level of nesting after the other. Each level takes only a few calls in
    Python, even if it has a million values, which a peer may send.
    """
    kind = type(value)
    if kind not in (dict, list):
        return kind in _ALWAYS_PLAIN or (kind in _NUMBERS and _numbers_fit([value]))
    if kind is dict and depth > 0 and set(map(type, value)) <= _TEXT:
        # Fast path: the props of most components are an object of a few texts.
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
    """Return the JSON name of a value's type; for other types, the name of the Python type."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string"}
    return {**names, list: "array", dict: "object"}.get(type(value), type(value).__name__)


def count_values(value: Json) -> int:
    """Count the values in plain JSON on all levels, including the value itself."""
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
    """Check that plain JSON has at most `MAX_VALUES` values, including the value itself.

    Args:
        value: A decoded value.
        where: Name of the value in the error message.
        detail: Value for `detail` of the error.
        instead: Advice for the sender.
        others: Number of other values in the same message, which count towards the limit.

    Raises:
        ResourceLimit: There are more values.
    """
    if count_values(value) + others > MAX_VALUES:
        raise ResourceLimit(f"{where}: more than {MAX_VALUES} values; {instead}", detail=detail)


_TOKENS = re.compile(
    rb"""[\[{] | [\]}]
        | "[^"\\]*+ (?:\\. [^"\\]*+)*+ "?+ (?:[ \t\r\n]*+ :)?+
        | [^ \t\r\n,:\[\]{}"]++""",
    re.DOTALL | re.VERBOSE,
)
"""A bracket, a string with the colon after it, or a number or word. All quantifiers are possessive,
so that the time is linear."""

_OPEN, _CLOSE = frozenset(b"[{"), frozenset(b"]}")


def check_json_text(
    data: bytes, where: str, max_values: int = MAX_VALUES, instead: str = "send less at once"
) -> int:
    """Check the number of values and the nesting of JSON text before it is parsed.

    The objects that a parser creates need up to a hundred times the memory of the text. This check
    stops at the first value above the limit. Errors in the JSON are left to the parser.

    Args:
        data: The text.
        where: Name of the text in the error message.
        max_values: Maximum number of values in the text.
        instead: Advice for the sender.

    Returns:
        An upper bound of the number of values.

    Raises:
        ResourceLimit: The text has more than `max_values` values, including the outermost value.
        InvalidMessage: The text is nested deeper than `MAX_DEPTH` levels.
    """
    opening = data.count(b"[") + data.count(b"{")
    most = opening + data.count(b",") + 1
    # Counting bytes, also inside strings, gives an upper bound: it accepts most texts quickly.
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
        if depth < 0:  # invalid JSON: more brackets are closed than opened
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
