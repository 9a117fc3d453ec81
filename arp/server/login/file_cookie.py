"""Cookie for the files of a user, because a page cannot send a token with `src` and links.

The cookie is accepted only for `GET /_api/blobs/…`, and gives access to the files of the user who
requested it. It is valid for an hour, and ends earlier if the credential of the user ends. It works
only on pages of this server (`SameSite=Strict`; files have `Cross-Origin-Resource-Policy:
same-origin`). The signing key lives as long as the process. Each server has its own cookie name,
because browsers send cookies to all ports of a host.
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
"""Lifetime of a cookie in seconds; a page requests the next one earlier."""


class FileCookie:
    """Signs and checks the cookies of a server."""

    def __init__(self) -> None:
        self.name = f"arp_files_{secrets.token_hex(4)}"
        self._signer = Signer(secrets.token_bytes(32))

    def header(self, scope: Scope, principal: Principal, now_s: float) -> str:
        """Return `Set-Cookie` for a user.

        Args:
            scope: Scope of the request for the cookie.
            principal: Principal of that request.
            now_s: Current time in seconds since the epoch.
        """
        until = min(now_s + LIFE_S, principal.expires_at or math.inf)
        credential = _encoded(principal.credential)
        content = f"{_encoded(principal.name)}.{credential}.{int(until)}"
        path = scope.get("root_path", "") + PREFIX.rstrip("/")
        safe = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = f"{self.name}={self._signer.sign(content)}; Path={path}; Max-Age={LIFE_S}"
        return f"{cookie}; HttpOnly; SameSite=Strict{safe}"

    def principal(self, scope: Scope, now_s: float) -> Principal | None:
        """Return the principal of the cookie in a request; `None` if it gives no access here.

        The caller checks whether the credential of the principal is still valid.
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
        user, credential, until = content.split(".")
        if int(until) <= now_s:
            return None
        return Principal(_decoded(user), credential=_decoded(credential))


def _encoded(name: str) -> str:
    return urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _decoded(text: str) -> str:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (Error, UnicodeDecodeError) as error:  # impossible: the signature was checked
        raise AssertionError("a signed name cannot be read") from error
