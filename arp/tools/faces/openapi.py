"""The OpenAPI document of the HTTP interface."""

from __future__ import annotations

from typing import Final

from arp.protocol.framing.event_stream import EVENT_STREAM
from arp.protocol.json_value import JsonObject

_ERROR: Final = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "code": {"type": "string"}},
    "required": ["error"],
}
_OUTCOME: Final = {
    "type": "object",
    "properties": {
        "status": {"enum": ["success", "error"]},
        "result": {},
        "error": {"type": ["string", "null"]},
    },
    "required": ["status", "result", "error"],
    "additionalProperties": False,
}
_STATUS: Final = {"enum": ["active", "inactive", "staging", "building"]}
_TOOL: Final = {
    "type": "object",
    "properties": {
        "tool_id": {"type": "string"},
        "name": {"type": "string"},
        "category": {"type": "string"},
        "description": {"type": "string"},
        "status": _STATUS,
    },
    "required": ["tool_id", "name", "category", "description", "status"],
    "additionalProperties": False,
}
_TASK_STATUS: Final = {
    "type": "object",
    "properties": {
        "task_id": {"type": "string"},
        "status": {
            "enum": [
                "pending", "running", "waiting_approval", "completed", "failed", "cancelled",
            ]
        },
        "result": {
            "type": "object",
            "properties": {"tool_id": {"type": "string"}, "url": {"type": "string"}},
            "required": ["tool_id", "url"],
            "additionalProperties": False,
        },
        "error": {"type": "string"},
        "waiting_for": {"type": "string"},
        "session_id": {"type": "string"},
    },
    "required": ["task_id", "status"],
    "additionalProperties": False,
}  # fmt: skip
_INVOKE: Final = {
    "type": "object",
    "properties": {
        "params": {"type": "object", "description": "As the tool's input_schema says."},
        "stream": {"type": "boolean", "description": "The result as an event stream."},
    },
    "additionalProperties": False,
}
_REQUEST: Final = {
    "type": "object",
    "properties": {
        "description": {"type": "string", "minLength": 1, "maxLength": 20_000},
        "callback_url": {"type": ["string", "null"], "format": "uri", "maxLength": 2_000},
    },
    "required": ["description"],
    # `task_spec` has more rules than a schema can express; `arp.tools.tasks.task_specs` checks
    # them.
    "additionalProperties": False,
    "description": "Besides, `task_spec` may be an object: github_deploy, build_tool, repair_tool.",
}
_STATUSES: Final = {
    "400": "The body does not fit; the message names the path.",
    "401": "A token is needed.",
    "402": "It is above the budget.",
    "403": "A rule forbids it.",
    "404": "There is no such tool or task.",
    "409": "It is not possible now.",
    "413": "The body is too large.",
    "415": "The content type is not application/json.",
    "422": "The parameters do not fit the tool's input_schema; the message names the path.",
    "429": "There is no room for this caller now.",
    "500": "A fault of ours.",
    "502": "The tool failed.",
    "503": "What the tool needs is not there now.",
    "504": "The tool took too long.",
}
"""Descriptions of statuses other than 200."""


