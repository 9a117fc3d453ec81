"""Tables of the facts for the docs: per type its ids and its payload, and what each field means."""

from __future__ import annotations

from itertools import groupby

import msgspec
from msgspec import inspect as shapes

from arp.ledger.fact import Fact
from arp.ledger.fact_types import REQUIRED_IDS
from arp.ledger.payload_fields import BESIDE, FIELDS, KINDS
from arp.ledger.payloads import ROWS
from tools.doc_tables import attribute_docs, table, type_text

_WRITTEN = {field.name: field.encode_name for field in msgspec.structs.fields(Fact)}


def facts() -> str:
    """Return a table for each family: type, ids, payload."""
    parts = []
    for family, names in groupby(REQUIRED_IDS, key=lambda name: name.partition(".")[0]):
        rows = [[f"`{name}`", _ids(name), _payload(name)] for name in names]
        parts.append(f"### {family}\n\n" + table(["type", "ids", "payload"], rows))
    return "\n\n".join(parts)


def _ids(name: str) -> str:
    """Return what the profile requires, then what this project adds, in italics."""
    required = [f"`{_WRITTEN[one]}`" for one in REQUIRED_IDS[name]]
    added = [f"*`{word[1:]}`*" for word in ROWS[name].split() if word[0] == "@"]
    return " ".join(required + added) or "–"


def _payload(name: str) -> str:
    words = [word for word in ROWS[name].split() if word[0] != "@"]
    return " ".join(_word(word) for word in words) or "–"


def _word(word: str) -> str:
    name, _, kind = word.removesuffix("?").partition(":")
    told = f"`{name}?`" if word.endswith("?") else f"`{name}`"
    return f"{told} ({_type(KINDS[kind])})" if kind else told


def fields() -> str:
    """Return a line for each name that a payload may have."""
    rows = [[f"`{name}`", _type(kind), note] for name, (kind, note) in FIELDS.items()]
    return table(["field", "type", ""], rows)


def beside() -> str:
    """Return a table for each object that stands in a benchmark fact beside its payload."""
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
    return table(["field", "type", ""], rows)


def _type(kind: object) -> str:
    """Return the type in the words of JSON; of objects of ours also their fields."""
    info = shapes.type_info(kind)
    inner = info.item_type if isinstance(info, shapes.ListType) else info
    told = type_text(info)
    if isinstance(inner, shapes.StructType):
        names = (_inner(field) for field in inner.fields)
        told += " {" + ", ".join(names) + "}"
    return told


def _inner(field: shapes.Field) -> str:
    words = field.type
    if isinstance(words, shapes.LiteralType):
        told = f"{field.encode_name}: {' '.join(map(str, words.values))}"
    else:
        told = field.encode_name
    return told if field.required else told + "?"
