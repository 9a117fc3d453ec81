"""`/_api/blobs/…`: the files of a session, for those to whom the session belongs.

Theory of operation. The path names the session, the content by its hash, and a name to keep it
under. Who knows what a file contains can tell its hash, so that alone opens nothing: the session
must be the asker's, and must itself hold the file. What the bytes are is decided
by the bytes: only raster images are shown, everything else is a download, and nothing may run.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from arp.protocol.blob_path import PREFIX, parse_blob_path
from arp.protocol.errors import SessionNotFound
from arp.store.errors import BlobNotFound

if TYPE_CHECKING:
    from arp.server.application import Application

HEADERS = {
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, max-age=86400, immutable",
}
"""The content of an address never changes; who may see it may keep it for a day."""

HEAD_BYTES = 16
"""Enough to know an image by."""


def blob_routes(application: Application) -> list[BaseRoute]:
    """Gives the routes."""
    blobs = _Blobs(application)
    return [
        Route(PREFIX + "cookie", blobs.cookie, methods=["POST"]),
        Route(PREFIX + "{rest:path}", blobs.get, methods=["GET"]),
    ]


def raster_type(head: bytes) -> str | None:
    """Tells which image a file is by its first bytes; `None` for all that could be anything else.

    No SVG: it can carry scripts.
    """
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


class _Blobs:
    def __init__(self, application: Application) -> None:
        self._application = application

    async def cookie(self, request: Request) -> Response:
        cookie, principal = self._application.file_cookie, request.scope["arp"].principal
        header = cookie.header(request.scope, principal, time.time())
        return Response(
            status_code=204, headers={"set-cookie": header, "cache-control": "no-store"}
        )

    async def get(self, request: Request) -> Response:
        named = parse_blob_path(PREFIX + request.path_params["rest"])
        if named is None:
            raise SessionNotFound("no such file")
        hub = await self._application.hub()
        try:
            live = await hub.find(named.session_id, request.scope["arp"].principal)
            if named.sha256 not in live.session.seen.files:
                raise BlobNotFound
            files = hub.blobs.of(named.session_id)
            path = files.path(named.sha256)
            if path is None:
                return _in_memory(await files.read(named.sha256), named.name)
            return _on_disk(path, await asyncio.to_thread(_head, path), named.name)
        except (SessionNotFound, BlobNotFound):
            # One answer: whether somebody else has it is nobody's business.
            raise SessionNotFound("no such file") from None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise BlobNotFound from None


def _on_disk(path: Path, head: bytes, name: str) -> Response:
    image = raster_type(head)
    return FileResponse(
        path,
        headers=HEADERS,
        media_type=image or "application/octet-stream",
        filename=name,
        content_disposition_type="inline" if image else "attachment",
    )


def _in_memory(data: bytes, name: str) -> Response:
    image = raster_type(data[:HEAD_BYTES])
    disposition = f'{"inline" if image else "attachment"}; filename="{name}"'
    headers = {**HEADERS, "content-disposition": disposition}
    return Response(data, headers=headers, media_type=image or "application/octet-stream")
