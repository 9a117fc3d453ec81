"""The pages: files of the package, with headers that permit only what they need.

Theory of operation. `make web` writes the files and `manifest.json`. A file with a hash in its name
never changes, so browsers may cache it; `index.html`, which refers to them, is requested each time.
Files that the build compressed are sent compressed to clients that accept that. The files are few
and small: each is read on its first request, and cached in memory until it changes. Starlette's
`StaticFiles` sends neither compressed files nor such a policy, and reads in a thread. The page's
own style and first lines of script are in the document, so that it shows at once; the policy allows
them by their hashes.

`/_inspect` shows what happens in a session, and why something failed. Its files are public, like
those of the chat page. They request their data from the control plane, which requires a token.

`/_picture` shows one picture of another host, in a frame that may load this picture and nothing
else. The policy of the page blocks pictures of other hosts, whatever an agent sends. If the reader
allows a picture, it is shown in a document with its own origin (`sandbox`). The policy of that
document allows only the host of the picture, so a redirect to a third host is blocked too. The
frame learns nothing about the page; the page learns the size of the picture. The server itself
fetches nothing.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

STATIC = Path(__file__).parent / "static"

INSPECT: Final = "/_inspect"

INSPECT_FILES = STATIC / "inspect"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self'; frame-src 'self'; base-uri 'none'; "
    "form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html"
)
"""Content security policy of the pages.

Only Lit's templates, with the policy `lit-html`, may turn text into HTML. A page may contain frames
of `/_picture`; no page with this policy may be framed.
"""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
    "vary": "accept-encoding",
}

FOR_EVER = "public, max-age=31536000, immutable"

ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Content encodings, preferred ones first, and the endings of their files."""

TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
"""Content type of each file name extension; other files are not served."""

_HASHED = re.compile(r"-[\w-]{8}\.(?:js|css)$")

_NAME = re.compile(r"[\w-]+\.[a-z]+")
"""Name of a file directly in the folder, without a path."""


def page_routes(folder: Path = STATIC) -> list[BaseRoute]:
    """Return `/` with its files at `/_static/`, `/_inspect` with its own, and `/_picture`."""
    page = ("/", "/_static/", folder)
    inspect = (INSPECT, f"{INSPECT}/", INSPECT_FILES)
    return [*_routes(*page), *_routes(*inspect), Route(PICTURE, _frame)]


def _routes(path: str, prefix: str, folder: Path) -> list[BaseRoute]:
    files = _PageFiles(folder)

    async def index(request: Request) -> Response:
        return files.response("index.html", request)

    async def file(request: Request) -> Response:
        return files.response(request.path_params["name"], request)

    return [Route(path, index), Route(prefix + "{name:path}", file)]


def accepted_encodings(header: str) -> set[str]:
    """Return the encodings in an `Accept-Encoding` header, except those with `q=0`."""
    accepted = set()
    for part in header.lower().split(","):
        name, _, parameters = part.partition(";")
        weight = parameters.replace(" ", "").removeprefix("q=")
        if not re.fullmatch(r"0(?:\.0*)?", weight):
            accepted.add(name.strip())
    return accepted


def policy_of(page: bytes) -> str:
    """Return the content security policy of a page.

    It is `POLICY`, with the hashes of the inline scripts and styles of the page.
    """
    policy = POLICY
    for tag, source in (("script", "script-src"), ("style", "style-src")):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>".encode(), page, re.DOTALL)
        hashes = "".join(f" '{_hash(text)}'" for text in inside)
        policy = policy.replace(f"{source} 'self'", f"{source} 'self'{hashes}")
    return policy


def _hash(text: bytes) -> str:
    return f"sha256-{b64encode(sha256(text).digest()).decode()}"


class _PageFile(Struct, frozen=True):
    """A file with its ETag, cached in memory."""

    stamp: tuple[int, int]
    """Time of its last change in ns, and its size in bytes."""
    body: bytes
    etag: str


