"""`/_picture`: one picture from elsewhere, in a frame that may fetch that and nothing else.

Theory of operation. The page's policy blocks pictures from elsewhere, whatever an agent sends. A
picture that the reader has allowed is shown in a frame: a document with an origin of its own
(`sandbox`), whose policy allows the host of that picture alone, so that not even a redirect leads
elsewhere. The frame learns nothing about the page; the page learns the size of the picture. The
server fetches nothing itself.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from arp.server.page import HEADERS

PICTURE: Final = "/_picture"

MAX_ADDRESS: Final = 4096
"""Characters; servers take no longer request line."""

STYLE: Final = (
    ":root{color-scheme:light dark}html,body{height:100%;margin:0;overflow:hidden}"
    "img{display:block;width:100%;height:100%;object-fit:contain}.cover{object-fit:cover}"
)

SCRIPT: Final = (
    'const p=document.querySelector("img"),'
    "tell=size=>parent.postMessage({arpPicture:size},location.origin);"
    "p.decode().then(()=>tell([p.naturalWidth,p.naturalHeight]),()=>tell(null))"
)
"""Sends the size in pixels to the page around it only; `null` if the picture did not load."""

_AUTHORITY = re.compile(r"(?:[a-z0-9_-]+\.)*[a-z0-9_-]+(?::[0-9]{1,5})?", re.IGNORECASE)
"""What a policy can contain: no user name, no characters that end a directive."""


def picture_routes() -> list[BaseRoute]:
    """Return the frame."""
    return [Route(PICTURE, _frame)]


def origin_of(address: str) -> str | None:
    """Return `scheme://host:port` of a picture's address; `None` if it cannot be shown."""
    if len(address) > MAX_ADDRESS:
        return None
    try:
        scheme, authority, *_ = urlsplit(address)
    except ValueError:
        return None
    if scheme not in ("http", "https") or not _AUTHORITY.fullmatch(authority):
        return None
    return f"{scheme}://{authority}"


def frame_policy(origin: str) -> str:
    """Return the policy of the frame of a picture from there."""
    return (
        f"default-src 'none'; img-src {origin}; script-src {_hash(SCRIPT)}; "
        f"style-src {_hash(STYLE)}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; sandbox allow-scripts"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


async def _frame(request: Request) -> Response:
    """Return a frame with the picture that `src` names; `fit=cover` fills it."""
    # Browsers say where a request comes from; on plain HTTP they do not, and the policy decides.
    came = (request.headers.get("sec-fetch-dest"), request.headers.get("sec-fetch-site"))
    if came not in ((None, None), ("iframe", "same-origin")):
        return PlainTextResponse("only a page of this server may show this", 403, HEADERS)
    address = request.query_params.get("src", "")
    origin = origin_of(address)
    if origin is None:
        return PlainTextResponse(
            "src must be the address of a picture, http or https", 400, HEADERS
        )
    kind = ' class="cover"' if request.query_params.get("fit") == "cover" else ""
    return HTMLResponse(
        f'<!doctype html><meta charset="utf-8"><title>-</title><style>{STYLE}</style>'
        f'<img{kind} alt="" referrerpolicy="no-referrer" src="{escape(address)}">'
        f"<script>{SCRIPT}</script>",
        headers={**HEADERS, "content-security-policy": frame_policy(origin)},
    )
