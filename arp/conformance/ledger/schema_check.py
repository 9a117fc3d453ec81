"""Check documents against the JSON Schemas of facts and snapshots.

The check supports only the keywords that these schemas use. An unknown keyword raises `KeyError`:
a check that skipped a rule would accept invalid documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

from arp.protocol.json_value import Json, JsonObject

_TYPES: Final[dict[str, Callable[[Json], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
}

_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)

_IDLE: Final = frozenset(("$schema", "$id", "$defs", "title", "description", "then"))
"""Keywords that check nothing by themselves."""

Fault = tuple[str, str]
"""Path in the document, and the problem."""


class SchemaCheck:
    """Checks documents against one schema.

    Args:
        schema: The schema; it may refer only to its own `$defs`.
    """

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._definitions: JsonObject = schema.get("$defs", {})

    def faults(self, document: Json) -> Iterator[Fault]:
        """Yield the faults of a document; none if it is valid."""
        yield from self._faults(self._schema, document, "")

    def _faults(self, schema: JsonObject, value: Json, where: str) -> Iterator[Fault]:
        for keyword, rule in schema.items():
            if keyword in _IDLE:
                continue
            if keyword == "allOf":
                for part in rule:
                    yield from self._faults(part, value, where)
            elif keyword == "$ref":
                name = rule.rpartition("/")[2]
                yield from self._faults(self._definitions[name], value, where)
            elif keyword == "if":
                if next(self._faults(rule, value, where), None) is None:
                    yield from self._faults(schema["then"], value, where)
            elif keyword == "properties":
                yield from self._properties(rule, value, where)
            elif keyword == "items":
                for place, item in enumerate(value if isinstance(value, list) else ()):
                    yield from self._faults(rule, item, f"{where}[{place}]")
            elif (problem := _RULES[keyword](rule, value)) is not None:
                yield where, problem

    def _properties(self, rule: JsonObject, value: Json, where: str) -> Iterator[Fault]:
        for name, part in rule.items() if isinstance(value, dict) else ():
            if name in value:
                yield from self._faults(part, value[name], f"{where}.{name}" if where else name)


def _type(rule: Json, value: Json) -> str | None:
    names = rule if isinstance(rule, list) else [rule]
    return None if any(_TYPES[name](value) for name in names) else f"expected {' or '.join(names)}"


def _required(rule: Json, value: Json) -> str | None:
    missing = [name for name in rule if name not in value] if isinstance(value, dict) else []
    return f"{', '.join(missing)} missing" if missing else None


def _enum(rule: Json, value: Json) -> str | None:
    return None if value in rule else f"{_short(value)} is not known"


def _const(rule: Json, value: Json) -> str | None:
    return None if value == rule else f"{_short(value)} is not {rule}"


def _min_length(rule: Json, value: Json) -> str | None:
    return "is empty" if isinstance(value, str) and len(value) < rule else None


def _min_items(rule: Json, value: Json) -> str | None:
    return f"fewer than {rule}" if isinstance(value, list) and len(value) < rule else None


def _minimum(rule: Json, value: Json) -> str | None:
    return f"below {rule}" if _TYPES["number"](value) and value < rule else None


def _format(rule: Json, value: Json) -> str | None:
    assert rule == "date-time"
    return "not an RFC 3339 time" if isinstance(value, str) and not _is_time(value) else None


def _is_time(value: str) -> bool:
    if _TIME.fullmatch(value) is None:
        return False
    try:
        datetime.fromisoformat(value.upper())
    except ValueError:
        return False
    return True


def _short(value: Any) -> str:
    return f"{value!r:.60}"


_RULES: Final[dict[str, Callable[[Json, Json], str | None]]] = {
    "type": _type,
    "required": _required,
    "enum": _enum,
    "const": _const,
    "minLength": _min_length,
    "minItems": _min_items,
    "minimum": _minimum,
    "format": _format,
}
