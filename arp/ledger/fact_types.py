"""The closed list of fact types: the rows of all families, and the ids that each type needs.

The files in `families` define the rows: fields of the payload, required ids, effects on the read
models. A fact without its ids cannot be joined with other facts later, and a stored fact cannot be
changed. So such a fact is refused when it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from operator import attrgetter
from typing import Final

from msgspec.structs import fields

from arp.ledger.fact import SCHEMA_VERSION, WRITTEN, Fact
from arp.ledger.fact_family import FactFamily, FactType
from arp.ledger.families import (
    benchmarks,
    context,
    decisions,
    delegation,
    limits,
    models,
    results,
    sessions,
    tasks,
    tools,
)
from arp.protocol.errors import LocalError

FAMILIES: Final[tuple[FactFamily, ...]] = (
    *sessions.FAMILIES,
    *tasks.FAMILIES,
    *models.FAMILIES,
    *tools.FAMILIES,
    *decisions.FAMILIES,
    *context.FAMILIES,
    *limits.FAMILIES,
    *delegation.FAMILIES,
    *results.FAMILIES,
    *benchmarks.FAMILIES,
)
"""All families, in the order of the docs and the schemas."""

FACT_TYPES: Final[dict[str, FactType]] = {
    row.name: row for family in FAMILIES for row in family.all_types()
}
"""Fact type → its row."""

PROFILE_TYPES: Final = tuple(row.name for family in FAMILIES for row in family.types)
"""Types in the closed list of the profile."""

REQUIRED_IDS: Final[dict[str, tuple[str, ...]]] = {
    row.name: (*family.required_ids, *row.required_ids)
    for family in FAMILIES
    for row in family.all_types()
}
"""Fact type → attributes of `Fact` that it needs besides the eight that are always there."""

OBJECTS: Final = frozenset(("refs", "correlation", "telemetry", "benchmark", "comparison"))
"""Fields beside the payload that are objects, not texts."""

_CORRELATIONS: Final = tuple(field.name for field in fields(Fact) if not field.required)

_ALWAYS: Final = ("runtime_id", "session_id", "event_id", "timestamp")

_READERS: Final[dict[str, Callable[[Fact], tuple[object, ...]]]] = {
    name: attrgetter(*_ALWAYS, *ids) for name, ids in REQUIRED_IDS.items()
}


class ProfileViolation(LocalError):
    """A fact has an unknown type, lacks a field, or has a wrong value. Nothing was written."""


def check(fact: Fact) -> None:
    """Check that a fact can be joined with others: its type is known and it has all its ids.

    An empty text counts as a missing id. If an id is not known, the fact has `unknown`,
    `unavailable` or `stale` in its place. The sequence number and the schema version are checked
    too.

    Raises:
        ProfileViolation: The message names the type and the missing or wrong fields, as they are
            spelled in the log. Nothing was written.

    Source: ledger.md 1.
    """
    reader = _READERS.get(fact.type)
    if reader is None:
        raise ProfileViolation(unknown_type(fact.type))
    if not all(reader(fact)):
        raise ProfileViolation(_missing(fact))
    if fact.sequence < 1:
        raise ProfileViolation(_wrong(fact.type, "sequence", fact.sequence, "count from 1"))
    if fact.schema_version != SCHEMA_VERSION:
        problem = _wrong(fact.type, "schemaVersion", fact.schema_version, SCHEMA_VERSION)
        raise ProfileViolation(problem)


def check_ids(fact_type: str, ids: Mapping[str, object]) -> None:
    """Check the ids of a fact before it exists: a fact with these ids will pass `check`.

    Args:
        fact_type: Type of the fact, one of `FACT_TYPES`.
        ids: Correlation ids by attribute of `Fact`: texts, or objects for the names in `OBJECTS`.

    Raises:
        ProfileViolation: The message names the type and the missing or wrong id.
    """
    if fact_type not in REQUIRED_IDS:
        raise ProfileViolation(unknown_type(fact_type))
    missing = [WRITTEN[name] for name in REQUIRED_IDS[fact_type] if not ids.get(name)]
    if missing:
        raise ProfileViolation(f"profile validation failed: {fact_type} needs {', '.join(missing)}")
    for name, value in ids.items():
        if name not in _CORRELATIONS:
            near = get_close_matches(name, _CORRELATIONS, n=1, cutoff=0.0)
            raise ProfileViolation(
                f"profile validation failed: no id {name!r:.80}; the nearest is {near[0]}"
            )
        if name not in OBJECTS and not isinstance(value, str):
            raise ProfileViolation(_wrong(fact_type, WRITTEN[name], value, "a text"))
        if name in OBJECTS and not isinstance(value, dict):
            raise ProfileViolation(_wrong(fact_type, WRITTEN[name], value, "an object"))


def unknown_type(name: str) -> str:
    """Return the error message for an unknown type, with the most similar known type."""
    near = get_close_matches(name, REQUIRED_IDS, n=1, cutoff=0.0)
    return f"profile validation failed: no type {name!r:.80}; the nearest is {near[0]}"


def _missing(fact: Fact) -> str:
    names = [
        WRITTEN[name] for name in (*_ALWAYS, *REQUIRED_IDS[fact.type]) if not getattr(fact, name)
    ]
    return f"profile validation failed: {fact.type} needs {', '.join(names)}"


def _wrong(fact_type: str, field: str, value: object, expected: str) -> str:
    return f"profile validation failed: {fact_type} has {field} {value!r:.40}; expected: {expected}"
