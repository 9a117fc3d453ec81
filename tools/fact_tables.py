"""Tables of facts for the docs: ids and payload of each type, and the meaning of each field."""

from __future__ import annotations

import msgspec
from msgspec import inspect as shapes

from arp.ledger.fact import WRITTEN
from arp.ledger.fact_family import FactType
from arp.ledger.fact_types import FAMILIES, REQUIRED_IDS
from arp.ledger.payload_fields import BESIDE, PayloadField
from arp.ledger.payloads import FIELDS
from tools.doc_tables import attribute_docs, table, type_text


def facts() -> str:
    """Return a section for each family: its description, and a table of type, ids and payload."""
    parts = []
    for family in FAMILIES:
        rows = [[f"`{row.name}`", _ids(row), _payload(row)] for row in family.all_types()]
        head = f"### {family.name}\n\n{family.records}\n\n"
        parts.append(head + table(["type", "ids", "payload"], rows))
    return "\n\n".join(parts)


def _ids(row: FactType) -> str:
    """Return the ids that the profile requires, then the ids that this project adds, in italics."""
    required = [f"`{WRITTEN[one]}`" for one in REQUIRED_IDS[row.name]]
    added = [f"*`{WRITTEN[one]}`*" for one in row.written_ids]
    return " ".join(required + added) or "–"


def _payload(row: FactType) -> str:
    return " ".join(_field(field) for field in row.fields) or "–"


def _field(field: PayloadField) -> str:
    shown = f"`{field.name}`" if field.required else f"`{field.name}?`"
    return f"{shown} ({_type(field.type)})" if field.base is not None else shown


def fields() -> str:
    """Return one row for each payload field."""
    rows = [[f"`{name}`", _type(field.type), field.meaning] for name, field in FIELDS.items()]
    return table(["field", "type", "meaning"], rows)


def beside() -> str:
    """Return a table for each object beside the payload of a benchmark fact."""
    return "\n\n".join(f"`{name}`:\n\n{_struct(kind)}" for name, kind in BESIDE.items())


def _struct(kind: type[msgspec.Struct]) -> str:
    notes = attribute_docs(kind)
    rows = [
        [
            f"`{field.encode_name}`" if field.required else f"`{field.encode_name}?`",
            type_text(shapes.type_info(field.type)).removesuffix(" or null"),
            notes.get(field.name, ""),
        ]
        for field in msgspec.structs.fields(kind)
    ]
    return table(["field", "type", "meaning"], rows)


def _type(kind: object) -> str:
    """Return a type in the words of JSON; for an object of this project, with its fields."""
    info = shapes.type_info(kind)
    inner = info.item_type if isinstance(info, shapes.ListType) else info
    shown = type_text(info)
    if isinstance(inner, shapes.StructType):
        names = (_inner(field) for field in inner.fields)
        shown += " {" + ", ".join(names) + "}"
    return shown


def _inner(field: shapes.Field) -> str:
    words = field.type
    if isinstance(words, shapes.LiteralType):
        shown = f"{field.encode_name}: {' '.join(map(str, words.values))}"
    else:
        shown = field.encode_name
    return shown if field.required else shown + "?"
