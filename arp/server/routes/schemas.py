"""The protocol as data, served without a token.

The documents are the JSON Schemas of facts and snapshots with examples, `openapi.json`,
`arp.proto`, the object dialect (`arp-core.protocol.yaml`) and the conformance cases. They are files
of the package, so they match the version of the server.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from arp.server.answers import json_response

FOLDER: Final = "/schemas/"
"""Path of the documents."""

OPENAPI: Final = "openapi.json"
"""Name of the OpenAPI document of the HTTP routes; `make gen` writes it from the routes."""

TYPES: Final = {
    ".schema.json": "application/schema+json",
    ".json": "application/json",
    ".yaml": "application/yaml",
    ".proto": "text/plain; charset=utf-8",
}
"""Content type of each file name ending; other files are not served."""

HEADERS: Final = {
    "cache-control": "public, max-age=3600",
    "x-content-type-options": "nosniff",
}


@cache
def documents() -> dict[str, bytes]:
    """Return every document by its path below `/schemas/`."""
    openapi = files("arp.server") / OPENAPI
    return {
        **dict(_below(files("arp.ledger") / "schemas", "")),
        **dict(_below(files("arp.server") / "protocol", "")),
        OPENAPI: openapi.read_bytes(),
    }


def schema_routes() -> list[BaseRoute]:
    """Return the routes of the documents and of their list."""
    return [Route("/schemas", _index), Route(f"{FOLDER}{{name:path}}", _one)]


def _below(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            found += _below(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(tuple(TYPES)):
            found.append((prefix + entry.name, entry.read_bytes()))
    return found


async def _index(_: Request) -> Response:
    return json_response([FOLDER + name for name in documents()], headers=HEADERS)


async def _one(request: Request) -> Response:
    name: str = request.path_params["name"]
    if not name:
        return await _index(request)
    body = documents().get(name)
    if body is None:
        raise HTTPException(404, f"no schema {name!r:.80}; {FOLDER} lists them")
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    headers = {
        **HEADERS,
        "content-type": next(kind for end, kind in TYPES.items() if name.endswith(end)),
        "etag": etag,
    }
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers)
