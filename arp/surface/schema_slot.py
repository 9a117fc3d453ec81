"""Slots: scalars and lists of a JSON Schema as fields of a form, and the values of their answers.

Theory of operation. Each scalar or list of the schema is a `FormSlot`. An enumerated value is an
`OfferedValue`. Its label is unique within the slot, so that people can distinguish the values and
type them. `default_of` returns the initial value of a field if it fits. `read_slot` returns the
value of an answer and checks the rules that fields cannot express, such as whole numbers and
lengths of lists.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Final, Literal, NamedTuple, NoReturn, TypeAlias

import msgspec
from msgspec import Struct

from arp.protocol.errors import InvalidAnswer
from arp.protocol.json_value import Json, JsonObject, is_plain_json
from arp.surface.form_fields import number_of

Reading: TypeAlias = Literal[
    "text", "number", "integer", "boolean", "choice", "lines", "numbers", "integers", "ticks"
]
"""Conversion of the value of a field into the value of its property."""

LISTS: Final = ("lines", "numbers", "integers")
"""Readings of a text with one value per line."""

MAX_BOUND: Final = 2**53
"""Largest numeric limit in a field, because every renderer can represent it exactly. Larger limits
are checked only in the answer."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


class OfferedValue(NamedTuple):
    """A value that a person can select."""

    label: str
    """Label, unique within the slot."""
    value: Json
    """Value in the schema."""
    answer: str
    """Value in the answer of the form."""


class FormSlot(Struct, frozen=True):
    """One scalar or list of the schema."""

    path: tuple[str, ...]
    """Path of its value in the answer; empty if it is the whole answer."""
    name: str
    """Name of its field, or prefix of the names of its checkboxes."""
    reading: Reading
    schema: JsonObject
    is_required: bool
    is_nullable: bool
    offers: tuple[OfferedValue, ...] = ()
    items: JsonObject = {}
    """Schema of the values of a list."""


class NumberRange(NamedTuple):
    """Inclusive limits of a number."""

    least: int | float | None
    most: int | float | None


# -- enumerated values -----------------------------------------------------------------------------


def offers_of(schema: JsonObject) -> tuple[OfferedValue, ...]:
    """Return the enumerated values in order: those of `enum`, or of several `const`."""
    unique = {
        (words, msgspec.json.encode(value)): value
        for words, value in _pairs(schema)
        if value is not None
    }
    pairs = [(words, value) for (words, _), value in unique.items()]
    labels = distinct([words for words, _ in pairs], [_text_of(value) for _, value in pairs])
    values = [value for _, value in pairs if isinstance(value, str)]
    # The answer has the value itself if that is a text and unambiguous, otherwise the label.
    as_values = len(values) == len(pairs) and _is_unambiguous(labels, values)
    answers = values if as_values else labels
    return tuple(
        OfferedValue(label, value, answer)
        for label, (_, value), answer in zip(labels, pairs, answers, strict=True)
    )


def _pairs(schema: JsonObject) -> list[tuple[str, Json]]:
    """Return the enumerated values with their titles."""
    values = schema.get("enum")
    if isinstance(values, list):
        names = schema.get("enumNames")
        known = names if isinstance(names, list) and len(names) == len(values) else values
        return [(_words(words), value) for words, value in zip(known, values, strict=True)]
    ways = schema.get("oneOf", schema.get("anyOf"))
    consts = [one for one in ways if isinstance(one, dict)] if isinstance(ways, list) else []
    if consts and all("const" in one for one in consts):
        return [(text_in(one.get("title")) or _words(one["const"]), one["const"]) for one in consts]
    return [(_words(schema["const"]), schema["const"])] if "const" in schema else []


def distinct(labels: Sequence[str], details: Sequence[str]) -> list[str]:
    """Return unique labels: equal labels get a detail or a number in brackets.

    Args:
        labels: The labels; case and surrounding spaces do not distinguish them.
        details: The detail of each label; may be empty or equal too.
    """
    folded = [_folded(label) for label in labels]
    found: list[str] = []
    taken = {one for one in folded if folded.count(one) == 1}
    for label, detail, one in zip(labels, details, folded, strict=True):
        shown = label
        if folded.count(one) > 1:
            shown = f"{label} ({detail})" if detail and _folded(detail) != one else label
            number = 1
            while _folded(shown) in taken:
                number += 1
                shown = f"{label} ({number})"
            taken.add(_folded(shown))
        found.append(shown)
    return found


