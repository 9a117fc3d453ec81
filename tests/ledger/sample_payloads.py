"""Payloads and ids for facts of any type, made from the row of the type."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from msgspec import inspect as shapes

from arp.ledger.fact_family import BothOrNeither, OnlyIf
from arp.ledger.fact_types import FACT_TYPES, OBJECTS, REQUIRED_IDS
from arp.ledger.payload_fields import BESIDE


def payload_of(fact_type: str, chance: Random) -> dict[str, Any]:
    """Return a payload with the required fields of a type, and some of the optional ones.

    Optional fields that a rule about two fields names are left out.
    """
    row = FACT_TYPES[fact_type]
    match row.relation:
        case BothOrNeither(one, other):
            excluded = {one.name, other.name}
        case OnlyIf(only):
            excluded = {only.name}
        case None:
            excluded = set()
    return {
        field.name: _value(shapes.type_info(field.type))
        for field in row.fields
        if field.required or (field.name not in excluded and chance.random() < 0.5)
    }


def ids_of(fact_type: str) -> dict[str, Any]:
    """Return the ids of a type, by attribute of `Fact`."""
    names = (*REQUIRED_IDS[fact_type], *FACT_TYPES[fact_type].written_ids)
    return {name: _beside(name) if name in OBJECTS else name for name in names}


def _beside(name: str) -> Any:
    # All fields of `refs` are optional, and an empty object counts as missing.
    return _value(shapes.type_info(BESIDE[name])) or {"trajectoryRef": "text"}


def _value(info: shapes.Type) -> Any:
    """Return the simplest value of a type."""
    match info:
        case shapes.StrType(pattern=pattern):
            if pattern is None:
                return "text"
            return "EUR" if re.match(pattern, "EUR") else "0" * 64
        case shapes.IntType() | shapes.FloatType():
            return 1
        case shapes.BoolType():
            return True
        case shapes.LiteralType(values=values):
            return values[0]
        case shapes.ListType(item_type=item):
            return [_value(item)]
        case shapes.UnionType(types=types):
            return _value(types[0])
        case shapes.StructType(fields=fields):
            return {one.encode_name: _value(one.type) for one in fields if one.required}
        case shapes.Metadata(type=inner):
            return _value(inner)
        case _:
            return {}
