"""The closed list of fact types, with the fields of each payload and the ids that each needs.

A fact without its ids cannot be joined with other facts later. So it is refused when it is written;
when it is read it would be too late.

A row names the fields of a payload that this project writes: `x` is always present, `x?` is present
where it applies, `x:kind` has a type of its own, and `@x` is a correlation id in the fact itself,
beside the payload. A payload may have more fields (ledger.md 1 leaves it open). Extensions belong
there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from operator import attrgetter
from typing import Final

from msgspec.structs import fields

from arp.ledger.fact import SCHEMA_VERSION, WRITTEN, Fact
from arp.protocol.errors import LocalError

ROWS: Final[dict[str, str]] = {
    # the session, its thread, its turns
    "session.created": "@threadId epoch workflow owner? title?",
    "session.updated": (
        "title? pinned? branch? state:object? sharedState:object? commands? viewer? settings? "
        "feedback?"
    ),
    "thread.started": "title?",
    "thread.updated": "reason? @status",
    "turn.submitted": "input renderer? edits? origin? answers?",
    "turn.started": "",
    "turn.completed": "status usage? @status",
    "turn.failed": "status usage? @status @statusReason",
    # tasks
    "task.created": "objective dependsOn? detail?",
    "task.accepted": "reason?",
    "task.queued": "position? reason?",
    "task.started": "",
    "task.updated": "objective? detail?",
    "task.progress": "fraction? done? total? message?",
    "task.waiting": "waitingFor reason?",
    "task.blocked": "reason blockedBy?",
    "task.paused": "reason?",
    "task.resumed": "reason?",
    "task.retrying": "attempt reason?",
    "task.cancel_requested": "reason?",
    "task.cancelled": "reason?",
    "task.timed_out": "timeoutS? reason?",
    "task.failed": "reason",
    "task.lost": "reason",
    "task.completed": "outputs? artifacts? evidenceRefs? delivery?",
    "task.archived": "reason?",
    "task.delegated": "to reason?",
    "task.dependency.updated": "dependsOn",
    "task.attempt.started": "attempt",
    "task.attempt.completed": "attempt outputs?",
    "task.attempt.failed": "attempt reason retryable?",
    "task.profile.resolved": "profile",
    "run.status": "inputId? reason? @status",
    # models
    "model.requested": (
        "model provider? parameters? tools? messages? messagesLeftOut? @modelRequestId"
    ),
    "model.delta": "text",
    "model.completed": "model usage? finishReason? @modelRequestId",
    "model.failed": "model error retryable? @modelRequestId",
    "reasoning.delta": "text",
    "reasoning.summary": "text",
    # tools, processes, output
    "tool.catalog.resolved": "tools",
    "tool.started": "tool",
    "tool.args": "tool args",
    "tool.progress": "text done? total?",
    "tool.result": "tool preview? characters? durationMs?",
    "tool.failed": "tool error durationMs?",
    "process.started": "command cwd? pid? @processId",
    "process.output": "stream preview bytes @processId",
    "process.input": "bytes preview? @processId",
    "process.completed": "exitCode durationMs? @processId",
    "process.failed": "reason exitCode? durationMs? @processId",
    "process.terminated": "signal reason? durationMs? @processId",
    "output.spilled": "bytes sha256 preview? mime? file? @outputRef",
    "output.truncated": "bytes keptBytes reason",
    "output.redacted": "findings",
    "output.expired": "reason @outputRef",
    # what people and policies decide
    "action.required": (
        "component surface name? tool? askedBy? args? digest? sessionRule? editable? expiresAt?"
    ),
    "action.resolved": "decision resumes ends? answer? input? grant?",
    "permission.evaluated": "tool decision:verdict decidedBy scope? digest? @requestId",
    "permission.requested": (
        "tool reason? digest? files? sessionRule? editable? expiresAt? @requestId"
    ),
    "permission.resolved": (
        "tool decision:resolution deniedBy? scope? digest? files? edited? reason? @requestId"
    ),
    "sandbox.applied": "sandbox mode? network? readable? writable?",
    "sandbox.violation": "sandbox operation target?",
    "hook.started": "hook event? @requestId",
    "hook.completed": "hook decision:verdict? durationMs? @requestId",
    "hook.failed": "hook reason durationMs? @requestId",
    "policy.changed": "policy value previous?",
    "queue.changed": "queued input? paused? @threadId",
    # context and history
    "context.resolved": "tokens? maxTokens? sources?",
    "context.compaction.started": "reason? tokensBefore? @requestId",
    "context.compaction.completed": (
        "tokensBefore? tokensAfter? throughSequence? summary? @requestId"
    ),
    "context.compaction.failed": "reason @requestId",
    "history.window.loaded": "fromSequence throughSequence reason?",
    "history.reconstructed": "throughSequence source",
    "history.rollback.started": "toSequence reason? @requestId",
    "history.rollback.completed": "toSequence removedTurns restoredTurns? @requestId",
    # routing, cost, limits
    "routing.candidates.resolved": "candidates",
    "routing.decided": "model provider? reason",
    "routing.fallback.applied": "failedModel model reason",
    "routing.not_possible": "reason candidates?",
    "routing.single_candidate": "model provider?",
    "cost.estimated": "amount currency model? inputTokens? outputTokens?",
    "cost.recorded": "model inputTokens? outputTokens? cachedInputTokens? amount? currency?",
    "rate_limit.hit": "limit retryAfterS? resetsAt? provider?",
    "quota.low": "quota remaining total? unit? resetsAt?",
    "quota.blocked": "quota remaining total? unit? resetsAt?",
    "limit.changed": "limit value previous?",
    # delegation, background work, channels
    "subagent.spawned": "name? objective?",
    "subagent.status": "message? @status",
    "subagent.input": "text",
    "subagent.completed": "outputs?",
    "subagent.failed": "reason",
    "subagent.closed": "reason?",
    "job.created": "name? total? @jobId",
    "job.started": "@jobId",
    "job.progress": "done total? message? @jobId",
    "job.item.started": "attempt @jobId @jobItemId",
    "job.item.completed": "attempt outputs? @jobId @jobItemId",
    "job.item.failed": "attempt reason retryable? @jobId @jobItemId",
    "job.completed": "done failed? @jobId",
    "job.failed": "reason @jobId",
    "job.cancelled": "reason? @jobId",
    "channel.connected": "features encoding @channelId",
    "channel.disconnected": "reason? @channelId",
    "channel.resumed": "features encoding @channelId",
    "channel.message": "direction text? @channelId",
    "channel.permission_forwarded": "tool to @channelId @requestId",
    "channel.permission_returned": "tool decision:resolution @channelId @requestId",
    # what lasts
    "artifact.changed": (
        "surface? changes? info? role? closed? leaving? inputId? fromSession? anew? name?"
        " mime? bytes? sha256? @artifactId"
    ),
    "evidence.changed": "kind state reason? sha256? throughSequence? gaps? verification?",
    "snapshot.updated": "readModel throughSequence bytes?",
    "snapshot.repaired": "readModel throughSequence reason",
    "runtime.warning": "message detail?",
    "runtime.error": "error code retryable detail?",
    # benchmarks: most is in `benchmark`, `comparison` and `refs`, beside the payload
    "benchmark.dataset.resolved": "tasks?",
    "benchmark.configuration.resolved": "configuration",
    "benchmark.trial.started": "attempt?",
    "benchmark.trial.completed": "durationMs?",
    "benchmark.trial.failed": "reason durationMs?",
    "benchmark.reward.recorded": "reward detail? criteria?",
    "benchmark.comparison.completed": "reason?",
}
"""Fact type → row of its payload. These are all types of the profile."""

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
"""Prefix of a type → additional fields that it needs. All rows with a matching prefix add up
(ledger.md 1)."""


def _required(fact_type: str) -> Iterator[str]:
    for family, names in _RULES.items():
        if fact_type.startswith(family):
            yield from names.split()


REQUIRED_IDS: Final[dict[str, tuple[str, ...]]] = {name: tuple(_required(name)) for name in ROWS}
"""Fact type → attributes of `Fact` that it needs besides the eight that are always there."""

OBJECTS: Final = frozenset(("refs", "correlation", "telemetry", "benchmark", "comparison"))
"""Fields beside the payload that are objects, not texts."""

_CORRELATIONS: Final = tuple(field.name for field in fields(Fact) if not field.required)

_ALWAYS: Final = ("runtime_id", "session_id", "event_id", "timestamp")

_READERS: Final[dict[str, Callable[[Fact], tuple[object, ...]]]] = {
    name: attrgetter(*_ALWAYS, *ids) for name, ids in REQUIRED_IDS.items()
}


class ProfileViolation(LocalError):
    """A fact has an unknown type, or lacks an id that its type needs. Nothing was written."""


def check(fact: Fact) -> None:
    """Check that a fact can be joined with others: its type is known and it has all its ids.

    An empty text counts as a missing id. An unknown id is written as `unknown`, `unavailable` or
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
        problem = _wrong(fact.type, "schemaVersion", fact.schema_version, SCHEMA_VERSION)
        raise ProfileViolation(problem)


def check_ids(fact_type: str, ids: Mapping[str, object]) -> None:
    """Check the ids of a fact before it exists: a fact with these ids will pass `check`.

    Args:
        fact_type: Type of the fact, one of `ROWS`.
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
