"""Conversion of Python values into plain JSON, with a fast path for values that are plain JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from typing import Any
from uuid import UUID

import msgspec

from arp.protocol.components import Component
from arp.protocol.errors import InvalidComponent
from arp.protocol.json_value import MAX_DEPTH, Json, JsonObject, is_plain_json

_ALWAYS_PLAIN = frozenset((str, bool, type(None)))
_MISSING = frozenset(("NAType", "NaTType"))
"""Types of the missing values of pandas. `NaTType` is a subclass of `datetime`."""

_MOST_DIGITS = 18
"""Largest exponent of a `Decimal` that becomes a number: an integer of 64 bits has 19 digits.
`Decimal("1E+999999")` must not become an integer of a million digits."""


def to_plain(value: Any, where: str, depth: int = MAX_DEPTH) -> Json:
    """Return a value as plain JSON that shares no array or object with the value.

    Dates and times become ISO strings. A `Decimal` becomes a number if the number is exact,
    otherwise a string. NaN becomes `None`, as in tables of measurements. An `Enum` becomes its
    value. Iterables other than sets become arrays, mappings become objects. Numbers of other
    libraries become `int` or `float`.

    Args:
        value: Any value.
        where: Name of the value in error messages.
        depth: Levels of nesting that are allowed.

    Raises:
        InvalidComponent: The value has no JSON form; the message names the path.
    """
    kind = type(value)
    if kind in _ALWAYS_PLAIN or (kind in (int, float) and is_plain_json(value)):
        return value
    if kind in (list, dict) and is_plain_json(value, depth):
        # `to_builtins` copies plain JSON much faster than a conversion of each value. It must not
        # get other values: it accepts sets and bytes, keeps NaN, turns decimals into text, and its
        # errors do not name the path.
        return msgspec.to_builtins(value)
    if kind.__name__ in _MISSING and kind.__module__.startswith("pandas"):
        return None
    if isinstance(value, Enum):
        return to_plain(value.value, where, depth)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Integral | Real | Decimal):
        return _number(value, where)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta | UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | set | frozenset):
        raise InvalidComponent(f"{where}: {kind.__name__} is not a JSON value")
    return _container(value, where, depth)


def _container(value: Any, where: str, depth: int) -> Json:
    if depth <= 0:
        raise InvalidComponent(f"{where}: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Component):
        return component_to_plain(value, where, depth)
    if isinstance(value, Mapping):
        return {
            _key(key, where): to_plain(item, f"{where}.{key}", depth - 1)
            for key, item in value.items()
        }
    if isinstance(value, Iterable):
        return [to_plain(item, f"{where}[{index}]", depth - 1) for index, item in enumerate(value)]
    raise InvalidComponent(f"{where}: {type(value).__name__} is not a JSON value")


def component_to_plain(component: Component, where: str, depth: int = MAX_DEPTH) -> JsonObject:
    """Return a component as a plain object, as in the props of another component.

    Raises:
        InvalidComponent: It is not a component, or a value in it has no JSON form.
    """
    kind: type = type(component)
    if not issubclass(kind, Component):
        what = kind.__name__
        raise InvalidComponent(f"{where}: expected a component, got {what}; ui.text(…) is one")
    plain: JsonObject = {
        "id": to_plain(component.id, f"{where}.id", depth),
        "type": to_plain(component.type, f"{where}.type", depth),
        "props": to_plain(component.props, f"{where}.props", depth - 1),
    }
    if component.version != 1:
        plain["version"] = component.version
    if component.fallback is not None:
        plain["fallback"] = component_to_plain(component.fallback, f"{where}.fallback", depth - 1)
    return plain


def _key(key: Any, where: str) -> str:
    if isinstance(key, Enum):
        key = key.value
    if not isinstance(key, str):
        raise InvalidComponent(f"{where}: object key {key!r:.40} is not a string")
    return str.__str__(key)


def _number(value: Any, where: str) -> Json:
    if isinstance(value, Decimal):
        return _decimal(value, where)
    if isinstance(value, Integral):
        integer = int(value)
        if not is_plain_json(integer):
            raise InvalidComponent(f"{where}: integer beyond 64 bits; write it as a string")
        return integer
    number = float(value)
    if math.isinf(number):
        raise InvalidComponent(f"{where}: {number} is not a JSON number")
    return None if math.isnan(number) else number


def _decimal(value: Decimal, where: str) -> Json:
    if value.is_nan():
        return None
    if value.is_infinite():
        raise InvalidComponent(f"{where}: {value} is not a JSON number")
    if value.adjusted() > _MOST_DIGITS:
        return str(value)
    number = int(value) if value == value.to_integral_value() else float(value)
    return number if is_plain_json(number) and Decimal(repr(number)) == value else str(value)