def openapi_document(title: str) -> JsonObject:
    """Return the document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1.0"},
        "paths": {
            "/health": {"get": _operation("health", "Whether the service runs.", _health())},
            "/health/runtimes": {
                "get": _operation("runtimes", "Which runtimes can be used.", {"type": "object"})
            },
            "/tools": {"get": _operation("list_tools", "All tools, by category.", _catalog())},
            "/tools/{tool_id}/schema": {
                "parameters": [_parameter("tool_id")],
                "get": _operation("tool_schema", "The schemas of a tool.", _schemas()),
            },
            "/tools/{tool_id}/invoke": {
                "parameters": [_parameter("tool_id")],
                "post": _invoke_operation(),
            },
            "/tools/{tool_id}/stop": _command(
                "stop_tool", "Stop a tool once its calls have ended; its next call starts it again."
            ),
            "/tools/{tool_id}/enable": _command("enable_tool", "Let a disabled tool be called."),
            "/tools/{tool_id}/disable": _command(
                "disable_tool", "Refuse further calls of a tool; stop it once its calls have ended."
            ),
            "/tools/{tool_id}": {
                "parameters": [_parameter("tool_id")],
                "delete": _operation(
                    "remove_tool",
                    "Remove a tool once its calls have ended, with its files and its container.",
                    _removal(),
                ),
            },
            "/tools/request": {
                "post": _posting(
                    _operation("request_tool", "Ask for a tool; it is made later.", _task()),
                    _REQUEST,
                )
            },
            "/tasks/{task_id}/status": {
                "parameters": [_parameter("task_id")],
                "get": _operation("task_status", "How far a task is.", _TASK_STATUS),
            },
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _health() -> JsonObject:
    return {
        "type": "object",
        "properties": {"status": {"const": "ok"}},
        "required": ["status"],
        "additionalProperties": False,
    }


def _catalog() -> JsonObject:
    return {
        "type": "object",
        "properties": {"tools": {"type": "array", "items": _TOOL}},
        "required": ["tools"],
        "additionalProperties": False,
    }


def _schemas() -> JsonObject:
    return {
        "type": "object",
        "properties": {
            "tool_id": {"type": "string"},
            "input_schema": {"type": "object"},
            "output_schema": {"type": "object"},
        },
        "required": ["tool_id", "input_schema", "output_schema"],
        "additionalProperties": False,
    }


def _command(name: str, summary: str) -> JsonObject:
    """Return the path of a command that changes a tool."""
    tool = {
        "type": "object",
        "properties": {
            "tool_id": {"type": "string"},
            "status": _STATUS,
            "state": {"enum": ["running", "sleeping", "stopped", "degraded"]},
        },
        "required": ["tool_id", "status", "state"],
        "additionalProperties": False,
    }
    nothing = {"type": "object", "additionalProperties": False}
    return {
        "parameters": [_parameter("tool_id")],
        "post": _posting(_operation(name, summary, tool), nothing),
    }


def _removal() -> JsonObject:
    texts = {"type": "array", "items": {"type": "string"}}
    return {
        "type": "object",
        "properties": {"tool_id": {"type": "string"}, "removed": texts, "kept": texts},
        "required": ["tool_id", "removed", "kept"],
        "additionalProperties": False,
    }


def _task() -> JsonObject:
    return {
        "type": "object",
        "properties": {"task_id": {"type": "string"}, "status": {"const": "pending"}},
        "required": ["task_id", "status"],
        "additionalProperties": False,
    }


def _invoke_operation() -> JsonObject:
    operation = _operation("invoke_tool", "Call a tool.", _OUTCOME, error=_OUTCOME)
    operation["responses"]["200"]["content"][EVENT_STREAM] = {
        "schema": {"type": "string", "description": 'data: {"chunk": "…", "done": false}'}
    }
    return _posting(operation, _INVOKE)


def _operation(
    name: str, summary: str, schema: JsonObject, error: JsonObject | None = None
) -> JsonObject:
    """Return an operation; a refusal before the call of a tool has the shape of `_ERROR`."""
    failed = {"anyOf": [error, _ERROR]} if error is not None else _ERROR
    refusals = {
        status: {"description": text, "content": {"application/json": {"schema": failed}}}
        for status, text in _STATUSES.items()
    }
    # Refusals by the server itself have the shape of the server's errors.
    refusals["default"] = {
        "description": "Refused by the server.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    done = {"description": "Done.", "content": {"application/json": {"schema": schema}}}
    return {"operationId": name, "summary": summary, "responses": {"200": done, **refusals}}


def _posting(operation: JsonObject, schema: JsonObject) -> JsonObject:
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {**operation, "requestBody": body}


def _parameter(name: str) -> JsonObject:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
