"""Read the named fields of objects: models, dataclasses, rows of databases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


def record_of(value: Any) -> Mapping[str, Any] | None:
    """Return an object's fields by name, in order; `None` if it has no named fields.

    Supported are mappings, pydantic models, dataclasses, msgspec Structs, attrs classes, named
    tuples, and rows of `sqlite3` and SQLAlchemy.
    """
    if isinstance(value, Mapping):
        return value
    if isinstance(value, type | str | bytes):
        return None
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    for read in (_of_model, _of_fields, _of_row):
        found = read(value)
        if found is not None:
            return found
    return None


def _of_model(value: Any) -> dict[str, Any] | None:
    """Return the fields of a pydantic model, with its computed fields."""
    dump = getattr(value, "model_dump", None)
    if dump is None or not hasattr(type(value), "model_fields"):
        return None
    fields: dict[str, Any] = dump()
    return fields


def _of_fields(value: Any) -> dict[str, Any] | None:
    """Return the fields of a dataclass or an attrs class."""
    kind = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields

        return {one.name: getattr(value, one.name) for one in fields(value)}
    if hasattr(kind, "__attrs_attrs__"):
        return {one.name: getattr(value, one.name) for one in kind.__attrs_attrs__}
    return None


def _of_row(value: Any) -> dict[str, Any] | None:
    """Return the fields of a named tuple, a row of SQLAlchemy, or a `sqlite3.Row`."""
    kind = type(value)
    if isinstance(value, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_asdict"):
        named: Any = value
        return dict(named._asdict())
    if kind.__module__.startswith("sqlalchemy.") and hasattr(value, "_mapping"):
        return dict(value._mapping)
    if kind.__module__ == "sqlite3" and kind.__name__ == "Row":
        return {name: value[name] for name in value.keys()}  # noqa: SIM118 - not a mapping
    return None