def _is_unambiguous(labels: Sequence[str], values: Sequence[str]) -> bool:
    """Return whether a typed text, read as a value or as a label, means at most one option."""
    known = {_folded(value): index for index, value in enumerate(values)}
    is_clear = all(known.get(_folded(label), index) == index for index, label in enumerate(labels))
    return is_clear and len(known) == len(values) and "" not in known


def _folded(text: str) -> str:
    return text.strip().casefold()


def _words(value: Json) -> str:
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return value if isinstance(value, str) else _text_of(value)


def _text_of(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# -- limits and defaults ---------------------------------------------------------------------------


def bounds_of(schema: JsonObject, *, is_whole: bool) -> NumberRange:
    """Return the limits of a number; exclusive limits of a whole number become inclusive."""
    least, most = amount(schema.get("minimum")), amount(schema.get("maximum"))
    above, below = _beyond(schema, "Minimum"), _beyond(schema, "Maximum")
    if not is_whole:
        return NumberRange(
            above if least is None else least if above is None else max(least, above),
            below if most is None else most if below is None else min(most, below),
        )
    lower = [math.ceil(least)] if least is not None else []
    lower += [math.floor(above) + 1] if above is not None else []
    upper = [math.floor(most)] if most is not None else []
    upper += [math.ceil(below) - 1] if below is not None else []
    return NumberRange(max(lower, default=None), min(upper, default=None))


def _beyond(schema: JsonObject, name: str) -> int | float | None:
    """Return an exclusive limit; in older schemas `true` makes the inclusive limit exclusive."""
    found = schema.get(f"exclusive{name}")
    return amount(schema.get(name.lower())) if found is True else amount(found)


def default_of(slot: FormSlot, given: Json) -> Json:
    """Return the initial value of a field.

    Args:
        slot: The slot of the field.
        given: The value in the schema; it may not fit.

    Returns:
        A choice: the answer of the offered value. Checkboxes: the answers of the ticked values. A
        list: its values. `None`, or an empty list, if the value does not fit.
    """
    match slot.reading:
        case "choice":
            return next((one.answer for one in slot.offers if _is_same(one.value, given)), None)
        case "ticks":
            listed = given if isinstance(given, list) else []
            return [
                one.answer
                for one in slot.offers
                if any(_is_same(one.value, value) for value in listed)
            ]
        case "boolean":
            return given is True
        case "number" | "integer":
            return _default_number(given, is_whole=slot.reading == "integer")
        case "text":
            is_text = isinstance(given, str)
            return given if is_text and _is_date(slot.schema, str(given)) else None
        case _:
            pass
    listed = given if isinstance(given, list) else []
    lines = [_default_line(slot, one) for one in listed]
    # A part of a default would be a different default.
    return lines if None not in lines else []


def _default_number(given: Json, *, is_whole: bool) -> int | float | None:
    number = amount(given)
    if number is None or not is_plain_json(number):
        return None
    if not is_whole:
        return number
    return int(number) if number == math.floor(number) else None


def _default_line(slot: FormSlot, given: Json) -> str | int | float | None:
    if slot.reading != "lines":
        return _default_number(given, is_whole=slot.reading == "integers")
    is_line = isinstance(given, str) and given.strip() == given and len(given.splitlines()) == 1
    return str(given) if is_line else None


def _is_date(schema: JsonObject, text: str) -> bool:
    if schema.get("format") != "date":
        return True
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_same(one: Json, other: Json) -> bool:
    """Return whether two values are the same JSON: `true` is not 1, but 2.0 is 2."""
    if amount(one) is not None and amount(other) is not None:
        return bool(one == other)
    return msgspec.json.encode(one) == msgspec.json.encode(other)


# -- answers ---------------------------------------------------------------------------------------


def read_slot(slot: FormSlot, answer: JsonObject) -> Json:
    """Return the value of a slot in an answer; `None` if it was not filled in.

    Raises:
        InvalidAnswer: A value does not fit the schema; `detail` names its field.
    """
    if slot.reading == "ticks":
        ticked = [
            one.value
            for number, one in enumerate(slot.offers, 1)
            if answer.get(f"{slot.name}.{number}") is True
        ]
        if not ticked and _may_be_left_out(slot):
            return None
        return _counted(slot, ticked, f"{slot.name}.1")
    value = answer.get(slot.name)
    if slot.reading in LISTS:
        if value is None and _may_be_left_out(slot):
            return None
        lines = [line.strip() for line in (value or "").splitlines() if line.strip()]
        if slot.reading == "lines":
            return _counted(slot, lines, slot.name)
        return _counted(slot, [_parsed(slot, line) for line in lines], slot.name)
    if slot.reading == "boolean":
        return value is True
    if value is None:
        return None
    match slot.reading:
        case "choice":
            return next(one.value for one in slot.offers if one.answer == value)
        case "text":
            return _check_format(slot, value)
        case _:
            return _number(slot, slot.schema, value, is_whole=slot.reading == "integer")


def _may_be_left_out(slot: FormSlot) -> bool:
    """Return whether an empty list is left out; with a default, that would restore the default."""
    return not slot.is_required and "default" not in slot.schema


def _check_format(slot: FormSlot, value: str) -> str:
    match slot.schema.get("format"):
        case "date-time":
            try:
                datetime.fromisoformat(value)
            except ValueError:
                _refuse(slot.name, "expected a date and time such as 2026-01-31T18:30:00Z")
        case "uri" if _URI.fullmatch(value) is None:
            _refuse(slot.name, "expected an address such as https://example.org")
        case _:
            pass
    return value


def _number(
    slot: FormSlot, schema: JsonObject, value: int | float, *, is_whole: bool
) -> int | float:
    if is_whole:
        if value != math.floor(value):
            _refuse(slot.name, f"expected a whole number, got {value}")
        value = int(value)
    above, below = _beyond(schema, "Minimum"), _beyond(schema, "Maximum")
    if above is not None and value <= above:
        _refuse(slot.name, f"expected more than {above}, got {value}")
    if below is not None and value >= below:
        _refuse(slot.name, f"expected less than {below}, got {value}")
    least, most = amount(schema.get("minimum")), amount(schema.get("maximum"))
    if least is not None and value < least:
        _refuse(slot.name, f"expected at least {least}, got {value}")
    if most is not None and value > most:
        _refuse(slot.name, f"expected at most {most}, got {value}")
    step = amount(schema.get("multipleOf"))
    if step is not None and step > 0 and not _is_multiple(value, step):
        _refuse(slot.name, f"expected a multiple of {step}, got {value}")
    return value


def _is_multiple(value: int | float, step: int | float) -> bool:
    """Return whether a number is a multiple, compared as decimals: 0.3 is three times 0.1."""
    try:
        return Decimal(str(value)) % Decimal(str(step)) == 0
    except InvalidOperation:  # too many digits to decide
        return True


def _parsed(slot: FormSlot, line: str) -> int | float:
    is_whole = slot.reading == "integers"
    number = number_of(line)
    if number is None or (isinstance(number, float) and not math.isfinite(number)):
        _refuse(slot.name, f'expected a number on each line, got "{line:.40}"')
    if not is_plain_json(number):
        _refuse(slot.name, f"the number {line:.40} is too large")
    if is_whole and number != math.floor(number):
        _refuse(slot.name, f"expected whole numbers, got {line:.40}")
    return _number(slot, slot.items, number, is_whole=is_whole)


def _counted(slot: FormSlot, values: list[Json], name: str) -> list[Json]:
    least, most = count(slot.schema.get("minItems")), slot.schema.get("maxItems")
    if len(values) < least:
        _refuse(name, f"expected at least {least}, got {len(values)}")
    if type(most) is int and len(values) > most:
        _refuse(name, f"expected at most {most}, got {len(values)}")
    return values


def _refuse(name: str, why: str) -> NoReturn:
    where = f"fields.{name}"
    raise InvalidAnswer(f"{where}: {why}", detail=where)


def text_in(value: Json) -> str | None:
    """Return the value if it is a text that is not blank, else `None`."""
    return value if isinstance(value, str) and value.strip() else None


def amount(value: Json) -> int | float | None:
    """Return the value if it is a number, else `None`."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def count(value: Json) -> int:
    """Return the value if it is a positive integer, else 0."""
    return value if type(value) is int and value > 0 else 0
