"""The OpenAPI document of the HTTP routes, made from the routes that are served.

`OPERATIONS` describes each route. A route without an entry and an entry without a route are errors,
so the document contains exactly the served routes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct
from starlette.routing import Route

from arp import __version__
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import ErrorMessage
from arp.server.application import OPEN_FOLDERS, OPEN_PATHS, ROUTES
from arp.server.routes.workflows import WORKFLOW_ROUTES

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_JSON = "application/json"
_STREAM = "text/event-stream"


class Operation(Struct, frozen=True):
    """Description of a route.

    The fields are summary, tag, query parameters, request body by media type, answers by media
    type, and the status of a success.
    """

    summary: str
    tag: str
    query: tuple[str, ...] = ()
    body: JsonObject = {}
    answers: tuple[str, ...] = (_JSON,)
    status: int = 200


_TURN: JsonObject = {
    "type": "object",
    "required": ["message"],
    "properties": {
        "message": {"type": "string", "description": "Text of the user."},
        "session_id": {"type": "string", "description": "Id of the session; absent: a new one."},
    },
}
_CHANGE: JsonObject = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "pinned": {"type": "boolean"}},
}
_INPUT: JsonObject = {
    "type": "object",
    "description": "A message of the session dialect (schemas/messages/renderer.json).",
}
_FILES: JsonObject = {
    "type": "object",
    "required": ["message"],
    "properties": {
        "message": {"type": "string", "description": "The input, as JSON."},
        "file": {"type": "array", "items": {"type": "string", "format": "binary"}},
    },
}
_FEEDBACK: JsonObject = {
    "type": "object",
    "required": ["turn_id", "rating"],
    "properties": {
        "turn_id": {"type": "string"},
        "rating": {"enum": ["up", "down", "none"], "description": "`none` withdraws a rating."},
        "comment": {"type": "string", "maxLength": 2000},
    },
}
_FACTS = ("after", "before", "limit", "type")

OPERATIONS: dict[str, Operation] = {
    "POST /{workflow}": Operation(
        "Run one turn of an agent: as JSON when it is over, or as a stream of events.",
        "agents",
        body={_JSON: _TURN},
        answers=(_JSON, _STREAM),
    ),
    "GET /_api/workflows": Operation("List the agents.", "agents"),
    "GET /_api/arp": Operation("Return the `hello` of the server: what it supports.", "agents"),
    "GET /_api/chats": Operation(
        "List the chats of the user.", "chats", ("query", "workflow", "before", "limit")
    ),
    "GET /_api/chat-events": Operation(
        "Stream the changes of that list.", "chats", answers=(_STREAM,)
    ),
    "GET /_api/chats/{session_id}": Operation("Return a chat with its messages.", "chats"),
    "PATCH /_api/chats/{session_id}": Operation(
        "Rename or pin a chat.", "chats", body={_JSON: _CHANGE}
    ),
    "DELETE /_api/chats/{session_id}": Operation(
        "Delete a chat with its facts, its files, and the data of runtimes about it.", "chats"
    ),
    "GET /_api/settings/{session_id}": Operation(
        "Return a form with the settings of a session; 404 if the app has none.", "chats"
    ),
    "PUT /_api/settings/{session_id}": Operation(
        "Change the settings of a session, by the fields of that form.",
        "chats",
        body={_JSON: {"type": "object", "properties": {"fields": {"type": "object"}}}},
    ),
    "GET /_api/feedback/{session_id}": Operation(
        "Return the user's feedback on each turn.", "chats"
    ),
    "POST /_api/feedback/{session_id}": Operation(
        "Rate the answer of a turn.", "chats", body={_JSON: _FEEDBACK}
    ),
    "GET /_api/runs": Operation("List turns, newest first.", "chats", ("session_id", "limit")),
    "GET /_api/runs/{run_id}": Operation("Return one turn.", "chats"),
    "GET /_api/runs/stream/{run_id}": Operation(
        "Stream one turn from its beginning.", "chats", answers=(_STREAM,)
    ),
    "GET /_api/blobs/{rest}": Operation(
        "Return a file of a session.", "files", answers=("application/octet-stream",)
    ),
    "POST /_api/blobs/cookie": Operation("Set a cookie that opens files.", "files", status=204),
    "GET /_api/sessions": Operation(
        "List the sessions.", "sessions", ("workflow", "limit", "before", "allUsers")
    ),
    "GET /_api/sessions/{session_id}/snapshot": Operation(
        "Return the state of a session, computed from its facts.", "sessions"
    ),
    "GET /_api/sessions/{session_id}/thread": Operation(
        "Return the state of a thread, computed from its facts.", "sessions", ("threadId",)
    ),
    "GET /_api/sessions/{session_id}/events": Operation(
        "Return facts, or stream stored and new ones.",
        "sessions",
        _FACTS,
        answers=(_JSON, _STREAM),
    ),
    "GET /_api/sessions/{session_id}/verification": Operation(
        "Compare the facts with the hashes in the ledger.", "sessions"
    ),
    "GET /_arp/v1/events": Operation(
        "Stream to one renderer (protocol.md 6).",
        "renderers",
        ("hello", "session_id", "workflow"),
        answers=(_STREAM,),
    ),
    "POST /_arp/v1/input": Operation(
        "Receive inputs of a renderer; each is answered when it is durable.",
        "renderers",
        body={_JSON: _INPUT, "multipart/form-data": _FILES},
    ),
    "GET /_api/user": Operation("Return the current user, and how to sign in and out.", "login"),
    "GET /_login": Operation("Redirect to the login provider.", "login", ("next",), status=303),
    "GET /_login/callback": Operation(
        "Sign in the user who returns from the provider.", "login", ("code", "state"), status=303
    ),
    "POST /_logout": Operation("Sign out.", "login"),
    "GET /": Operation("Return the page.", "page", ("session", "workflow"), answers=("text/html",)),
    "GET /_static/{name}": Operation(
        "Return a file of the page.", "page", answers=("application/octet-stream",)
    ),
    "GET /_inspect": Operation("Return the inspector.", "page", answers=("text/html",)),
    "GET /_inspect/{name}": Operation(
        "Return a file of the inspector.", "page", answers=("application/octet-stream",)
    ),
    "GET /_picture": Operation(
        "Return a frame with a picture that the user has allowed.",
        "page",
        ("src", "fit"),
        answers=("text/html",),
    ),
    "GET /schemas": Operation("List the JSON Schemas, and this document.", "schemas"),
    "GET /schemas/{name}": Operation("Return a schema or an example.", "schemas"),
    "GET /health": Operation("Return whether the process serves sessions.", "monitoring"),
    "GET /ready": Operation("Return whether the ledger can be read.", "monitoring"),
    "GET /metrics": Operation(
        "Return the metrics for Prometheus.", "monitoring", answers=("text/plain",)
    ),
}
"""Every operation, by its method and path."""

TAGS = {
    "agents": "Agents, and one turn of them",
    "chats": "Chats and turns",
    "files": "Files of sessions",
    "sessions": "Sessions and their facts",
    "renderers": "The protocol of renderers over HTTP",
    "login": "Login and logout",
    "page": "The web page and the inspector",
    "schemas": "JSON Schemas",
    "monitoring": "Health and metrics",
}


def document() -> JsonObject:
    """Return the document.

    Raises:
        ValueError: A route without an operation, or an operation without a route.
    """
    served = dict(_served([*ROUTES, *WORKFLOW_ROUTES]))
    if wrong := sorted(served.keys() ^ OPERATIONS.keys()):
        raise ValueError(f"tools/faces/openapi.py: OPERATIONS and the routes differ in {wrong}")
    (error,), parts = msgspec.json.schema_components(
        [ErrorMessage], ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, JsonObject] = {}
    for name, operation in OPERATIONS.items():
        method, path = name.split(" ")
        paths.setdefault(path, {})[method.lower()] = _operation(path, operation, error)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ARP server",
            "version": __version__,
            "description": "The HTTP routes of `arp serve` and of a mounted `app.asgi`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": parts,
        },
    }


def _served(routes: Iterable[object]) -> Iterator[tuple[str, Route]]:
    """Yield every route by its method and path; `HEAD` counts as `GET`."""
    for route in routes:
        assert isinstance(route, Route)
        for method in sorted((route.methods or {"POST"}) - {"HEAD"}):
            path = _PARAMETER.sub(r"{\1}", route.path)
            yield f"{method} {path}", route


def _operation(path: str, operation: Operation, error: JsonObject) -> JsonObject:
    is_open = path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)
    told: JsonObject = {
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": [
            *({"name": name, **_IN_PATH} for name in _PARAMETER.findall(path)),
            *({"name": name, **_IN_QUERY} for name in operation.query),
        ],
        "responses": {
            str(operation.status): {
                "description": "Done.",
                **({"content": _content(operation.answers)} if operation.status == 200 else {}),
            },
            "default": {
                "description": "Refused; the error has the reason.",
                "content": {_JSON: {"schema": error}},
            },
        },
    }
    if is_open:
        told["security"] = []
    if operation.body:
        content = {kind: {"schema": schema} for kind, schema in operation.body.items()}
        told["requestBody"] = {"required": True, "content": content}
    return told


_IN_PATH: JsonObject = {"in": "path", "required": True, "schema": {"type": "string"}}
_IN_QUERY: JsonObject = {"in": "query", "schema": {"type": "string"}}


def _content(kinds: Iterable[str]) -> Json:
    return {kind: {"schema": {} if kind == _JSON else {"type": "string"}} for kind in kinds}


def table() -> str:
    """Return the operations as tables of Markdown, by tag."""
    blocks = []
    for tag, title in TAGS.items():
        rows = [
            f"| `{name}` | {operation.summary} |"
            for name, operation in OPERATIONS.items()
            if operation.tag == tag
        ]
        blocks.append("\n".join((f"**{title}**", "", "| route | |", "| --- | --- |", *rows)))
    return "\n\n".join(blocks)
