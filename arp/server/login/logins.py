"""Logins of users at an OpenID Connect provider, each identified by a cookie of a browser.

Theory of operation. While the user is at the provider, the state of the attempt is in a signed
cookie of the browser (`LoginAttempt`) and not in the server, so a flood of attempts cannot fill the
memory. The cookie binds the provider's answer to this browser: `state` protects against forged
answers, the nonce against the ID token of another user, and PKCE against a stolen code. An attempt
can be completed once.

After the login, the browser has a cookie with 256 random bits, and the server keeps the hash of
these bits with the identity. The bits are new for each login, so a cookie that an attacker placed
in the browser never becomes valid.

A login survives a restart: `login_file` stores it encrypted, and the first request with its cookie
loads it. With a ledger in memory there is no such file, and users sign in again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import secrets
import sqlite3
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from arp.access.incoming import IncomingConnection, Scope
from arp.access.oidc import Oidc
from arp.access.principal import Principal
from arp.net.signer import Signer
from arp.server.login.login_file import LoginFile, Seal
from arp.server.login.oidc_provider import Identity, Provider, ProviderFailed, subject_of

logger = logging.getLogger(__name__)

LOGIN: Final = "/_login"
CALLBACK: Final = "/_login/callback"
LOGOUT: Final = "/_logout"

CREDENTIAL: Final = "login:"
"""Prefix of the credential of a login."""

ATTEMPT_S: Final = 600
"""Time in seconds that an attempt to sign in may take."""

GRACE_S: Final = 300.0
"""Time in seconds that a login stays valid while the provider cannot be reached to renew it."""

RETRY_S: Final = 10.0
"""Time in seconds between two attempts to reach the provider."""

MOST_LOGINS: Final = 100_000
"""Largest number of logins; a new login then ends the oldest one."""


class LoginAttempt(Struct, frozen=True):
    """State of an attempt to sign in; content of its cookie."""

    state: str
    nonce: str
    verifier: str
    next: str
    """Path that the browser opens after the login."""
    redirect_uri: str
    until: float


class Login(Struct):
    """The login of a user in one browser."""

    id: str
    key: bytes
    """Hash of the secret in the cookie."""
    seal: Seal
    """Encryption of the login in the file."""
    identity: Identity
    until: float
    """Latest end of the login, in seconds since the epoch."""
    renewing: asyncio.Task[None] | None = None
    unreached_at: float | None = None
    """Time of the last failed attempt to reach the provider, in seconds since the epoch."""

    @property
    def principal(self) -> Principal:
        """Principal of the user."""
        user = self.identity.user
        return Principal(
            user.name,
            known_as=user,
            credential=CREDENTIAL + self.id,
            expires_at=self.until,
            is_admin=self.identity.is_admin,
        )


class LoginBook:
    """All logins of a server.

    Args:
        oidc: Settings of the provider.
        path: File that stores the logins; `None` means that they end with the process.

    Raises:
        ValueError: authlib is not installed.
    """

    def __init__(self, oidc: Oidc, path: Path | None = None) -> None:
        self.provider = Provider(oidc)
        self._file = LoginFile(path)
        self._oidc = oidc
        self._signer = Signer(secrets.token_bytes(32))
        self._by_hash: dict[bytes, Login] = {}
        self._by_id: dict[str, Login] = {}
        self._used: dict[str, float] = {}
        """When each used attempt expires, by its state; a used attempt is refused until then."""

    async def aclose(self) -> None:
        """Cancel the running renewals; close the file and the connections to the provider."""
        for login in self._by_id.values():
            if login.renewing is not None:
                login.renewing.cancel()
                login.renewing = None
        self._file.close()
        await self.provider.aclose()

    # -- attempts ----------------------------------------------------------------------------------

    async def begin(self, scope: Scope, after: str) -> tuple[str, str]:
        """Begin an attempt to sign in.

        Args:
            scope: Scope of the request.
            after: Path that the browser opens after the login. If it is not a path of this server,
                the browser opens the page.

        Returns:
            Address of the provider to sign in at, and the `Set-Cookie` header of the attempt.

        Raises:
            ProviderFailed: The provider cannot be reached.
        """
        attempt = LoginAttempt(
            secrets.token_urlsafe(32),
            secrets.token_urlsafe(32),
            secrets.token_urlsafe(48),
            local_path(after, scope),
            self.base(scope) + CALLBACK,
            time.time() + ATTEMPT_S,
        )
        url = await self.provider.sign_in_url(
            attempt.redirect_uri, attempt.state, attempt.nonce, attempt.verifier
        )
        content = urlsafe_b64encode(msgspec.json.encode(attempt)).decode()
        name = _attempt_cookie(attempt.state)
        return url, self._cookie(scope, name, self._signer.sign(content), ATTEMPT_S)

    async def finish(self, scope: Scope) -> tuple[str, list[str]]:
        """Complete the login of a browser that returns from the provider.

        Returns:
            Path that the browser opens next, and its `Set-Cookie` headers.

        Raises:
            ProviderFailed: The answer is not valid; no login was made.
        """
        connection = IncomingConnection(scope)
        query = connection.query
        attempt = self._attempt(connection, query.get("state", ""))
        # Before the first await, so that the same answer cannot be used a second time.
        self._use(attempt)
        await self.provider.check_sender(query.get("iss"))
        if "error" in query:
            raise ProviderFailed(f"the provider refused the login: {_word(query['error'])}")
        if not query.get("code"):
            raise ProviderFailed("the answer has no code")
        identity = await self.provider.sign_in(
            query["code"], attempt.redirect_uri, attempt.verifier, attempt.nonce
        )
        # The new cookie replaces the old one. Without this, the old login would stay valid.
        self.end(scope)
        secret = self._add(identity)
        return attempt.next, [
            self._cookie(scope, _login_cookie(scope), secret, int(self._oidc.login_s)),
            self._cookie(scope, _attempt_cookie(attempt.state), "", 0),
        ]

    def _attempt(self, connection: IncomingConnection, state: str) -> LoginAttempt:
        cookie = connection.cookies.get(self._name(connection.scope, _attempt_cookie(state)), "")
        content = self._signer.verified(cookie)
        failed = ProviderFailed("this browser has not begun a login here, or began it too long ago")
        if content is None:
            raise failed
        attempt = msgspec.json.decode(urlsafe_b64decode(content), type=LoginAttempt)
        is_same = hmac.compare_digest(attempt.state.encode(), state.encode())
        if not is_same or attempt.until < time.time() or attempt.state in self._used:
            raise failed
        return attempt

    def _use(self, attempt: LoginAttempt) -> None:
        now = time.time()
        self._used = {state: until for state, until in self._used.items() if until > now}
        self._used[attempt.state] = attempt.until

    # -- logins ------------------------------------------------------------------------------------

    def _add(self, identity: Identity) -> str:
        """Add a login; return the secret for its cookie."""
        now, secret = time.time(), secrets.token_urlsafe(32)
        for key, login in list(self._by_hash.items()):
            if login.until > now and len(self._by_hash) < MOST_LOGINS:
                break  # the dict is roughly in the order in which logins end
            with contextlib.suppress(OSError, sqlite3.Error):  # a full disk must not prevent logins
                self._remove(key)
        seal = Seal(secret, self._oidc)
        login = self._remember(_hash(secret), seal, identity, now + self._oidc.login_s)
        self._write(login)
        logger.info("%r has signed in", identity.user.name)
        return secret

    def _remember(self, key: bytes, seal: Seal, identity: Identity, until: float) -> Login:
        login = Login(secrets.token_hex(8), key, seal, identity, until)
        self._by_hash[key] = self._by_id[login.id] = login
        return login

    def _write(self, login: Login) -> None:
        """Write a login to the file; if that fails, the login ends with this process."""
        try:
            row = login.seal.encrypt(login.identity)
            self._file.write(login.key, login.until, row, time.time())
        except (OSError, sqlite3.Error):
            logger.exception("a login cannot be written to its file; it ends with this process")

    def _find(self, scope: Scope) -> Login | None:
        """Return the login of a browser, from memory or from the file; `None` if there is none."""
        secret = self._secret_in(scope)
        key = _hash(secret)
        login = self._by_hash.get(key)
        if login is not None or not secret:
            return login
        try:
            stored = self._file.read(key, time.time())
        except (OSError, sqlite3.Error):
            logger.exception("the logins of earlier processes cannot be read")
            return None
        if stored is None:
            return None
        seal = Seal(secret, self._oidc)
        identity = seal.decrypt(stored[1])
        return None if identity is None else self._remember(key, seal, identity, stored[0])

    def end(self, scope: Scope) -> Login | None:
        """End and return the login of a browser; `None` if there is none.

        Raises:
            OSError, sqlite3.Error: The file cannot be written; the login has not ended.
        """
        login = self._find(scope)
        if login is not None:
            self._remove(login.key)
        return login

    def _remove(self, key: bytes) -> None:
        self._file.remove(key)
        login = self._by_hash.pop(key, None)
        if login is not None:
            self._by_id.pop(login.id, None)

    def _secret_in(self, scope: Scope) -> str:
        name = self._name(scope, _login_cookie(scope))
        return IncomingConnection(scope).cookies.get(name, "")

    async def principal(self, scope: Scope) -> Principal | None:
        """Return the principal of a request by its cookie; `None` if there is no valid login.

        Browsers also send cookies with requests from pages of other sites. So a handshake, and a
        request that can change something, must come from a page of this server.
        """
        is_reading = scope.get("method") in ("GET", "HEAD") and scope.get("type") != "websocket"
        login = self._find(scope)
        if login is None or not (is_reading or _is_from_own_page(scope)):
            return None
        if self._is_due(login):
            await self._renew_once(login)
        return login.principal if self.is_valid(CREDENTIAL + login.id) else None

    def is_valid(self, credential: str) -> bool:
        """Return whether the login of a credential is still valid.

        A login that is due for renewal is renewed in the background. It stays valid meanwhile, for
        at most `GRACE_S`.
        """
        login, now = self._by_id.get(credential.removeprefix(CREDENTIAL)), time.time()
        if login is None or login.until <= now:
            return False
        renew_at = login.identity.renew_at
        if renew_at is None or now < renew_at:
            return True
        if self._is_due(login):
            self._renewal(login)
        # Without a limit, a user who was locked out would keep access while the provider is down.
        return now < renew_at + GRACE_S

    def _is_due(self, login: Login) -> bool:
        renew_at, now = login.identity.renew_at, time.time()
        waits = login.unreached_at is not None and now < login.unreached_at + RETRY_S
        return renew_at is not None and now >= renew_at and not waits

    async def _renew_once(self, login: Login) -> None:
        await asyncio.wait((self._renewal(login),))

    def _renewal(self, login: Login) -> asyncio.Task[None]:
        if login.renewing is None:
            task = asyncio.get_running_loop().create_task(self._renew(login), name="arp-login")
            login.renewing = task
        return login.renewing

    async def _renew(self, login: Login) -> None:
        """Ask the provider whether a login is still valid, and update its identity."""
        try:
            known = login.identity
            renewed = await self.provider.renew(known, subject_of(known))
            if renewed.user.name != known.user.name:
                raise ProviderFailed("the renewed ID token belongs to another user")
            if (renewed.is_admin, renewed.user.roles) != (known.is_admin, known.user.roles):
                self._replace_id(login)
            login.identity, login.unreached_at = renewed, None
            self._write(login)
        except ProviderFailed as failed:
            if failed.is_final:
                logger.info("the login of %r has ended: %s", login.identity.user.name, failed)
                login.until = 0.0
                self._write(login)  # otherwise the file would restore the login
            else:
                logger.warning("the login provider: %s", failed)
                login.unreached_at = time.time()
        finally:
            login.renewing = None

    def _replace_id(self, login: Login) -> None:
        """Give a login a new id, because the rights of its user have changed.

        Open connections were admitted with the old id, so they are closed. The browser reconnects
        with the same cookie.
        """
        del self._by_id[login.id]
        login.id = secrets.token_hex(8)
        self._by_id[login.id] = login

    # -- addresses and cookies ---------------------------------------------------------------------

    def base(self, scope: Scope) -> str:
        """Return the address of this server as browsers see it, without a final slash."""
        if self._oidc.public_url is not None:
            return self._oidc.public_url.rstrip("/")
        host = IncomingConnection(scope).headers["host"]
        return f"{scope.get('scheme', 'http')}://{host}{scope.get('root_path', '')}"

    def expired_cookie(self, scope: Scope) -> str:
        """Return the `Set-Cookie` header that removes the cookie of a login."""
        return self._cookie(scope, _login_cookie(scope), "", 0)

    def _is_safe(self, scope: Scope) -> bool:
        return self.base(scope).startswith("https://")

    def _name(self, scope: Scope, name: str) -> str:
        """Return the full name of a cookie.

        With the prefix `__Host-`, browsers accept the cookie only from this host and over TLS.
        """
        return f"__Host-{name}" if self._is_safe(scope) else name

    def _cookie(self, scope: Scope, name: str, value: str, life_s: int) -> str:
        # `Lax`, because the browser must send the cookie when the provider redirects it back.
        safe = "; Secure" if self._is_safe(scope) else ""
        rest = f"Path=/; Max-Age={life_s}; HttpOnly; SameSite=Lax{safe}"
        return f"{self._name(scope, name)}={value}; {rest}"


def local_path(wanted: str, scope: Scope) -> str:
    r"""Return `wanted` if it is a path on this server, otherwise the path of the start page.

    The paths of login and logout are replaced by the path of the start page too.

    A browser reads `//host`, `/\host` and a path with line breaks as the address of another host.
    """
    root: str = scope.get("root_path", "")
    is_plain = wanted.isascii() and wanted.isprintable() and "\\" not in wanted
    if not is_plain or not wanted.startswith(f"{root}/") or wanted.startswith("//"):
        return f"{root}/"
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return f"{root}/"
    is_login = parts.path.removeprefix(root).startswith((LOGIN, LOGOUT))
    return f"{root}/" if parts.scheme or parts.netloc or is_login else wanted


def _is_from_own_page(scope: Scope) -> bool:
    """Return whether a request comes from a page of this server, according to its `Origin`."""
    headers = IncomingConnection(scope).headers
    origin, host = headers.get("origin", ""), headers.get("host", "")
    return origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


def _login_cookie(scope: Scope) -> str:
    """Return the name of the login cookie.

    It contains the port, because browsers send a cookie to all ports of a host.
    """
    port = IncomingConnection(scope).headers.get("host", "").rpartition(":")[2]
    return f"arp_login_{port}" if port.isascii() and port.isdigit() else "arp_login"


def _attempt_cookie(state: str) -> str:
    """Return the cookie name of an attempt; each tab may have an attempt of its own."""
    return f"arp_attempt_{hashlib.sha256(state.encode()).hexdigest()[:12]}"


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _word(text: str) -> str:
    """Return an error code of the provider if it is one word; other text is not shown."""
    is_word = text.isascii() and text.replace("_", "").isalnum()
    return text[:40] if is_word else "an error"
