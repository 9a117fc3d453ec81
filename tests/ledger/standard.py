"""The schemas of the Agent Runtime standard 0.4 and its Lime profile, made again from their text.

Nothing here comes from this project's own tables: a test that uses these schemas judges by the
standard alone. `DIGESTS` has the SHA-256 of the published schemas, without titles and addresses, so
a difference from them cannot slip in.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker

DIGESTS: Final = {
    "base event": "3afe080515c63b7c538ce4a22225468db79dc8108d6bf21df9e3763c3efcac49",
    "profile event": "371a68b95e6d50b091f5972e70f745263acee58622bccd4412a050f522ec55aa",
    "base snapshot": "0351810b90a8f0c9101d505c0cebbc09798a0a536f0eac8bfb94f29e4754404e",
    "profile snapshot": "49f243467734d624fd29ae7c3d7f93908f2a5c6e16a77cab7409257a1334601e",
}
"""Of the published schemas, by `digest`."""

VERSION: Final = "lime-profile-0.4.0"

_TYPES: Final = """
session: created updated
thread: started updated
turn: submitted started completed failed
task: created accepted queued started updated progress waiting blocked paused resumed retrying
task: cancel_requested cancelled timed_out failed lost completed archived
run: status
model: requested delta completed failed
reasoning: delta summary
tool: catalog.resolved started args progress result failed
action: required resolved
queue: changed
context: resolved compaction.started compaction.completed compaction.failed
artifact: changed
evidence: changed
subagent: spawned status input completed failed closed
limit: changed
snapshot: updated
runtime: warning error
permission: evaluated requested resolved
sandbox: applied violation
hook: started completed failed
policy: changed
process: started output input completed failed terminated
task: profile.resolved
routing: candidates.resolved decided fallback.applied not_possible single_candidate
task: delegated dependency.updated attempt.started attempt.completed attempt.failed
cost: estimated recorded
rate_limit: hit
quota: low blocked
channel: connected disconnected resumed message permission_forwarded permission_returned
job: created started progress item.started item.completed item.failed completed failed cancelled
output: spilled truncated redacted expired
history: window.loaded reconstructed rollback.started rollback.completed
snapshot: repaired
benchmark: dataset.resolved configuration.resolved trial.started trial.completed trial.failed
benchmark: reward.recorded comparison.completed
"""

TYPES: Final = [
    f"{family}.{name}"
    for family, _, names in (line.partition(":") for line in _TYPES.strip().splitlines())
    for name in names.split()
]
"""The closed list of event types."""

_EVENT_IDS: Final = """
eventId sessionId threadId turnId taskId runId attemptId parentTaskId rootTaskId stepId toolCallId
actionId subagentId artifactId evidenceId requestId processId channelId jobId jobItemId outputRef
modelRequestId queueId
"""

_EVENT_TEXTS: Final = """
schemaVersion runtimeId nativeStatus traceId spanId status phase statusReason
"""

_EVENT_OBJECTS: Final = """
task taskAttempt taskRelationship taskGraph taskProgress taskAcceptance worker deliveryState refs
permissionDecision sandboxProfile routingDecision candidateModelSet taskProfile limitState
limitEvent costState hookRun executionEnvironment channel job jobItem output historyBoundary
telemetry correlation
"""

_IN_TURNS: Final = (
    "turn|model|reasoning|tool|action|permission|sandbox|hook|context|routing|cost|rate_limit|quota"
)

_NEEDS: Final = (
    ("^thread\\.", "threadId"),
    (f"^({_IN_TURNS})\\.", "threadId turnId"),
    ("^tool\\.", "stepId toolCallId"),
    ("^action\\.", "actionId"),
    ("^task\\.", "taskId"),
    ("^task\\.attempt\\.", "runId"),
    ("^subagent\\.", "subagentId"),
    ("evidence.changed", "evidenceId"),
    ("^benchmark\\.", "benchmark"),
    ("^benchmark\\.(trial|reward)\\.", "taskId runId refs"),
    ("benchmark.trial.started", "threadId turnId"),
    ("benchmark.comparison.completed", "comparison refs"),
)
"""Pattern of a type, or a type → what an event of the profile needs besides."""

_THREAD_STATUSES: Final = "idle queued running blocked completed failed cancelled stale unknown"

_ATTEMPT_STATUSES: Final = """
idle queued preparing running blocked streaming retrying completed failed cancelled stale unknown
unavailable not_applicable
"""

_TASK_STATUSES: Final = """
draft accepted queued preparing running waiting_input waiting_permission waiting_resource blocked
paused retrying cancelling cancelled timed_out failed lost completed archived stale unknown
"""

_NAME: Final = {"type": "string", "minLength": 1}
_TEXT: Final = {"type": "string"}
_OBJECT: Final = {"type": "object"}
_ARRAY: Final = {"type": "array"}
_OBJECTS: Final = {"type": "array", "items": _OBJECT}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_TIME: Final = {"type": "string", "format": "date-time"}
_NUMBER: Final = {"type": "number"}
_COUNT: Final = {"type": "integer", "minimum": 0}

Schema = dict[str, Any]


def _all(names: str, schema: Schema) -> Schema:
    return dict.fromkeys(names.split(), schema)


def _one_of(words: str) -> Schema:
    return {"enum": words.split()}


def _benchmark_objects() -> Schema:
    texts = "datasetId datasetVersion datasetRef taskId trialId configurationId harborJobRef"
    parts: Schema = {
        "benchmark": {
            **_all(f"{texts} harborTrialRef singleChangedVariable", _TEXT),
            "role": _one_of("baseline candidate control"),
        },
        "trajectory": {
            **_all("schema ref", _TEXT),
            "exportStatus": _one_of("pending exported failed redacted not-supported"),
            "requiredFieldStatus": _OBJECT,
        },
        "reward": {
            "value": _NUMBER,
            **_all("ref detailsRef failureCategory", _TEXT),
            "criteria": _TEXTS,
        },
        "comparison": {
            **_all("meanRewardDelta timeoutRateDelta evidenceCompletenessRate", _NUMBER),
            "p0QcGateRegressionCount": _COUNT,
            "decision": _TEXT,
        },
    }
    return {name: {**_OBJECT, "properties": part} for name, part in parts.items()}


def base_event() -> Schema:
    """Return the schema of an event of any runtime."""
    kinds = ["object", "array", "string", "number", "boolean", "null"]
    return {
        "type": "object",
        "required": ["type", "eventId", "timestamp"],
        "properties": {
            "type": {"enum": TYPES},
            "timestamp": _TIME,
            "sequence": _COUNT,
            "payload": {"type": kinds},
            **_all(_EVENT_IDS, _NAME),
            **_all(_EVENT_TEXTS, _TEXT),
            **_all(_EVENT_OBJECTS, _OBJECT),
            **_benchmark_objects(),
        },
    }


def profile_event() -> Schema:
    """Return the schema of an event of the profile, without the base."""
    always = "type eventId timestamp schemaVersion runtimeId sessionId sequence payload"
    own = {
        "type": "object",
        "required": always.split(),
        "properties": {
            "type": {"enum": TYPES},
            "schemaVersion": {"const": VERSION},
            **_all("runtimeId sessionId eventId", _NAME),
            "sequence": _COUNT,
            "timestamp": _TIME,
            "payload": _OBJECT,
            **_benchmark_objects(),
        },
    }
    rules = [
        {
            "if": {"properties": {"type": {"pattern" if kind[0] == "^" else "const": kind}}},
            "then": {"required": needed.split()},
        }
        for kind, needed in _NEEDS
    ]
    return {"allOf": [own, *rules]}


def base_snapshot() -> Schema:
    """Return the schema of a snapshot of any runtime."""
    return {
        "type": "object",
        "required": ["schemaVersion", "sessionId", "threads"],
        "properties": {
            **_all("schemaVersion workspaceId toolInventoryRef", _TEXT),
            "sessionId": _NAME,
            "updatedAt": _TIME,
            "threads": {"type": "array", "items": _thread()},
            "evidenceRefs": _TEXTS,
            **_all(
                "executionEnvironment permissionState sandboxState routingLimitSummary"
                " subagentJobSummary channelSummary telemetrySummary outputSummary historySummary"
                " taskSummary taskGraph deliveryState",
                _OBJECT,
            ),
            "tasks": {"type": "array", "items": _task()},
            "blockedTasks": _OBJECTS,
        },
    }


def _thread() -> Schema:
    return {
        "type": "object",
        "required": ["threadId", "status"],
        "properties": {
            **_all("threadId activeTurnId", _TEXT),
            "status": _one_of(_THREAD_STATUSES),
            "turns": {"type": "array", "items": _turn()},
            **_all(
                "pendingRequests queuedTurns incidents actions toolCalls processes subagents jobs"
                " channels outputs blockedTasks",
                _OBJECTS,
            ),
            **_all(
                "permissionState sandboxState modelRouting limitState costState telemetry history"
                " evidenceSummary taskGraph",
                _OBJECT,
            ),
            "tasks": {"type": "array", "items": _task()},
        },
    }


def _turn() -> Schema:
    return {
        "type": "object",
        "required": ["turnId", "status"],
        "properties": {
            **_all("turnId status taskId runId attemptId", _TEXT),
            **_all("startedAt completedAt", _TIME),
            **_all("steps hookRuns processes outputRefs", _OBJECTS),
            **_all(
                "taskProfile routingDecision candidateModelSet permissionState sandboxProfile"
                " executionEnvironment costState limitState",
                _OBJECT,
            ),
            "tasks": {"type": "array", "items": _task()},
        },
    }


def _task() -> Schema:
    attempt = {
        "type": "object",
        "required": ["runId", "status"],
        "properties": {
            **_all("runId attemptId completionSummary", _TEXT),
            "status": _one_of(_ATTEMPT_STATUSES),
            **_all("worker retryPolicy lastError", _OBJECT),
            **_all("inputRefs outputRefs checkpointRefs", _OBJECTS),
            **_all("startedAt endedAt", _TIME),
            "attemptCount": _COUNT,
        },
    }
    relationship = {
        "type": "object",
        "required": ["kind", "targetId"],
        "properties": {
            **_all("kind targetId status reason", _TEXT),
            **_all("createdAt updatedAt", _TIME),
        },
    }
    return {
        "type": "object",
        "required": ["taskId", "status"],
        "properties": {
            **_all(
                "taskId parentTaskId rootTaskId sessionId threadId turnId title objective taskKind"
                " taskFamily nativeStatus priority currentRunId statusReason",
                _TEXT,
            ),
            "status": _one_of(_TASK_STATUSES),
            "visibility": _one_of("foreground background internal hidden unknown"),
            **_all(
                "requestedBy owner assignee scope constraints taskProfile progress deliveryState"
                " lastError",
                _OBJECT,
            ),
            **_all("acceptance artifacts", _OBJECTS),
            "attempts": {"type": "array", "items": attempt},
            "relationships": {"type": "array", "items": relationship},
            "evidenceRefs": _TEXTS,
            **_all("createdAt updatedAt startedAt endedAt", _TIME),
        },
    }


def profile_snapshot() -> Schema:
    """Return the schema of a snapshot of the profile, without the base."""
    lists = "turns pendingRequests queuedTurns incidents"
    thread = {
        "type": "object",
        "required": ["threadId", "status", *lists.split(), "evidenceSummary"],
        "properties": {
            "threadId": _NAME,
            "status": _one_of(_THREAD_STATUSES),
            **_all(lists, _ARRAY),
            "evidenceSummary": _OBJECT,
        },
    }
    needed = "schemaVersion runtimeId sessionId updatedAt threads tasks taskSummary"
    own = {
        "type": "object",
        "required": f"{needed} routingLimitSummary telemetrySummary evidenceRefs".split(),
        "properties": {
            "schemaVersion": {"const": VERSION},
            **_all("runtimeId sessionId", _NAME),
            "updatedAt": _TIME,
            "threads": {"type": "array", "minItems": 1, "items": thread},
            "tasks": _ARRAY,
            **_all("taskSummary routingLimitSummary telemetrySummary benchmarkSummary", _OBJECT),
            "evidenceRefs": {"type": "array", "items": _NAME},
        },
    }
    return {"allOf": [own]}


SCHEMAS: Final = {
    "base event": base_event,
    "profile event": profile_event,
    "base snapshot": base_snapshot,
    "profile snapshot": profile_snapshot,
}


def settled(part: Any) -> Any:
    """Return a schema without what changes nothing: titles, addresses, the order of words.

    References within the schema must have been replaced by what they name, and the reference of a
    profile to its base must have been left out.
    """
    if isinstance(part, list):
        return [settled(one) for one in part]
    if not isinstance(part, dict):
        return part
    named = "title" not in part or isinstance(part["title"], str)
    idle = {"$schema", "$id", "$defs", "additionalProperties"} | (
        {"title", "description"} if named else set()
    )
    kept = {name: settled(value) for name, value in part.items() if name not in idle}
    if isinstance(kept.get("enum"), list):
        kept = {name: value for name, value in kept.items() if name != "type"}
        kept["enum"] = sorted(kept["enum"])
    if isinstance(kept.get("required"), list):
        kept["required"] = sorted(kept["required"])
    return kept


def digest(schema: Schema) -> str:
    """Return the SHA-256 of a schema, settled."""
    text = json.dumps(settled(schema), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


FORMATS: Final = FormatChecker(())
"""The library checks no times by itself."""


@FORMATS.checks("date-time")
def _is_time(value: object) -> bool:
    """Return whether a text is a date and time of RFC 3339, with seconds and an offset."""
    if not isinstance(value, str):
        return True
    whole, _, fraction = value.partition(".")
    digits = fraction.rstrip("+-:0123456789Zz") == "" if fraction else True
    offset = fraction.lstrip("0123456789") if fraction else whole[19:]
    with suppress(ValueError):
        datetime.strptime(f"{whole[:19]}{offset}".upper(), "%Y-%m-%dT%H:%M:%S%z")
        return digits and offset.upper() != "" and whole[19:] in ("", offset)
    return False


@cache
def _validator(name: str) -> Draft202012Validator:
    schema = SCHEMAS[name]()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FORMATS)


def faults(kind: str, document: Any) -> list[str]:
    """Return what the standard and its profile say against a document.

    Args:
        kind: `event` or `snapshot`.
        document: It.
    """
    return [
        f"{level} {error.json_path}: {error.message}"
        for level in ("base", "profile")
        for error in _validator(f"{level} {kind}").iter_errors(document)
    ]
