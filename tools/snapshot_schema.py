"""The JSON Schemas of a snapshot: of any runtime, of the profile, and as this project returns it.

The first two accept the same snapshots as the published schemas with these names.
"""

from __future__ import annotations

from arp.ledger.fact import SCHEMA_VERSION
from arp.protocol.json_value import JsonObject
from tools.event_schema import DIALECT, RFC_3339

THREAD_STATUSES = "idle queued running blocked completed failed cancelled stale unknown"

TASK_STATUSES = """
draft accepted queued preparing running waiting_input waiting_permission waiting_resource blocked
paused retrying cancelling cancelled timed_out failed lost completed archived stale unknown
"""

ATTEMPT_STATUSES = """
idle queued preparing running blocked streaming retrying completed failed cancelled stale unknown
unavailable not_applicable
"""

_TEXT: JsonObject = {"type": "string", "minLength": 1}
_STRING: JsonObject = {"type": "string"}
_OBJECT: JsonObject = {"type": "object"}
_ARRAY: JsonObject = {"type": "array"}
_LIST: JsonObject = {"type": "array", "items": _OBJECT}
_TIME: JsonObject = {"type": "string", "format": "date-time"}

_REQUIRED = [
    "schemaVersion",
    "runtimeId",
    "sessionId",
    "updatedAt",
    "threads",
    "tasks",
    "taskSummary",
    "routingLimitSummary",
    "telemetrySummary",
    "evidenceRefs",
]

_THREAD_REQUIRED = [
    "threadId",
    "status",
    "turns",
    "pendingRequests",
    "queuedTurns",
    "incidents",
    "evidenceSummary",
]

_OBJECTS = """
executionEnvironment permissionState sandboxState routingLimitSummary subagentJobSummary
channelSummary telemetrySummary outputSummary historySummary taskSummary taskGraph deliveryState
"""

_THREAD_LISTS = """
pendingRequests queuedTurns incidents actions toolCalls processes subagents jobs channels outputs
blockedTasks
"""

_THREAD_OBJECTS = """
permissionState sandboxState modelRouting limitState costState telemetry history evidenceSummary
taskGraph
"""

_TURN_OBJECTS = """
taskProfile routingDecision candidateModelSet permissionState sandboxProfile executionEnvironment
costState limitState
"""

_TASK_STRINGS = """
parentTaskId rootTaskId sessionId threadId turnId title objective taskKind taskFamily nativeStatus
priority currentRunId statusReason
"""

_TASK_OBJECTS = """
requestedBy owner assignee scope constraints taskProfile progress deliveryState lastError
"""


def public() -> JsonObject:
    """Return the schema of a snapshot of any runtime; unknown fields are allowed."""
    return {
        "$schema": DIALECT,
        "$id": "urn:arp:agentruntime:snapshot",
        "title": "A snapshot of a session of an agent runtime",
        "description": "Unknown fields are allowed.",
        **_of_any_runtime(),
        "$defs": _definitions(),
    }


def profile() -> JsonObject:
    """Return the schema of a snapshot of the profile, no stricter than the published one."""
    thread = {
        "type": "object",
        "required": _THREAD_REQUIRED,
        "properties": {"threadId": _TEXT, "evidenceSummary": _OBJECT},
    }
    return {
        "$schema": DIALECT,
        "$id": "urn:arp:agentruntime:lime-profile-snapshot:0.4.0",
        "title": f"A snapshot of a session of the profile {SCHEMA_VERSION}",
        "description": "arp-snapshot.schema.json has the additional promises of this project.",
        "allOf": [
            _of_any_runtime(),
            {
                "type": "object",
                "required": _REQUIRED,
                "properties": {
                    "schemaVersion": {"const": SCHEMA_VERSION},
                    "runtimeId": _TEXT,
                    "threads": {"type": "array", "minItems": 1, "items": thread},
                    "tasks": _ARRAY,
                    "benchmarkSummary": _OBJECT,
                    "evidenceRefs": {"type": "array", "items": _TEXT},
                },
            },
        ],
        "$defs": _definitions(),
    }


def strict() -> JsonObject:
    """Return the schema of a snapshot as this project returns it."""
    thread: JsonObject = {
        "type": "object",
        "required": _THREAD_REQUIRED,
        "properties": {
            "threadId": _TEXT,
            "status": _words(THREAD_STATUSES),
            "activeTurnId": _TEXT,
            "turns": _identified("turnId", "status"),
            "pendingRequests": _LIST,
            "queuedTurns": _identified("turnId"),
            "incidents": _LIST,
            "diagnostics": _LIST,
            "toolCalls": _identified("toolCallId", "status"),
            "lastOutcome": _OBJECT,
            "evidenceSummary": _OBJECT,
        },
        **_NO_NULL,
    }
    task: JsonObject = {
        "type": "object",
        "required": ["taskId", "status"],
        "properties": {
            "taskId": _TEXT,
            "objective": _STRING,
            "status": _words(TASK_STATUSES),
            "attempts": _identified("runId", "status"),
            "artifacts": _identified("artifactId"),
        },
        **_NO_NULL,
    }
    return {
        "$schema": DIALECT,
        "$id": "urn:arp:snapshot:1",
        "title": f"A snapshot of a session of the profile {SCHEMA_VERSION} as ARP gives it",
        "description": "A value that does not apply is absent or not_applicable, never null.",
        "type": "object",
        "required": _REQUIRED,
        "properties": {
            "schemaVersion": {"const": SCHEMA_VERSION},
            "runtimeId": _TEXT,
            "sessionId": _TEXT,
            "updatedAt": {**_TIME, "pattern": RFC_3339},
            "threads": {"type": "array", "minItems": 1, "items": thread},
            "tasks": {"type": "array", "items": task},
            "taskSummary": _OBJECT,
            "permissionSandboxSummary": _OBJECT,
            "routingLimitSummary": _OBJECT,
            "telemetrySummary": _OBJECT,
            "evidenceSummary": _OBJECT,
            "benchmarkSummary": _OBJECT,
            "evidenceRefs": {"type": "array", "items": _TEXT},
        },
        **_NO_NULL,
    }


