"""`/_api/blobs/…`: the files of a session, for the owner of the session.

Theory of operation. The path contains the session, the hash of the content, and a name for
downloads (`blob_path`). Anyone with a copy of a file can compute its hash, so the hash alone gives
no access: the session must belong to the caller and contain the file. The content decides the type:
raster images are shown, all other files are downloads, and no script may run.
"""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from arp.protocol.blob_path import PREFIX, parse_blob_path
from arp.protocol.errors import SessionNotFound
from arp.server.state import requester
from arp.store.errors import BlobNotFound

HEADERS = {
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, max-age=86400, immutable",
}
"""Headers of every file. The content of an address never changes, so it is cached for a day."""

HEAD_BYTES = 16
"""Number of bytes at the start of a file that are enough to recognise an image."""

_NOT_QUOTABLE = re.compile(r'[^\x20-\x7e]|["\\%]')
_ATTRIBUTE_SIGNS = "!#$&+-.^_`|~"
"""Characters besides letters and digits that `filename*` may contain unescaped.

Source: RFC 8187, `attr-char`.
"""


def raster_type(head: bytes) -> str | None:
    """Return the MIME type of a raster image by its first bytes; `None` for any other file.

    SVG is not recognised, because it can contain scripts.
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


async def _issue_cookie(request: Request) -> Response:
    asker = requester(request)
    header = asker.state.file_cookie.header(request.scope, asker.principal, time.time())
    return Response(status_code=204, headers={"set-cookie": header, "cache-control": "no-store"})


async def _get(request: Request) -> Response:
    named, asker = parse_blob_path(PREFIX + request.path_params["rest"]), requester(request)
    if named is None:
        raise SessionNotFound("no such file")
    try:
        source = await asker.read(named.session_id)
        if named.sha256 not in source.session.input_log.files:
            raise BlobNotFound
        files = (await asker.hub()).blobs.of(named.session_id)
        path = files.path(named.sha256)
        if path is None:
            return _in_memory(await files.read(named.sha256), named.name)
        return _on_disk(path, await asyncio.to_thread(_head, path), named.name)
    except (SessionNotFound, BlobNotFound):
        # The same answer for both, so that it does not reveal which files others have.
        raise SessionNotFound("no such file") from None


BLOB_ROUTES = [
    Route(PREFIX + "cookie", _issue_cookie, methods=["POST"]),
    Route(PREFIX + "{rest:path}", _get, methods=["GET"]),
]


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise BlobNotFound from None


def content_disposition(kind: str, name: str) -> str:
    """Return a `content-disposition` header for a file name with any characters.

    Browsers use `filename*`, which has the exact name. `filename` is for programs that support only
    ASCII: there, `_` replaces each character that is not printable ASCII. It also replaces quotes,
    backslashes and `%`, because some programs decode `%`.

    Source: RFC 6266, 4.3 and appendix D; RFC 8187, 3.2.
    """
    plain = _NOT_QUOTABLE.sub("_", name)
    if plain == name:
        return f'{kind}; filename="{name}"'
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe=_ATTRIBUTE_SIGNS)}"


def _on_disk(path: Path, head: bytes, name: str) -> Response:
    image = raster_type(head)
    return FileResponse(
        path, headers=_headers(image, name), media_type=image or "application/octet-stream"
    )


def _in_memory(data: bytes, name: str) -> Response:
    image = raster_type(data[:HEAD_BYTES])
    return Response(
        data, headers=_headers(image, name), media_type=image or "application/octet-stream"
    )


def _headers(image: str | None, name: str) -> dict[str, str]:
    shown = content_disposition("inline" if image else "attachment", name)
    return {**HEADERS, "content-disposition": shown}
