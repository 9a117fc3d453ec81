"""`/_api/blobs/…`: the files of a session, for those to whom the session belongs.

Theory of operation. The path has the session, the hash of the content, and a name for
downloads. Whoever has a file can compute its hash, so a hash alone opens nothing: the session must
belong to the caller and contain the file. The type is decided by the content: only raster images
are shown, everything else is a download, and no script may run.

A page cannot send a token with `src` and links. So there is a cookie that opens a user's files: for
`GET /_api/blobs/…` and nothing else, for the user who requested it, for an hour, and on the
server's own pages only (`SameSite=Strict`; files have `Cross-Origin-Resource-Policy: same-origin`).
Its key lives as long as the process. Each server has its own cookie name, since browsers send
cookies to all ports of a host.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from arp.access.principal import Principal
from arp.protocol.blob_path import PREFIX, parse_blob_path
from arp.protocol.errors import SessionNotFound
from arp.server.state import ServerState
from arp.store.errors import BlobNotFound
from arp.transport.websocket import Scope

HEADERS = {
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, max-age=86400, immutable",
}
"""The content of an address never changes; a browser may cache it for a day."""

HEAD_BYTES = 16
"""Enough to recognise an image."""


def blob_routes(state: ServerState, cookie: FileCookie) -> list[BaseRoute]:
    """Return the routes."""
    blobs = _Blobs(state, cookie)
    return [
        Route(PREFIX + "cookie", blobs.cookie, methods=["POST"]),
        Route(PREFIX + "{rest:path}", blobs.get, methods=["GET"]),
    ]


def raster_type(head: bytes) -> str | None:
    """Return which image a file is by its first bytes; `None` for all that could be anything else.

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
    def __init__(self, state: ServerState, cookie: FileCookie) -> None:
        self._state = state
        self._cookie = cookie

    async def cookie(self, request: Request) -> Response:
        principal = request.scope["arp"].principal
        header = self._cookie.header(request.scope, principal, time.time())
        return Response(
            status_code=204, headers={"set-cookie": header, "cache-control": "no-store"}
        )

    async def get(self, request: Request) -> Response:
        named = parse_blob_path(PREFIX + request.path_params["rest"])
        if named is None:
            raise SessionNotFound("no such file")
        hub = await self._state.hub()
        try:
            live = await hub.find(named.session_id, request.scope["arp"].principal)
            if named.sha256 not in live.session.input_log.files:
                raise BlobNotFound
            files = hub.blobs.of(named.session_id)
            path = files.path(named.sha256)
            if path is None:
                return _in_memory(await files.read(named.sha256), named.name)
            return _on_disk(path, await asyncio.to_thread(_head, path), named.name)
        except (SessionNotFound, BlobNotFound):
            # One answer for both, so that nobody learns what others have.
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


# -- the cookie ------------------------------------------------------------------------------------

LIFE_S = 3600
"""How long a cookie is valid; a page requests the next one before."""


class FileCookie:
    """Signs cookies, and checks them."""

    def __init__(self) -> None:
        self.name = f"arp_files_{secrets.token_hex(4)}"
        self._key = secrets.token_bytes(32)

    def header(self, scope: Scope, principal: Principal, now_s: float) -> str:
        """Return `Set-Cookie` for a user.

        Args:
            scope: Of the request that asks.
            principal: Who asks.
            now_s: Seconds since 1970.
        """
        content = f"{_as_text(principal.name)}.{int(now_s) + LIFE_S}"
        place = scope.get("root_path", "") + PREFIX.rstrip("/")
        safe = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = f"{self.name}={content}.{self._sign(content)}; Path={place}; Max-Age={LIFE_S}"
        return f"{cookie}; HttpOnly; SameSite=Strict{safe}"

    def principal(self, scope: Scope, now_s: float) -> Principal | None:
        """Return to whom the cookie of a request was given; `None` if it opens nothing here."""
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        if scope.get("method") not in ("GET", "HEAD") or not path.startswith(PREFIX):
            return None
        for name, value in scope["headers"]:
            if name == b"cookie" and (found := self._read(value.decode("latin-1"), now_s)):
                return found
        return None

    def _read(self, header: str, now_s: float) -> Principal | None:
        try:
            morsel = SimpleCookie(header).get(self.name)
        except CookieError:
            return None
        content, _, signature = (morsel.value if morsel is not None else "").rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(content).encode()):
            return None
        user, _, until = content.partition(".")
        return Principal(_as_name(user)) if int(until) > now_s else None

    def _sign(self, content: str) -> str:
        return hmac.new(self._key, content.encode(), "sha256").hexdigest()


def _as_text(name: str) -> str:
    return urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _as_name(text: str) -> str:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (Error, UnicodeDecodeError) as error:  # nothing that we signed
        raise AssertionError("a signed name cannot be read") from error
