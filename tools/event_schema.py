"""The JSON Schemas of a fact: as any runtime may write it, and as this project does."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from arp.ledger.fact import SCHEMA_VERSION, Fact
from arp.ledger.fact_types import REQUIRED_IDS
from arp.ledger.payload_fields import BESIDE
from arp.ledger.payloads import ONLY_IF, TOGETHER, row
from arp.protocol.json_value import Json, JsonObject

DIALECT = "https://json-schema.org/draft/2020-12/schema"

END = r"(?![\s\S])"
"""The end of the text in every dialect of patterns; `\\Z` is Python's own."""

RFC_3339 = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)" + END

_FIELDS = msgspec.structs.fields(Fact)

_WRITTEN = {field.name: field.encode_name for field in _FIELDS}

_ALWAYS = [field.encode_name for field in _FIELDS if field.required]

_TEXT: JsonObject = {"type": "string", "minLength": 1}


def tolerant() -> JsonObject:
    """Gives the schema of a fact of any runtime: what is not known passes."""
    return {
        "$schema": DIALECT,
        "$id": "urn:arp:agentruntime:event",
        "title": "A fact of an agent runtime",
        "description": "Fields and types that are not known pass.",
        "type": "object",
        "required": _ALWAYS,
        "properties": {
            **_envelope(),
            "schemaVersion": _TEXT,
            "type": {"type": "string", "pattern": r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+" + END},
        },
    }


def strict() -> JsonObject:
    """Gives the schema of a fact as this project writes it: closed list, ids, payloads."""
    shapes, parts = msgspec.json.schema_components(
        [row(name).shape for name in REQUIRED_IDS] + list(BESIDE.values()),
        ref_template="#/$defs/{name}",
    )
    references = dict(zip([*REQUIRED_IDS, *BESIDE], shapes, strict=True))
    for name in TOGETHER.keys() | ONLY_IF.keys():
        parts[row(name).shape.__name__].update(_together(name))
    schema = {
        "$schema": DIALECT,
        "$id": "urn:arp:agentruntime:lime-profile-event:0.4.0",
        "title": f"A fact of the profile {SCHEMA_VERSION}",
        "description": "A payload may have more fields than are told here; nothing else may.",
        "type": "object",
        "required": _ALWAYS,
        "properties": {
            **_envelope(),
            "schemaVersion": {"const": SCHEMA_VERSION},
            "type": {"enum": list(REQUIRED_IDS)},
        },
        "additionalProperties": False,
        "allOf": [*_ids(), *_beside(references), *_payloads(references)],
        "$defs": parts,
    }
    tidied: JsonObject = _tidied(schema)
    return tidied


def _envelope() -> JsonObject:
    """Gives what stands around a payload."""
    any_object = ("refs", "correlation", "telemetry", "benchmark", "comparison")
    loose: JsonObject = {
        field.encode_name: {"type": ["object", "array"] if field.name == "refs" else "object"}
        for field in _FIELDS
        if field.name in any_object
    }
    return {
        **{field.encode_name: _TEXT for field in _FIELDS},
        **loose,
        "timestamp": {"type": "string", "format": "date-time", "pattern": RFC_3339},
        "sequence": {"type": "integer", "minimum": 1},
        "payload": {"type": "object"},
    }


def _ids() -> list[JsonObject]:
    """Gives for each set of ids the types that need it."""
    needing: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, required in REQUIRED_IDS.items():
        ids = (*required, *row(name).correlations)
        needing[tuple(_WRITTEN[one] for one in dict.fromkeys(ids))].append(name)
    return [_when(names, {"required": list(ids)}) for ids, names in needing.items() if ids]


def _beside(references: dict[str, Any]) -> list[JsonObject]:
    names = [name for name in REQUIRED_IDS if name.startswith("benchmark.")]
    return [_when(names, {"properties": {name: references[name] for name in BESIDE}})]


def _payloads(references: dict[str, Any]) -> list[JsonObject]:
    return [
        _when([name], {"properties": {"payload": references[name]}})
        for name in REQUIRED_IDS
        if row(name).shape.__struct_fields__
    ]


def _when(names: list[str], then: JsonObject) -> JsonObject:
    kind = {"const": names[0]} if len(names) == 1 else {"enum": names}
    return {"if": {"properties": {"type": kind}, "required": ["type"]}, "then": then}


def _together(name: str) -> JsonObject:
    if name in TOGETHER:
        one, other = TOGETHER[name]
        return {"dependentRequired": {one: [other], other: [one]}}
    field, other, value = ONLY_IF[name]
    return {
        "if": {"properties": {other: {"const": value}}},
        "then": {"required": [field]},
        "else": {"not": {"required": [field]}},
    }


def _tidied(part: Json, name: str = "") -> Json:
    """Gives a schema with one-line descriptions, patterns of ECMAScript, and no needless titles."""
    if isinstance(part, dict):
        needless = name != "" and isinstance(part.get("title"), str)
        return {
            key: _tidied(value, key)
            for key, value in part.items()
            if not (needless and key == "title")
        }
    if isinstance(part, list):
        return [_tidied(item, name) for item in part]
    if name == "description" and isinstance(part, str):
        return " ".join(part.partition("\n\n")[0].split())
    return part.replace(r"\Z", END) if name == "pattern" else part