_NO_NULL: JsonObject = {"additionalProperties": {"not": {"type": "null"}}}


def _of_any_runtime() -> JsonObject:
    return {
        "type": "object",
        "required": ["schemaVersion", "sessionId", "threads"],
        "properties": {
            "schemaVersion": _STRING,
            "sessionId": _TEXT,
            "workspaceId": _STRING,
            "updatedAt": _TIME,
            "threads": {"type": "array", "items": {"$ref": "#/$defs/thread"}},
            "toolInventoryRef": _STRING,
            "evidenceRefs": {"type": "array", "items": _STRING},
            **dict.fromkeys(_OBJECTS.split(), _OBJECT),
            "tasks": {"type": "array", "items": {"$ref": "#/$defs/task"}},
            "blockedTasks": _LIST,
        },
    }


def _definitions() -> JsonObject:
    """Return the definitions of the parts of a snapshot of any runtime."""
    tasks: JsonObject = {"type": "array", "items": {"$ref": "#/$defs/task"}}
    return {
        "thread": {
            "type": "object",
            "required": ["threadId", "status"],
            "properties": {
                "threadId": _STRING,
                "status": _words(THREAD_STATUSES),
                "activeTurnId": _STRING,
                "turns": {"type": "array", "items": {"$ref": "#/$defs/turn"}},
                **dict.fromkeys(_THREAD_LISTS.split(), _LIST),
                **dict.fromkeys(_THREAD_OBJECTS.split(), _OBJECT),
                "tasks": tasks,
            },
        },
        "turn": {
            "type": "object",
            "required": ["turnId", "status"],
            "properties": {
                **dict.fromkeys(["turnId", "status", "taskId", "runId", "attemptId"], _STRING),
                **dict.fromkeys(("startedAt", "completedAt"), _TIME),
                **dict.fromkeys(("steps", "hookRuns", "processes", "outputRefs"), _LIST),
                **dict.fromkeys(_TURN_OBJECTS.split(), _OBJECT),
                "tasks": tasks,
            },
        },
        "task": {
            "type": "object",
            "required": ["taskId", "status"],
            "properties": {
                "taskId": _STRING,
                "status": _words(TASK_STATUSES),
                "visibility": _words("foreground background internal hidden unknown"),
                **dict.fromkeys(_TASK_STRINGS.split(), _STRING),
                **dict.fromkeys(_TASK_OBJECTS.split(), _OBJECT),
                **dict.fromkeys(("acceptance", "artifacts"), _LIST),
                "attempts": {"type": "array", "items": {"$ref": "#/$defs/attempt"}},
                "relationships": {"type": "array", "items": {"$ref": "#/$defs/relationship"}},
                "evidenceRefs": {"type": "array", "items": _STRING},
                **dict.fromkeys(["createdAt", "updatedAt", "startedAt", "endedAt"], _TIME),
            },
        },
        "attempt": {
            "type": "object",
            "required": ["runId", "status"],
            "properties": {
                **dict.fromkeys(["runId", "attemptId", "completionSummary"], _STRING),
                "status": _words(ATTEMPT_STATUSES),
                **dict.fromkeys(("worker", "retryPolicy", "lastError"), _OBJECT),
                **dict.fromkeys(("inputRefs", "outputRefs", "checkpointRefs"), _LIST),
                **dict.fromkeys(("startedAt", "endedAt"), _TIME),
                "attemptCount": {"type": "integer", "minimum": 0},
            },
        },
        "relationship": {
            "type": "object",
            "required": ["kind", "targetId"],
            "properties": {
                **dict.fromkeys(["kind", "targetId", "status", "reason"], _STRING),
                **dict.fromkeys(("createdAt", "updatedAt"), _TIME),
            },
        },
    }


def _identified(*names: str) -> JsonObject:
    """Return the schema of a list of objects that all have these text fields."""
    properties = dict.fromkeys(names, _TEXT)
    item = {"type": "object", "required": list(names), "properties": properties}
    return {"type": "array", "items": item}


def _words(text: str) -> JsonObject:
    return {"type": "string", "enum": text.split()}
