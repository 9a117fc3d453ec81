"""The cookie that opens a user's files, since a page cannot send a token with `src` and links.

It opens `GET /_api/blobs/…` and nothing else, for the user who requested it, for an hour or until
what let that user in has ended, and on the server's own pages only (`SameSite=Strict`; files have
`Cross-Origin-Resource-Policy: same-origin`). Its key lives as long as the process. Each server has
its own cookie name, since browsers send cookies to all ports of a host.
"""

from __future__ import annotations

import math
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from http.cookies import CookieError, SimpleCookie

from arp.access.principal import Principal
from arp.net.signer import Signer
from arp.protocol.blob_path import PREFIX
from arp.transport.websocket import Scope

LIFE_S = 3600
"""How long a cookie is valid; a page requests the next one before."""


class FileCookie:
    """Signs cookies, and checks them."""

    def __init__(self) -> None:
        self.name = f"arp_files_{secrets.token_hex(4)}"
        self._signer = Signer(secrets.token_bytes(32))

    def header(self, scope: Scope, principal: Principal, now_s: float) -> str:
        """Return `Set-Cookie` for a user.

        Args:
            scope: Of the request that asks.
            principal: Who asks.
            now_s: Seconds since 1970.
        """
        until = min(now_s + LIFE_S, principal.expires_at or math.inf)
        grounds = _as_text(principal.credential)
        content = f"{_as_text(principal.name)}.{grounds}.{int(until)}"
        place = scope.get("root_path", "") + PREFIX.rstrip("/")
        safe = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = f"{self.name}={self._signer.sign(content)}; Path={place}; Max-Age={LIFE_S}"
        return f"{cookie}; HttpOnly; SameSite=Strict{safe}"

    def principal(self, scope: Scope, now_s: float) -> Principal | None:
        """Return to whom the cookie of a request was given; `None` if it opens nothing here.

        The caller checks whether what let them in is still valid.
        """
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
        content = self._signer.verified(morsel.value) if morsel is not None else None
        if content is None:
            return None
        user, grounds, until = content.split(".")
        if int(until) <= now_s:
            return None
        return Principal(_as_name(user), credential=_as_name(grounds))


def _as_text(name: str) -> str:
    return urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _as_name(text: str) -> str:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (Error, UnicodeDecodeError) as error:  # nothing that we signed
        raise AssertionError("a signed name cannot be read") from error
