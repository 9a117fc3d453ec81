"""Convert a value to a cell of a table or a list, or to plain JSON."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from typing import Any, Final

import msgspec

from arp.protocol.errors import InvalidComponent
from arp.protocol.exact_integers import exact_cell
from arp.protocol.json_value import Json
from arp.protocol.safe_text import well_formed

MAX_CELL_CHARACTERS: Final = 1_000
"""Largest number of characters in a cell; a longer text is cut and ends with an ellipsis."""

_MOST_DIGITS: Final = 18
"""Largest number of digits of a `Decimal` that becomes an integer, which then fits in 64 bits."""

_MISSING: Final = frozenset(("NAType", "NaTType"))
"""Names of the types of `NA` and `NaT` in pandas."""


def cell_of(value: Any) -> Json:
    """Return a value as a cell of a table or a list.

    A missing value (`NaN`, `NaT`, `pd.NA`) becomes `None`, and an infinite number `∞` or `−∞`. An
    integer or a `Decimal` becomes a number if renderers represent it exactly, otherwise a text,
    because renderers would round an integer beyond 2^53. Dates and times become ISO texts, with a
    space between date and time. Lists and objects become JSON text, and all other values text.
    """
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _cut(value)
    if kind.__name__ in _MISSING and kind.__module__.startswith("pandas"):
        return None
    if kind.__module__ == "numpy":
        return cell_of(_from_numpy(value))
    if isinstance(value, Enum):
        return cell_of(value.value)
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return _cut(_as_text(value))


def cells_of(column: list[Any]) -> list[Json]:
    """Return the cells of a column. If all its times are midnight, they become dates."""
    column = [_from_numpy(one) if type(one).__module__ == "numpy" else one for one in column]
    times = [one for one in column if isinstance(one, datetime) and one == one]  # without NaT
    if times and all(map(_is_midnight, times)):
        column = [
            date(one.year, one.month, one.day) if isinstance(one, datetime) and one == one else one
            for one in column
        ]
    return [cell_of(one) for one in column]


def _is_midnight(value: datetime) -> bool:
    # A pandas timestamp also has nanoseconds, which `time()` leaves out.
    return value.time() == time() and value.tzinfo is None and not getattr(value, "nanosecond", 0)


def chart_kind(value: Any) -> str:
    """Return the kind of a value in a chart: `number`, `missing`, `truth`, `duration` or `other`.

    A text is not a number, even if it contains only digits.
    """
    if value is None or type(value).__name__ in _MISSING or _is_nan(value):
        return "missing"
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, Real | Decimal):
        return "number"
    return "duration" if isinstance(value, timedelta) else "other"


def _is_nan(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float) and math.isnan(value)


def is_infinite(value: Any) -> bool:
    """Return whether a number is infinite. A finite number that is too large for a float is not."""
    if isinstance(value, Decimal):
        return value.is_infinite()
    return isinstance(value, float) and math.isinf(value)


def chart_number(value: Any) -> int | float | None:
    """Return a value as a number for a chart; `None` if it is infinite or not a number.

    A `Decimal` or a fraction becomes the nearest float. `chart_kind` defines what a number is.
    """
    if chart_kind(value) != "number":
        return None
    if isinstance(value, Integral):
        return int(value)
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def plain_value(value: Any) -> Any:
    """Return a numpy scalar or an enum member as a Python value; other values are unchanged."""
    if type(value).__module__ == "numpy":
        return _from_numpy(value)
    return plain_value(value.value) if isinstance(value, Enum) else value


def _number(value: float) -> Json:
    if isinstance(value, int):
        return exact_cell(int(value))
    number = float(value)
    if math.isfinite(number):
        return number
    return None if math.isnan(number) else _infinite(number)


def _infinite(number: float | Decimal) -> str:
    return "∞" if number > 0 else "−∞"


def _decimal(value: Decimal) -> Json:
    if value.is_nan():
        return None
    if value.is_infinite():
        return _infinite(value)
    if value == value.to_integral_value() and value.adjusted() < _MOST_DIGITS:
        return exact_cell(int(value))
    number = float(value)
    return number if math.isfinite(number) and Decimal(repr(number)) == value else str(value)


def _from_numpy(value: Any) -> Any:
    """Return a numpy scalar or array as a Python value."""
    name = type(value).__name__
    if name in ("datetime64", "timedelta64"):
        # `item` returns an integer for values in nanoseconds or after the year 9999.
        plain = value.astype(f"{name}[us]")
        is_whole = plain != plain or plain == value  # NaT is not equal to itself
        item = plain.item() if is_whole else value
        return str(value).replace("T", " ") if isinstance(item, int) or item is value else item
    if name in ("float16", "float32"):
        return single(float(value), "e" if name == "float16" else "f")
    plain = value.tolist() if hasattr(value, "tolist") else value.item()
    if type(plain).__module__ != "numpy":
        return plain
    is_float = value.dtype.kind == "f" and (float(value) == value or value != value)
    return float(value) if is_float else str(value)


def single(number: float, form: str) -> float:
    """Return the shortest number that has the same narrow float: 0.1, not 0.10000000149011612.

    Args:
        number: Value of the narrow float.
        form: `f` for 32 bits or `e` for 16, as in `struct`.
    """
    if not math.isfinite(number):
        return number
    for digits in range(1, 9):
        shorter = float(f"{number:.{digits}g}")
        try:
            is_same = struct.unpack(form, struct.pack(form, shorter))[0] == number
        except OverflowError:
            continue
        if is_same:
            return shorter
    return number


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value):,} bytes"
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, Mapping | Sequence | set | frozenset):
        return _as_json_text(value)
    return str(value)


def _as_json_text(value: Any) -> str:
    try:
        return json.dumps(as_json(value), ensure_ascii=False)
    except RecursionError:
        raise InvalidComponent("a value is nested too deep to be shown as text") from None
    except (TypeError, ValueError):  # for example, a key is not a text
        return str(value)


def _cut(text: str) -> str:
    plain = well_formed(text)
    if len(plain) <= MAX_CELL_CHARACTERS:
        return plain
    return f"{plain[: MAX_CELL_CHARACTERS - 1]}…"


def as_json(value: Any) -> Json:
    """Return a value as plain JSON: models and dataclasses as objects, unknown values as text."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json")
    return json.loads(msgspec.json.encode(value, enc_hook=_unknown))


def _unknown(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json")
    if type(value).__module__ == "numpy":
        return _from_numpy(value)
    return str(value)
