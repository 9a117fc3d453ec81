"""A cookie that opens a user's files, where a page cannot send a token: in `src` and links.

It opens `GET /_api/blobs/…` and nothing else, only for the user who asked for it, only for a while,
and only on the server's own pages: `SameSite=Strict`, and files say `Cross-Origin-Resource-Policy:
same-origin`. Its key lives as long as the process. Its name is this server's own, since cookies do
not tell ports apart.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from http.cookies import CookieError, SimpleCookie

from arp.access.principal import Principal
from arp.hub.saved import PREFIX
from arp.transport.websocket import Scope

LIFE_S = 3600
"""How long one is good; a page asks for the next one before."""


class FileCookie:
    """Gives cookies, and knows its own again."""

    def __init__(self) -> None:
        self.name = f"arp_files_{secrets.token_hex(4)}"
        self._key = secrets.token_bytes(32)

    def header(self, scope: Scope, principal: Principal, now_s: float) -> str:
        """Gives `Set-Cookie` for a user.

        Args:
            scope: Of the request that asks.
            principal: Who asks.
            now_s: Seconds since 1970.
        """
        said = f"{_as_text(principal.name)}.{int(now_s) + LIFE_S}"
        place = scope.get("root_path", "") + PREFIX.rstrip("/")
        safe = "; Secure" if scope.get("scheme") == "https" else ""
        kept = f"{self.name}={said}.{self._sign(said)}; Path={place}; Max-Age={LIFE_S}"
        return f"{kept}; HttpOnly; SameSite=Strict{safe}"

    def principal(self, scope: Scope, now_s: float) -> Principal | None:
        """Tells to whom the cookie of a request was given; `None` if it opens nothing here."""
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
        said, _, signature = (morsel.value if morsel is not None else "").rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(said).encode()):
            return None
        user, _, until = said.partition(".")
        return Principal(_as_name(user)) if int(until) > now_s else None

    def _sign(self, said: str) -> str:
        return hmac.new(self._key, said.encode(), "sha256").hexdigest()


def _as_text(name: str) -> str:
    return urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _as_name(text: str) -> str:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (Error, UnicodeDecodeError) as error:  # nothing that we signed
        raise AssertionError("a signed name cannot be read") from error
