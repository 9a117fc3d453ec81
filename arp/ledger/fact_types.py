"""The closed list of fact types, and which ids each of them must carry.

A fact without its ids cannot be joined to anything later, so it is refused when it is written, not
missed when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from operator import attrgetter
from typing import Final

from msgspec.structs import fields

from arp.ledger.fact import SCHEMA_VERSION, Fact
from arp.protocol.errors import LocalError

_TYPES: Final = """
session.created session.updated thread.started thread.updated
turn.submitted turn.started turn.completed turn.failed
task.created task.accepted task.queued task.started task.updated task.progress task.waiting
task.blocked task.paused task.resumed task.retrying task.cancel_requested task.cancelled
task.timed_out task.failed task.lost task.completed task.archived task.delegated
task.dependency.updated task.attempt.started task.attempt.completed task.attempt.failed
task.profile.resolved run.status
model.requested model.delta model.completed model.failed reasoning.delta reasoning.summary
tool.catalog.resolved tool.started tool.args tool.progress tool.result tool.failed
process.started process.output process.input process.completed process.failed process.terminated
output.spilled output.truncated output.redacted output.expired
action.required action.resolved permission.evaluated permission.requested permission.resolved
sandbox.applied sandbox.violation hook.started hook.completed hook.failed
policy.changed queue.changed
context.resolved context.compaction.started context.compaction.completed context.compaction.failed
history.window.loaded history.reconstructed history.rollback.started history.rollback.completed
routing.candidates.resolved routing.decided routing.fallback.applied routing.not_possible
routing.single_candidate
cost.estimated cost.recorded rate_limit.hit quota.low quota.blocked limit.changed
subagent.spawned subagent.status subagent.input subagent.completed subagent.failed subagent.closed
job.created job.started job.progress job.item.started job.item.completed job.item.failed
job.completed job.failed job.cancelled
channel.connected channel.disconnected channel.resumed channel.message
channel.permission_forwarded channel.permission_returned
artifact.changed evidence.changed snapshot.updated snapshot.repaired runtime.warning runtime.error
benchmark.dataset.resolved benchmark.configuration.resolved benchmark.trial.started
benchmark.trial.completed benchmark.trial.failed benchmark.reward.recorded
benchmark.comparison.completed
"""

_TURN: Final = "thread_id turn_id"

_RULES: Final = {
    "thread.": "thread_id",
    "turn.": _TURN,
    "model.": _TURN,
    "reasoning.": _TURN,
    "tool.": f"{_TURN} step_id tool_call_id",
    "action.": f"{_TURN} action_id",
    "permission.": _TURN,
    "sandbox.": _TURN,
    "hook.": _TURN,
    "context.": _TURN,
    "routing.": _TURN,
    "cost.": _TURN,
    "rate_limit.": _TURN,
    "quota.": _TURN,
    "task.": "task_id",
    "task.attempt.": "run_id",
    "subagent.": "subagent_id",
    "evidence.changed": "evidence_id",
    "benchmark.": "benchmark",
    "benchmark.trial.": "task_id run_id refs",
    "benchmark.trial.started": _TURN,
    "benchmark.reward.": "task_id run_id refs",
    "benchmark.comparison.completed": "comparison refs",
}
"""Family → what it needs besides; all rows that a type begins with add up (ledger.md 1)."""


def _required(fact_type: str) -> Iterator[str]:
    for family, names in _RULES.items():
        if fact_type.startswith(family):
            yield from names.split()


REQUIRED_IDS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(_required(name)) for name in _TYPES.split()
}
"""Every type of the profile → the attributes of `Fact` that it needs besides the eight."""

OBJECTS: Final = frozenset(("refs", "correlation", "telemetry", "benchmark", "comparison"))
"""What may stand beside the payload and is no text."""

_CORRELATIONS: Final = tuple(field.name for field in fields(Fact) if not field.required)

_ALWAYS: Final = ("runtime_id", "session_id", "event_id", "timestamp")

_READERS: Final[dict[str, Callable[[Fact], tuple[object, ...]]]] = {
    name: attrgetter(*_ALWAYS, *ids) for name, ids in REQUIRED_IDS.items()
}


class ProfileViolation(LocalError):
    """A fact of an unknown type, or without an id that its type needs. Nothing was written."""


def check(fact: Fact) -> None:
    """Guarantees that the fact can be joined: its type is known and its ids are all there.

    An empty text is a missing id; what is not known is written as `unknown`, `unavailable` or
    `stale`.

    Raises:
        ProfileViolation: The message names the type and the missing fields in the profile's
            spelling. Nothing was written.

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
        told = _wrong(fact.type, "schemaVersion", fact.schema_version, SCHEMA_VERSION)
        raise ProfileViolation(told)


def check_ids(fact_type: str, ids: Mapping[str, object]) -> None:
    """Guarantees that a fact of this type with these ids will pass `check`.

    Args:
        fact_type: Of the closed list.
        ids: Correlations by attribute of `Fact`: texts, and objects where the profile has such.

    Raises:
        ProfileViolation: The message names the type and what is missing or wrong.
    """
    if fact_type not in REQUIRED_IDS:
        raise ProfileViolation(unknown_type(fact_type))
    missing = [_camel(name) for name in REQUIRED_IDS[fact_type] if not ids.get(name)]
    if missing:
        raise ProfileViolation(f"profile validation failed: {fact_type} needs {', '.join(missing)}")
    for name, value in ids.items():
        if name not in _CORRELATIONS:
            near = get_close_matches(name, _CORRELATIONS, n=1, cutoff=0.0)
            raise ProfileViolation(
                f"profile validation failed: no id {name!r:.80}; the nearest is {near[0]}"
            )
        if name not in OBJECTS and not isinstance(value, str):
            raise ProfileViolation(_wrong(fact_type, _camel(name), value, "a text"))
        if name in OBJECTS and not isinstance(value, dict):
            raise ProfileViolation(_wrong(fact_type, _camel(name), value, "an object"))


def unknown_type(name: str) -> str:
    """Say that there is no such type, and which is nearest."""
    near = get_close_matches(name, REQUIRED_IDS, n=1, cutoff=0.0)
    return f"profile validation failed: no type {name!r:.80}; the nearest is {near[0]}"


def _missing(fact: Fact) -> str:
    names = [
        _camel(name) for name in (*_ALWAYS, *REQUIRED_IDS[fact.type]) if not getattr(fact, name)
    ]
    return f"profile validation failed: {fact.type} needs {', '.join(names)}"


def _wrong(fact_type: str, field: str, value: object, expected: str) -> str:
    return f"profile validation failed: {fact_type} has {field} {value!r:.40}; expected: {expected}"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
