"""Checks that the payload of a fact has the fields of its row in `fact_types.FACT_TYPES`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from arp.ledger.fact import WRITTEN
from arp.ledger.fact_family import BothOrNeither, FactType, OnlyIf
from arp.ledger.fact_types import FACT_TYPES, ProfileViolation, unknown_type
from arp.ledger.payload_fields import BESIDE, PayloadField
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.validate import explain

_DEFINITIONS: Final = {
    field.name: field.base or field for row in FACT_TYPES.values() for field in row.fields
}

FIELDS: Final[dict[str, PayloadField]] = {name: _DEFINITIONS[name] for name in sorted(_DEFINITIONS)}
"""Name of a payload field → its definition, sorted by name."""


@cache
def payload_struct(fact_type: str) -> type[Struct]:
    """Return the Struct of the payload of a type. It ignores unknown fields.

    Raises:
        ProfileViolation: The type is unknown.
    """
    row = FACT_TYPES.get(fact_type)
    if row is None:
        raise ProfileViolation(unknown_type(fact_type))
    named = fact_type.title().replace(".", "").replace("_", "")
    fields = [_struct_field(field) for field in row.fields]
    return msgspec.defstruct(named, fields, kw_only=True, frozen=True, module=__name__)


def _struct_field(field: PayloadField) -> tuple[str, Any] | tuple[str, Any, Any]:
    if field.required:
        return field.name, field.type
    return field.name, field.type | UnsetType, UNSET


def check_payload(fact_type: str, payload: JsonObject, ids: Mapping[str, Json]) -> None:
    """Check that a fact has the fields and ids of its type.

    Args:
        fact_type: Type of the fact, one of `FACT_TYPES`.
        payload: Payload of the fact, plain JSON. Unknown fields are accepted.
        ids: Correlation ids by field name, for example `request_id`.

    Raises:
        ProfileViolation: The message names the type, the field and the expected value. Nothing was
            written.
    """
    expected, row = payload_struct(fact_type), FACT_TYPES[fact_type]
    missing = [name for name in row.written_ids if not ids.get(name)]
    if missing:
        names = ", ".join(WRITTEN[name] for name in missing)
        raise ProfileViolation(f"profile validation failed: {fact_type} needs {names}")
    _check_shape(fact_type, "payload", payload, expected)
    if row.relation is not None:
        _check_relation(row, row.relation, payload)
    if fact_type.startswith("benchmark."):
        for name, shape in BESIDE.items():
            if ids.get(name) is not None:
                _check_shape(fact_type, name, ids[name], shape)


def _check_relation(row: FactType, relation: BothOrNeither | OnlyIf, payload: JsonObject) -> None:
    problem = ""
    match relation:
        case BothOrNeither(one, other):
            if (one.name in payload) != (other.name in payload):
                problem = f"{one.name} and {other.name} must both be present or both be absent"
        case OnlyIf(field, other, value):
            if (field.name in payload) != (payload[other.name] == value):
                problem = f"{field.name} must be present if and only if {other.name} is {value}"
    if problem:
        raise ProfileViolation(f"profile validation failed: {row.name}: payload: {problem}")


def _check_shape(fact_type: str, where: str, value: Json, shape: Any) -> None:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError:
        problem = explain(value, shape, where)
        raise ProfileViolation(f"profile validation failed: {fact_type}: {problem}") from None
