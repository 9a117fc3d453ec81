"""Checks that the payload of a fact has the fields of its row in `fact_types.ROWS`.

The type and the meaning of each field are defined once, in `payload_fields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from arp.ledger.fact import ATTRIBUTES, WRITTEN
from arp.ledger.fact_types import ROWS, ProfileViolation, unknown_type
from arp.ledger.payload_fields import BESIDE, FIELDS, KINDS
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.validate import explain

TOGETHER: Final = {"cost.recorded": ("amount", "currency")}
"""Fact type → two fields that are both present or both absent. An amount needs its currency."""

ONLY_IF: Final = {"permission.resolved": ("deniedBy", "decision", "deny")}
"""Fact type → a field that is present if and only if another field has the given value."""


class PayloadRow(Struct, frozen=True):
    """Content of a fact of one type."""

    shape: type[Struct]
    """Struct of the payload. Unknown fields are ignored when a payload is checked against it."""
    correlations: tuple[str, ...]
    """Ids beside the payload that this project writes, in addition to `REQUIRED_IDS`."""


@cache
def row(fact_type: str) -> PayloadRow:
    """Return the row of a type, parsed.

    Raises:
        ProfileViolation: The type is unknown.
    """
    if fact_type not in ROWS:
        raise ProfileViolation(unknown_type(fact_type))
    words = ROWS[fact_type].split()
    fields = [_field(word) for word in words if word[0] != "@"]
    named = fact_type.title().replace(".", "").replace("_", "")
    shape = msgspec.defstruct(named, fields, kw_only=True, frozen=True, module=__name__)
    return PayloadRow(shape, tuple(ATTRIBUTES[word[1:]] for word in words if word[0] == "@"))


def _field(word: str) -> tuple[str, Any] | tuple[str, Any, Any]:
    name, _, kind = word.removesuffix("?").partition(":")
    annotation = KINDS[kind] if kind else FIELDS[name][0]
    return (name, annotation | UnsetType, UNSET) if word.endswith("?") else (name, annotation)


def check_payload(fact_type: str, payload: JsonObject, ids: Mapping[str, Json]) -> None:
    """Check that a fact has the fields and ids of its type.

    Args:
        fact_type: Type of the fact, one of `ROWS`.
        payload: Payload of the fact, plain JSON. Unknown fields are accepted.
        ids: Correlation ids by field name, for example `request_id`.

    Raises:
        ProfileViolation: The message names the type, the field and the expected value. Nothing was
            written.
    """
    expected = row(fact_type)
    missing = [name for name in expected.correlations if not ids.get(name)]
    if missing:
        names = ", ".join(WRITTEN[name] for name in missing)
        raise ProfileViolation(f"profile validation failed: {fact_type} needs {names}")
    _check_shape(fact_type, "payload", payload, expected.shape)
    _check_together(fact_type, payload)
    if fact_type.startswith("benchmark."):
        for name, shape in BESIDE.items():
            if ids.get(name) is not None:
                _check_shape(fact_type, name, ids[name], shape)


def _check_together(fact_type: str, payload: JsonObject) -> None:
    problem = ""
    if fact_type in TOGETHER:
        one, other = TOGETHER[fact_type]
        if (one in payload) != (other in payload):
            problem = f"{one} and {other} stand there both or not at all"
    if fact_type in ONLY_IF:
        name, other, value = ONLY_IF[fact_type]
        if (name in payload) != (payload[other] == value):
            problem = f"{name} stands there exactly if {other} is {value}"
    if problem:
        raise ProfileViolation(f"profile validation failed: {fact_type}: payload: {problem}")


def _check_shape(fact_type: str, where: str, value: Json, shape: Any) -> None:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError:
        problem = explain(value, shape, where)
        raise ProfileViolation(f"profile validation failed: {fact_type}: {problem}") from None
