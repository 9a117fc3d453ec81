"""People who have signed in at a provider, each by a cookie of their browser.

Theory of operation. Between leaving for the provider and coming back, all that is known stands in a
signed cookie of the browser (`LoginAttempt`), so that nobody can fill the memory with attempts. It
binds the answer to that browser: state against forged answers, nonce against another's ID token,
PKCE against a stolen code. It counts once. After that the browser has a cookie with 256 random
bits, and the server keeps its hash with who it is. It always makes a new one, so a cookie that
somebody else has put there never becomes valid.

A login outlasts a restart: `login_file` keeps it encrypted, and the first request with its cookie
takes it into memory again. With a ledger in memory, people sign in again.
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
"""How the credential of a login begins."""

ATTEMPT_S: Final = 600
"""How long somebody may take to sign in."""

GRACE_S: Final = 300.0
"""How long a login goes on while the provider cannot be asked whether it still holds."""

RETRY_S: Final = 10.0
"""How soon the provider is asked again that could not be reached."""

MOST_LOGINS: Final = 100_000
"""Beyond it, the oldest login ends."""


class LoginAttempt(Struct, frozen=True):
    """An attempt to sign in, as it stands in the cookie."""

    state: str
    nonce: str
    verifier: str
    next: str
    """The path to which the browser goes afterwards."""
    redirect_uri: str
    until: float


class Login(Struct):
    """Somebody who has signed in."""

    id: str
    key: bytes
    """The hash of the secret in its cookie."""
    seal: Seal
    """Encrypts it for the file."""
    identity: Identity
    until: float
    """When it ends at the latest, in seconds since 1970."""
    renewing: asyncio.Task[None] | None = None
    unreached_at: float | None = None
    """When the provider was asked in vain last."""

    @property
    def principal(self) -> Principal:
        """Who that is."""
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
        oidc: The settings.
        path: Of the file in which they outlast a restart; `None`: they do not.

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
        """States that have come back, until they would be too old anyway."""

    async def aclose(self) -> None:
        """End what is under way."""
        for login in self._by_id.values():
            if login.renewing is not None:
                login.renewing.cancel()
                login.renewing = None
        self._file.close()
        await self.provider.aclose()

    # -- attempts ----------------------------------------------------------------------------------

    async def begin(self, scope: Scope, after: str) -> tuple[str, str]:
        """Return where to sign in, and the `Set-Cookie` that belongs to it.

        Args:
            scope: Of the request.
            after: The path to which the browser is to go afterwards; any other place is ignored.

        Raises:
            ProviderFailed: The provider cannot be asked.
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
        """Sign somebody in who comes back from the provider.

        Returns:
            The path to which the browser goes, and its cookies.

        Raises:
            ProviderFailed: Anything is wrong with the answer; nobody is signed in.
        """
        connection = IncomingConnection(scope)
        query = connection.query
        attempt = self._attempt(connection, query.get("state", ""))
        # From here on this answer cannot come a second time.
        self._use(attempt)
        await self.provider.check_sender(query.get("iss"))
        if "error" in query:
            raise ProviderFailed(f"nobody was signed in: {_word(query['error'])}")
        if not query.get("code"):
            raise ProviderFailed("the answer has no code")
        identity = await self.provider.sign_in(
            query["code"], attempt.redirect_uri, attempt.verifier, attempt.nonce
        )
        self.end(scope)
        secret = self._add(identity)
        return attempt.next, [
            self._cookie(scope, _login_cookie(scope), secret, int(self._oidc.login_s)),
            self._cookie(scope, _attempt_cookie(attempt.state), "", 0),
        ]

    def _attempt(self, connection: IncomingConnection, state: str) -> LoginAttempt:
        cookie = connection.cookies.get(self._name(connection.scope, _attempt_cookie(state)), "")
        content = self._signer.verified(cookie)
        failed = ProviderFailed("this browser did not begin to sign in here, or too long ago")
        if content is None:
            raise failed
        attempt = msgspec.json.decode(urlsafe_b64decode(content), type=LoginAttempt)
        is_its_own = hmac.compare_digest(attempt.state.encode(), state.encode())
        if not is_its_own or attempt.until < time.time() or attempt.state in self._used:
            raise failed
        return attempt

    def _use(self, attempt: LoginAttempt) -> None:
        now = time.time()
        self._used = {state: until for state, until in self._used.items() if until > now}
        self._used[attempt.state] = attempt.until

    # -- logins ------------------------------------------------------------------------------------

    def _add(self, identity: Identity) -> str:
        """Keep a login; return the secret of its cookie."""
        now, secret = time.time(), secrets.token_urlsafe(32)
        for key, login in list(self._by_hash.items()):
            if login.until > now and len(self._by_hash) < MOST_LOGINS:
                break  # about in the order in which they end
            with contextlib.suppress(OSError, sqlite3.Error):  # a full disk keeps nobody out
                self._remove(key)
        seal = Seal(secret, self._oidc)
        login = self._hold(_hash(secret), seal, identity, now + self._oidc.login_s)
        self._write(login)
        logger.info("%r has signed in", identity.user.name)
        return secret

    def _hold(self, key: bytes, seal: Seal, identity: Identity, until: float) -> Login:
        login = Login(secrets.token_hex(8), key, seal, identity, until)
        self._by_hash[key] = self._by_id[login.id] = login
        return login

    def _write(self, login: Login) -> None:
        """Write a login to the file; if that fails, it ends with this process."""
        try:
            row = login.seal.close(login.identity)
            self._file.write(login.key, login.until, row, time.time())
        except (OSError, sqlite3.Error):
            logger.exception("a login cannot be written; it ends with this process")

    def _found(self, scope: Scope) -> Login | None:
        """Return the login of a browser, also one of an earlier process."""
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
        identity = seal.open(stored[1])
        return None if identity is None else self._hold(key, seal, identity, stored[0])

    def end(self, scope: Scope) -> Login | None:
        """End the login of a browser; return what it was.

        Raises:
            OSError, sqlite3.Error: The file cannot be written, so it has not ended.
        """
        login = self._found(scope)
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
        """Return who asks, by their cookie; `None`: nobody who has signed in.

        Browsers send cookies for whatever a page of any site asks. So a handshake and a request
        that changes something must say that a page of this very server sent it.
        """
        is_reading = scope.get("method") in ("GET", "HEAD") and scope.get("type") != "websocket"
        login = self._found(scope)
        if login is None or not (is_reading or _is_from_own_page(scope)):
            return None
        if self._is_due(login):
            await self._renew_once(login)
        return login.principal if self.is_valid(CREDENTIAL + login.id) else None

    def is_valid(self, credential: str) -> bool:
        """Return whether a login that let somebody in has not ended.

        One that is due is renewed in the background, and is valid meanwhile.
        """
        login, now = self._by_id.get(credential.removeprefix(CREDENTIAL)), time.time()
        if login is None or login.until <= now:
            return False
        renew_at = login.identity.renew_at
        if renew_at is None or now < renew_at:
            return True
        if self._is_due(login):
            self._renewal(login)
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
        """Ask the provider whether a login still holds, and who that is now."""
        try:
            known = login.identity
            renewed = await self.provider.renew(known, subject_of(known))
            if renewed.user.name != known.user.name:
                raise ProviderFailed("the renewed ID token is of somebody else")
            if (renewed.is_admin, renewed.user.roles) != (known.is_admin, known.user.roles):
                self._rename(login)
            login.identity, login.unreached_at = renewed, None
            self._write(login)
        except ProviderFailed as failed:
            if failed.is_final:
                logger.info("the login of %r has ended: %s", login.identity.user.name, failed)
                login.until = 0.0
                self._write(login)
            else:
                logger.warning("the login provider: %s", failed)
                login.unreached_at = time.time()
        finally:
            login.renewing = None

    def _rename(self, login: Login) -> None:
        """Close what is open with a login, whose user may do more or less than before.

        The browser connects again by its cookie, which stays.
        """
        del self._by_id[login.id]
        login.id = secrets.token_hex(8)
        self._by_id[login.id] = login

    # -- addresses and cookies ---------------------------------------------------------------------

    def base(self, scope: Scope) -> str:
        """Return the address of this server as browsers see it, without a slash at its end."""
        if self._oidc.public_url is not None:
            return self._oidc.public_url.rstrip("/")
        host = IncomingConnection(scope).headers["host"]
        return f"{scope.get('scheme', 'http')}://{host}{scope.get('root_path', '')}"

    def gone(self, scope: Scope) -> str:
        """Return the `Set-Cookie` that removes the cookie of a login."""
        return self._cookie(scope, _login_cookie(scope), "", 0)

    def _is_safe(self, scope: Scope) -> bool:
        return self.base(scope).startswith("https://")

    def _name(self, scope: Scope, name: str) -> str:
        """Return a cookie's name; browsers let no other host or plain page set a `__Host-` one."""
        return f"__Host-{name}" if self._is_safe(scope) else name

    def _cookie(self, scope: Scope, name: str, value: str, life_s: int) -> str:
        # `Lax`: it must come along when the provider sends the browser back.
        safe = "; Secure" if self._is_safe(scope) else ""
        rest = f"Path=/; Max-Age={life_s}; HttpOnly; SameSite=Lax{safe}"
        return f"{self._name(scope, name)}={value}; {rest}"


def local_path(wanted: str, scope: Scope) -> str:
    r"""Return a path of this server, or that of the page if it is anything else.

    A browser reads `//host`, `/\host` and a path with line breaks in it as another place.
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
    """Return whether a browser says that a page of this server sent a request."""
    headers = IncomingConnection(scope).headers
    origin, host = headers.get("origin", ""), headers.get("host", "")
    return origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


def _login_cookie(scope: Scope) -> str:
    """Return the name of the cookie; browsers send cookies to all ports of a host."""
    port = IncomingConnection(scope).headers.get("host", "").rpartition(":")[2]
    return f"arp_login_{port}" if port.isascii() and port.isdigit() else "arp_login"


def _attempt_cookie(state: str) -> str:
    """Return the name of the cookie of an attempt: in several tabs there are several."""
    return f"arp_attempt_{hashlib.sha256(state.encode()).hexdigest()[:12]}"


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _word(text: str) -> str:
    """Return an error code of the provider; nothing else of its answer is shown."""
    is_word = text.isascii() and text.replace("_", "").isalnum()
    return text[:40] if is_word else "an error"
