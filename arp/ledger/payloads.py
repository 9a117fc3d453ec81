"""The check that the payload of a fact holds what its row of `fact_types.ROWS` says.

What a field is, is told once, in `payload_fields`.
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
"""Type → fields that stand there both or not at all: an amount of nothing means nothing."""

ONLY_IF: Final = {"permission.resolved": ("deniedBy", "decision", "deny")}
"""Type → a field that stands there exactly if another one has a value."""


class PayloadRow(Struct, frozen=True):
    """What a fact of one type holds."""

    shape: type[Struct]
    """Its payload; `None` stands for nothing, other fields are passed over."""
    correlations: tuple[str, ...]
    """Ids that this project writes beside it, besides those of `REQUIRED_IDS`."""


@cache
def row(fact_type: str) -> PayloadRow:
    """Return what the table says of a type.

    Raises:
        ProfileViolation: There is no such type.
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
    """Guarantees that a fact holds what its type promises to those who read it.

    Args:
        fact_type: Of the closed list.
        payload: Plain JSON. Fields that the table does not know are let through.
        ids: Correlations by field name, `request_id` say.

    Raises:
        ProfileViolation: The message names the type, the field and what was expected. Nothing was
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
