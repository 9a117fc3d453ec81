"""The JSON Schemas of a snapshot: as any runtime may give it, and as this project does."""

from __future__ import annotations

from arp.ledger.fact import SCHEMA_VERSION
from arp.protocol.json_value import JsonObject
from tools.event_schema import DIALECT, RFC_3339

THREAD_STATUSES = "idle queued running blocked completed failed cancelled stale unknown"

TASK_STATUSES = """
draft accepted queued preparing running waiting_input waiting_permission waiting_resource blocked
paused retrying cancelling cancelled timed_out failed lost completed archived stale unknown
"""

_TEXT: JsonObject = {"type": "string", "minLength": 1}
_OBJECT: JsonObject = {"type": "object"}
_LIST: JsonObject = {"type": "array", "items": _OBJECT}
_TIME: JsonObject = {"type": "string", "format": "date-time", "pattern": RFC_3339}

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


def tolerant() -> JsonObject:
    """Gives the schema of a snapshot of any runtime: what is not known passes."""
    return {
        "$schema": DIALECT,
        "$id": "urn:arp:agentruntime:snapshot",
        "title": "A snapshot of a session of an agent runtime",
        "description": "Fields and statuses that are not known pass.",
        **_snapshot(_TEXT, _thread(_TEXT), _task(_TEXT)),
    }


def strict() -> JsonObject:
    """Gives the schema of a snapshot as this project gives it."""
    thread, task = _thread(_words(THREAD_STATUSES)), _task(_words(TASK_STATUSES))
    return {
        "$schema": DIALECT,
        "$id": "urn:arp:agentruntime:lime-profile-snapshot:0.4.0",
        "title": f"A snapshot of a session of the profile {SCHEMA_VERSION}",
        "description": "What does not apply is left out, or is not_applicable; never null.",
        **_snapshot({"const": SCHEMA_VERSION}, _without_gaps(thread), _without_gaps(task)),
        "additionalProperties": {"not": {"type": "null"}},
    }


def _snapshot(version: JsonObject, thread: JsonObject, task: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "required": _REQUIRED,
        "properties": {
            "schemaVersion": version,
            "runtimeId": _TEXT,
            "sessionId": _TEXT,
            "updatedAt": _TIME,
            "threads": {"type": "array", "minItems": 1, "items": thread},
            "tasks": {"type": "array", "items": task},
            "taskSummary": _OBJECT,
            "permissionSandboxSummary": _OBJECT,
            "routingLimitSummary": _OBJECT,
            "telemetrySummary": _OBJECT,
            "evidenceSummary": _OBJECT,
            "benchmarkSummary": _OBJECT,
            "evidenceRefs": _LIST,
        },
    }


def _thread(status: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "required": _THREAD_REQUIRED,
        "properties": {
            "threadId": _TEXT,
            "status": status,
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
    }


def _task(status: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "required": ["taskId", "status"],
        "properties": {
            "taskId": _TEXT,
            "objective": {"type": "string"},
            "status": status,
            "attempts": _identified("runId", "status"),
        },
    }


def _identified(*names: str) -> JsonObject:
    """Gives a list of objects that all have these texts."""
    properties = dict.fromkeys(names, _TEXT)
    item = {"type": "object", "required": list(names), "properties": properties}
    return {"type": "array", "items": item}


def _words(text: str) -> JsonObject:
    return {"enum": text.split()}


def _without_gaps(part: JsonObject) -> JsonObject:
    return {**part, "additionalProperties": {"not": {"type": "null"}}}
