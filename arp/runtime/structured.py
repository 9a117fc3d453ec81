"""Values of agents and their tools as something to show: components, tables, names with values."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from arp.protocol.components import Component, as_object
from arp.protocol.json_value import Json, JsonObject

MAX_ROWS = 1_000
"""Of a table that is made of a list; the tool's result has all of them."""


def as_json(value: Any) -> Json:
    """Return a value as plain JSON: models and dataclasses as objects, anything unknown as text."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json")
    return json.loads(msgspec.json.encode(value, enc_hook=_unknown))


def _unknown(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)


def component_of(value: Any) -> JsonObject | None:
    """Return the component that a value is: a `Component`, one as JSON, or what `__arp__` returns.

    `None`: it is none.
    """
    made = getattr(value, "__arp__", None)
    if made is not None and not isinstance(value, type):
        return component_of(made())
    if isinstance(value, Component):
        return as_object(value)
    if not isinstance(value, Mapping):
        return None
    is_component = isinstance(value.get("type"), str) and isinstance(value.get("props"), Mapping)
    known = {"id", "type", "props", "version", "fallback"}
    return dict(value) if is_component and known.issuperset(value) else None


def shown(value: Any) -> JsonObject | None:
    """Return the component that shows a value; `None` for what is a text or a number.

    A component shows as itself, a list of objects as a table, an object as names with values.
    """
    made = component_of(value)
    if made is not None:
        return made
    plain = as_json(value)
    if _is_list_of_objects(plain):
        return _table(plain)
    if isinstance(plain, dict) and plain:
        items = [{"key": name, "value": cell_of(one)} for name, one in plain.items()]
        return {"type": "key-value", "props": {"items": items}}
    return None


def text_of(value: Any) -> str:
    """Return a value as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(as_json(value), ensure_ascii=False)


def arguments_of(text: str) -> JsonObject:
    """Return the arguments of a call, written as JSON, as an object."""
    try:
        parsed = json.loads(text or "{}")
    except ValueError:
        parsed = text
    return parsed if isinstance(parsed, dict) else {"input": parsed}


def _is_list_of_objects(value: Json) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _table(rows: Sequence[JsonObject]) -> JsonObject:
    headers = list(dict.fromkeys(name for row in rows[:MAX_ROWS] for name in row))
    cells = [[cell_of(row.get(name)) for name in headers] for row in rows[:MAX_ROWS]]
    return {"type": "table", "props": {"headers": headers, "rows": cells}}


def cell_of(value: Json) -> Json:
    """Return a value as a table or a list can show it: what is no text or number as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
