"""The JSON Schemas of a fact: of any runtime, of the profile, and as this project writes it.

The first two accept the same facts as the published schemas with these names. The third also checks
the additional promises of this project.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from arp.ledger.fact import SCHEMA_VERSION, WRITTEN, Fact
from arp.ledger.fact_family import BothOrNeither, OnlyIf
from arp.ledger.fact_types import FACT_TYPES, PROFILE_TYPES, REQUIRED_IDS
from arp.ledger.payload_fields import BESIDE
from arp.ledger.payloads import payload_struct
from arp.protocol.json_value import Json, JsonObject

DIALECT = "https://json-schema.org/draft/2020-12/schema"

END = r"(?![\s\S])"
"""End of a text in every dialect of regular expressions; Python alone has `\\Z`."""

RFC_3339 = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)" + END

_FIELDS = msgspec.structs.fields(Fact)


_ALWAYS = [field.encode_name for field in _FIELDS if field.required]

_TEXT: JsonObject = {"type": "string", "minLength": 1}
_STRING: JsonObject = {"type": "string"}
_OBJECT: JsonObject = {"type": "object"}
_TIME: JsonObject = {"type": "string", "format": "date-time"}

_IDS = """
eventId sessionId threadId turnId taskId runId attemptId parentTaskId rootTaskId stepId toolCallId
actionId subagentId artifactId evidenceId requestId processId channelId jobId jobItemId outputRef
modelRequestId queueId
"""
"""Fields of a fact that are non-empty texts, in facts of any runtime."""

_STRINGS = "schemaVersion runtimeId nativeStatus traceId spanId status phase statusReason"

_OBJECTS = """
task taskAttempt taskRelationship taskGraph taskProgress taskAcceptance worker deliveryState refs
permissionDecision sandboxProfile routingDecision candidateModelSet taskProfile limitState
limitEvent costState hookRun executionEnvironment channel job jobItem output historyBoundary
telemetry correlation
"""

_BENCHMARK_TEXTS = """
datasetId datasetVersion datasetRef taskId trialId configurationId harborJobRef harborTrialRef
singleChangedVariable
"""

_PARTS: dict[str, JsonObject] = {
    "benchmark": {
        **dict.fromkeys(_BENCHMARK_TEXTS.split(), _STRING),
        "role": {"enum": ["baseline", "candidate", "control"]},
    },
    "trajectory": {
        "schema": _STRING,
        "ref": _STRING,
        "exportStatus": {"enum": ["pending", "exported", "failed", "redacted", "not-supported"]},
        "requiredFieldStatus": _OBJECT,
    },
    "reward": {
        "value": {"type": "number"},
        "ref": _STRING,
        "detailsRef": _STRING,
        "criteria": {"type": "array", "items": _STRING},
        "failureCategory": _STRING,
    },
    "comparison": {
        "meanRewardDelta": {"type": "number"},
        "timeoutRateDelta": {"type": "number"},
        "evidenceCompletenessRate": {"type": "number"},
        "p0QcGateRegressionCount": {"type": "integer", "minimum": 0},
        "decision": _STRING,
    },
}
"""Objects of a benchmark fact, and their typed fields."""


def public() -> JsonObject:
    """Return the schema of a fact of any runtime; unknown fields are allowed."""
    return {
        "$schema": DIALECT,
        "$id": "urn:arp:agentruntime:event",
        "title": "A fact of an agent runtime",
        "description": "Unknown fields are allowed; unknown types are not.",
        **_of_any_runtime(),
    }


def profile() -> JsonObject:
    """Return the schema of a fact of the profile, which is equivalent to the published schema."""
    return {
        "$schema": DIALECT,
        "$id": "urn:arp:agentruntime:lime-profile-event:0.4.0",
        "title": f"A fact of the profile {SCHEMA_VERSION}",
        "description": "arp-facts.schema.json has the additional promises of this project.",
        "allOf": [
            _of_any_runtime(),
            {
                "type": "object",
                "required": _ALWAYS,
                "properties": {
                    "schemaVersion": {"const": SCHEMA_VERSION},
                    "runtimeId": _TEXT,
                    "payload": _OBJECT,
                },
            },
            *_ids({name: REQUIRED_IDS[name] for name in PROFILE_TYPES}),
        ],
    }


def strict() -> JsonObject:
    """Return the schema of a fact as this project writes it: closed list, ids, payloads."""
    shapes, parts = msgspec.json.schema_components(
        [payload_struct(name) for name in FACT_TYPES] + list(BESIDE.values()),
        ref_template="#/$defs/{name}",
    )
    references = dict(zip([*FACT_TYPES, *BESIDE], shapes, strict=True))
    for name, row in FACT_TYPES.items():
        if row.relation is not None:
            parts[payload_struct(name).__name__].update(_relation(row.relation))
    needed = {name: (*REQUIRED_IDS[name], *row.written_ids) for name, row in FACT_TYPES.items()}
    schema = {
        "$schema": DIALECT,
        "$id": "urn:arp:facts:1",
        "title": f"A fact of the profile {SCHEMA_VERSION} as ARP writes it",
        "description": "Only a payload may have further fields.",
        "type": "object",
        "required": _ALWAYS,
        "properties": {
            **_envelope(),
            "schemaVersion": {"const": SCHEMA_VERSION},
            "type": {"enum": list(FACT_TYPES)},
        },
        "additionalProperties": False,
        "allOf": [*_ids(needed), *_beside(references), *_payloads(references)],
        "$defs": parts,
    }
    tidied: JsonObject = _tidied(schema)
    return tidied


def _of_any_runtime() -> JsonObject:
    parts = {name: {"type": "object", "properties": inner} for name, inner in _PARTS.items()}
    return {
        "type": "object",
        "required": ["type", "eventId", "timestamp"],
        "properties": {
            "type": {"type": "string", "enum": list(PROFILE_TYPES)},
            "payload": {"type": ["object", "array", "string", "number", "boolean", "null"]},
            "timestamp": _TIME,
            "sequence": {"type": "integer", "minimum": 0},
            **dict.fromkeys(_STRINGS.split(), _STRING),
            **dict.fromkeys(_IDS.split(), _TEXT),
            **dict.fromkeys(_OBJECTS.split(), _OBJECT),
            **parts,
        },
    }


def _envelope() -> JsonObject:
    """Return the fields of a fact besides the payload, as this project writes them."""
    objects = ("refs", "correlation", "telemetry", *BESIDE)
    return {
        **{field.encode_name: _TEXT for field in _FIELDS},
        **dict.fromkeys(objects, _OBJECT),
        "timestamp": {**_TIME, "pattern": RFC_3339},
        "sequence": {"type": "integer", "minimum": 1},
        "payload": _OBJECT,
    }


def _ids(needed: dict[str, tuple[str, ...]]) -> list[JsonObject]:
    """Return the types that need each set of ids."""
    needing: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, ids in needed.items():
        needing[tuple(WRITTEN[one] for one in dict.fromkeys(ids))].append(name)
    return [_when(names, {"required": list(ids)}) for ids, names in needing.items() if ids]


def _beside(references: dict[str, Any]) -> list[JsonObject]:
    names = [name for name in FACT_TYPES if name.startswith("benchmark.")]
    return [_when(names, {"properties": {name: references[name] for name in BESIDE}})]


def _payloads(references: dict[str, Any]) -> list[JsonObject]:
    return [
        _when([name], {"properties": {"payload": references[name]}})
        for name, row in FACT_TYPES.items()
        if row.fields
    ]


def _when(names: list[str], then: JsonObject) -> JsonObject:
    kind = {"const": names[0]} if len(names) == 1 else {"enum": names}
    return {"if": {"properties": {"type": kind}, "required": ["type"]}, "then": then}


def _relation(relation: BothOrNeither | OnlyIf) -> JsonObject:
    """Return the schema of a rule about two fields."""
    match relation:
        case BothOrNeither(one, other):
            names = {one.name: [other.name], other.name: [one.name]}
            return {"dependentRequired": names}
        case OnlyIf(field, other, value):
            return {
                "if": {"properties": {other.name: {"const": value}}},
                "then": {"required": [field.name]},
                "else": {"not": {"required": [field.name]}},
            }


def _tidied(part: Json, name: str = "") -> Json:
    """Return a schema with one-line descriptions, ECMAScript patterns and no redundant titles."""
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