class _PageFiles:
    """Serves the files of a folder with the page's headers, compressed if possible."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[str, _PageFile] = {}

    def response(self, name: str, request: Request) -> Response:
        """Return a response with a file, or 304 without it if the client's copy is current.

        The file is compressed if the client accepts that and a compressed version exists.

        Raises:
            HTTPException: 404; there is no file with that name, or its type is not in `TYPES`.
        """
        file = self._read(name) if _NAME.fullmatch(name) else None
        kind = TYPES.get(Path(name).suffix)
        if file is None or kind is None:
            raise HTTPException(404)
        headers = {**HEADERS, "content-type": kind}
        if name.endswith(".html"):
            headers["content-security-policy"] = policy_of(file.body)
        if _HASHED.search(name):
            headers["cache-control"] = FOR_EVER
        sent, encoding = self._packed(name, file, request.headers)
        if encoding is not None:
            headers["content-encoding"] = encoding
        headers["etag"] = sent.etag
        if sent.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        headers["content-length"] = str(len(sent.body))
        return Response(b"" if request.method == "HEAD" else sent.body, headers=headers)

    def _packed(self, name: str, file: _PageFile, headers: Headers) -> tuple[_PageFile, str | None]:
        """Return the file to send for a name, and its content encoding."""
        accepted = accepted_encodings(headers.get("accept-encoding", ""))
        for encoding, ending in ENCODINGS.items():
            if encoding in accepted and (packed := self._read(name + ending)) is not None:
                return packed, encoding
        return file, None

    def _read(self, name: str) -> _PageFile | None:
        # Not in a thread, because switching to one and back takes longer than reading.
        path = self._folder / name
        try:
            stat = path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
            kept = self._kept.get(name)
            if kept is None or kept.stamp != stamp:
                body = path.read_bytes()
                kept = self._kept[name] = _PageFile(
                    stamp, body, f'"{sha256(body).hexdigest()[:32]}"'
                )
        except OSError:
            return None
        return kept


# -- pictures of other hosts ----------------------------------------------------------------------

PICTURE: Final = "/_picture"

MAX_ADDRESS: Final = 4096
"""Maximum length of a picture's address in characters; servers refuse longer request lines."""

FRAME_STYLE: Final = (
    ":root{color-scheme:light dark}html,body{height:100%;margin:0;overflow:hidden}"
    "img{display:block;width:100%;height:100%;object-fit:contain}.cover{object-fit:cover}"
)

FRAME_SCRIPT: Final = (
    'const p=document.querySelector("img"),'
    "tell=size=>parent.postMessage({arpPicture:size},location.origin);"
    "p.decode().then(()=>tell([p.naturalWidth,p.naturalHeight]),()=>tell(null))"
)
"""Sends the size in pixels to the page around it only; `null` if the picture did not load."""

_AUTHORITY = re.compile(r"(?:[a-z0-9_-]+\.)*[a-z0-9_-]+(?::[0-9]{1,5})?", re.IGNORECASE)
"""Authority that a policy may contain: no user name and no characters that end a directive."""


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
    """Return the policy of a frame that shows a picture from an origin."""
    return (
        f"default-src 'none'; img-src {origin}; script-src '{_hash(FRAME_SCRIPT.encode())}'; "
        f"style-src '{_hash(FRAME_STYLE.encode())}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; sandbox allow-scripts"
    )


async def _frame(request: Request) -> Response:
    """Return a frame with the picture that `src` names; `fit=cover` fills it."""
    # Browsers report in these headers which page sent a request, so other sites are refused here.
    # On plain HTTP they send no such headers; then `frame-ancestors` in the policy refuses others.
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
        f'<!doctype html><meta charset="utf-8"><title>-</title><style>{FRAME_STYLE}</style>'
        f'<img{kind} alt="" referrerpolicy="no-referrer" src="{escape(address)}">'
        f"<script>{FRAME_SCRIPT}</script>",
        headers={**HEADERS, "content-security-policy": frame_policy(origin)},
    )
