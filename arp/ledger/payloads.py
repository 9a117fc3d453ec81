"""What the payload of each fact holds, in one table, and the check that it does.

Theory of operation. A row names the fields that a payload of this project holds: `x` always, `x?`
where it applies, `x:kind` with a type of its own, `@x` a correlation id that stands in the fact
beside its payload. What a field is, is told once, in `payload_fields`. More fields may stand in a
payload (ledger.md 1 leaves it open): extensions go there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from arp.ledger.fact import Fact
from arp.ledger.fact_types import ProfileViolation, unknown_type
from arp.ledger.payload_fields import BESIDE, FIELDS, KINDS
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.validate import explain

ROWS: Final[dict[str, str]] = {
    # the session, its thread, its turns
    "session.created": "@threadId epoch workflow owner? title?",
    "session.updated": "title? pinned? branch? state:object?",
    "thread.started": "title?",
    "thread.updated": "reason? @status",
    "turn.submitted": "input renderer? edits? origin?",
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
    "model.requested": "model provider? @modelRequestId",
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
    "action.required": "component surface tool? askedBy?",
    "action.resolved": "decision resumes answer? input? grant?",
    "permission.evaluated": "tool decision:verdict decidedBy @requestId",
    "permission.requested": "tool reason? @requestId",
    "permission.resolved": "tool decision:resolution deniedBy? @requestId",
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
    "cost.recorded": "model inputTokens outputTokens cachedInputTokens? amount? currency?",
    "rate_limit.hit": "limit retryAfterS? provider?",
    "quota.low": "quota remaining total? unit?",
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
    "artifact.changed": "surface? changes? inputId? anew? name? mime? bytes? sha256? @artifactId",
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
    "benchmark.reward.recorded": "reward detail?",
    "benchmark.comparison.completed": "reason?",
}
"""Every type of the profile → what its payload holds."""

TOGETHER: Final = {"cost.recorded": ("amount", "currency")}
"""Type → fields that stand there both or not at all: an amount of nothing means nothing."""

ONLY_IF: Final = {"permission.resolved": ("deniedBy", "decision", "deny")}
"""Type → a field that stands there exactly if another one has a value."""

_ATTRIBUTES: Final = {field.encode_name: field.name for field in msgspec.structs.fields(Fact)}
"""Name of a field in the log → its name here."""

_CAMEL: Final = {name: written for written, name in _ATTRIBUTES.items()}


class Row(Struct, frozen=True):
    """What a fact of one type holds."""

    shape: type[Struct]
    """Its payload; `None` stands for nothing, other fields are passed over."""
    correlations: tuple[str, ...]
    """Ids that this project writes beside it, besides those of `REQUIRED_IDS`."""


@cache
def row(fact_type: str) -> Row:
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
    return Row(shape, tuple(_ATTRIBUTES[word[1:]] for word in words if word[0] == "@"))


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
        names = ", ".join(_CAMEL[name] for name in missing)
        raise ProfileViolation(f"profile validation failed: {fact_type} needs {names}")
    _check_shape(fact_type, "payload", payload, expected.shape)
    _check_together(fact_type, payload)
    if fact_type.startswith("benchmark."):
        for name, shape in BESIDE.items():
            if ids.get(name) is not None:
                _check_shape(fact_type, name, ids[name], shape)


def _check_together(fact_type: str, payload: JsonObject) -> None:
    told = ""
    if fact_type in TOGETHER:
        one, other = TOGETHER[fact_type]
        if (one in payload) != (other in payload):
            told = f"{one} and {other} stand there both or not at all"
    if fact_type in ONLY_IF:
        name, other, value = ONLY_IF[fact_type]
        if (name in payload) != (payload[other] == value):
            told = f"{name} stands there exactly if {other} is {value}"
    if told:
        raise ProfileViolation(f"profile validation failed: {fact_type}: payload: {told}")


def _check_shape(fact_type: str, where: str, value: Json, shape: Any) -> None:
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError:
        told = explain(value, shape, where)
        raise ProfileViolation(f"profile validation failed: {fact_type}: {told}") from None
