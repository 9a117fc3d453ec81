"""Validation of form fields: one rule per field type converts the sent value for the agent.

Renderers send the values of their widgets: a number may be a text, a ticked box may be `on`. An
error names the field. A password is never repeated in an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import NoReturn

import msgspec

from arp.protocol.components import Field, FieldOption, Option, Validation, label_of, value_of
from arp.protocol.errors import InvalidAnswer
from arp.protocol.exact_integers import MAX_EXACT
from arp.protocol.json_value import Json, JsonObject, is_plain_json, kind_of
from arp.protocol.messages import FileRef
from arp.protocol.validate import explain, nearest

MAX_NUMBER_LENGTH = 64
"""Longest number as text, in characters."""

MAX_EMAIL_LENGTH = 254
"""Longest e-mail address, in characters; the limit that follows from RFC 5321, 4.5.3.1.3."""

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_PLAIN = re.compile(r"[^eE]+").fullmatch
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EMAIL = re.compile(r"[^\s@]+@[^\s@.]+(\.[^\s@.]+)*")
_TICKS = {
    **dict.fromkeys(("true", "on", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "off", "no", "n", "0"), False),
}


def check_fields(fields: Sequence[Field], given: JsonObject) -> JsonObject:
    """Return the values of all fields by name: `None` for an empty field, `False` if unticked.

    Raises:
        InvalidAnswer: A field is unknown, or required and missing, or its value does not fit; the
            message begins with `fields.NAME`.
    """
    names = {field.name for field in fields}
    for name in given:
        if name not in names:
            raise InvalidAnswer(
                f"fields.{name:.60}: no such field{nearest(name, names)}",
                detail=f"fields.{name:.60}",
            )
    return {field.name: _check(field, given.get(field.name)) for field in fields}


class OfferedOptions:
    """The options of a question, found by value or by label."""

    def __init__(self, options: Sequence[str | FieldOption | Option]) -> None:
        self._by_value: dict[str, str | FieldOption | Option] = {}
        self._by_label: dict[str, str | FieldOption | Option] = {}
        for option in options:
            self._by_value.setdefault(_key(value_of(option)), option)
            self._by_label.setdefault(label_of(option).strip().casefold(), option)

    def find(self, value: Json) -> str | FieldOption | Option | None:
        """Return the option with a value, the text of a value, or a label; `None` if not found."""
        if type(value) not in (str, int, float):
            return None
        if (option := self._by_value.get(_key(value))) is not None:
            return option
        return self._by_label.get(value.strip().casefold()) if isinstance(value, str) else None


def said(value: Json) -> str:
    """Return a refused value for an error message, cut to 40 characters."""
    return f'"{value:.40}"' if isinstance(value, str) else kind_of(value)


def _check(field: Field, value: Json) -> Json:
    if value is None or value == "":
        if field.required:
            _refuse(field, "missing; this field is required")
        return False if field.field_type == "checkbox" else None
    return _RULES[field.field_type](field, value)


def _text(field: Field, value: Json) -> str:
    if not isinstance(value, str):
        _refuse(field, f"expected text, got {kind_of(value)}")
    rules = field.validation or Validation()
    least, most = rules.min_length or 0, rules.max_length
    if len(value) < least:
        _refuse(field, rules.message or f"needs at least {least} characters, has {len(value)}")
    if most is not None and len(value) > most:
        _refuse(field, rules.message or f"takes at most {most} characters, has {len(value)}")
    return value


def _email(field: Field, value: Json) -> str:
    address = _text(field, value.strip() if isinstance(value, str) else value)
    if len(address) > MAX_EMAIL_LENGTH or _EMAIL.fullmatch(address) is None:
        _refuse(field, f"expected an e-mail address, got {said(address)}")
    return address


def _number(field: Field, value: Json) -> int | float:
    number: Json = number_of(value.strip()) if isinstance(value, str) else value
    if type(number) not in (int, float):
        _refuse(field, f"expected a number, got {said(value)}")
    if not is_plain_json(number):
        _refuse(field, "the number is too large")
    # A number that is written out in digits is meant exactly, but a double may have lost some of
    # them. A number with an exponent may be rounded.
    is_rough = isinstance(number, float) and not (isinstance(value, str) and _PLAIN(value.strip()))
    if not is_rough and abs(number) > MAX_EXACT:
        _refuse(field, f"the number is too large to stay exact; it goes up to {MAX_EXACT}")
    _check_range(field, number)
    checked: int | float = number
    return checked


def number_of(text: str) -> int | float | None:
    """Return the number in a text, whole numbers with all digits; `None` if it is not a number."""
    if len(text) > MAX_NUMBER_LENGTH or _NUMBER.fullmatch(text) is None:
        return None
    return int(text) if _WHOLE.fullmatch(text) else float(text)


def _date(field: Field, value: Json) -> str:
    text = value.strip() if isinstance(value, str) else ""
    try:
        if _DATE.fullmatch(text) is None:
            raise ValueError(text)
        date.fromisoformat(text)
    except ValueError:
        _refuse(field, f"expected a date as YYYY-MM-DD, got {said(value)}")
    _check_range(field, text)
    return text


def _check_range(field: Field, value: Json) -> None:
    """Check the bounds of a number or a date; dates in ISO form compare correctly as text."""
    rules = field.validation or Validation()
    if rules.min is not None and value < rules.min:
        _refuse(field, rules.message or f"{value} is below {rules.min}, the least allowed")
    if rules.max is not None and value > rules.max:
        _refuse(field, rules.message or f"{value} is above {rules.max}, the most allowed")


def _checkbox(field: Field, value: Json) -> bool:
    ticked = _TICKS.get(value.strip().casefold()) if isinstance(value, str) else value
    if not isinstance(ticked, bool):
        _refuse(field, f"expected true or false, got {said(value)}")
    if field.required and not ticked:
        _refuse(field, "must be ticked")
    return ticked


def _select(field: Field, value: Json) -> Json:
    option = OfferedOptions(field.options).find(value)
    if option is None:
        offered = ", ".join(map(label_of, field.options))
        _refuse(field, f"{said(value)} is not offered; choose one of {offered:.200}")
    return value_of(option)


def _file(field: Field, value: Json) -> Json:
    try:
        ref = msgspec.convert(value, FileRef)
    except msgspec.ValidationError:
        where = f"fields.{field.name}"
        raise InvalidAnswer(explain(value, FileRef, where), detail=where) from None
    return msgspec.to_builtins(ref)


def _refuse(field: Field, why: str) -> NoReturn:
    where = f"fields.{field.name}"
    raise InvalidAnswer(f"{where}: {why}", detail=where)


def _key(value: str | int | float) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


_RULES: Mapping[str, Callable[[Field, Json], Json]] = {
    "text": _text,
    "textarea": _text,
    "password": _text,
    "email": _email,
    "number": _number,
    "date": _date,
    "checkbox": _checkbox,
    "select": _select,
    "file": _file,
}
