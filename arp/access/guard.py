"""Decide which requests may use the server: by host name, by the page that sent them, and by user.

Theory of operation. A browser sends requests for any page, also to this machine. So a request must
name a host of this server (a rebound DNS name does not match). If the request says which page sent
it, that page must belong to this server or to a listed origin. A GET for a picture or a script has
no `Origin`; for such a request the browser says in `Sec-Fetch-Site` whether the page belongs to
another site. These checks apply on loopback too. One function decides for every route, from the raw
request.

An app without a token and without a hook serves only this machine. `arp serve` then refuses to
listen on other addresses. A mounted app does not know where its server listens, so each request is
checked. A proxy on this machine makes every client look local. Therefore host names that other
machines can reach are refused too, unless trusted proxies are configured. Many proxies put the name
of their backend into `Host`; Apache does so by default. Therefore a request with a header that only
proxies add is refused too. So is a request of HTTP/1.0, which only proxies still use (nginx does by
default).

An app that runs commands of agents gets a token at each start, unless its access is controlled in
another way or the token was switched off; see `own_code`.

The user of a request is determined in this order: a token from `arp token create`, a login at a
provider, then the hook; without a hook, the single token of the app. Access may end during a
connection, so `is_valid` is checked again. Creating the first token ends every connection that
was admitted without a check.
"""

from __future__ import annotations

import hmac
import inspect
import logging
import os
import sqlite3
import time
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from arp.access.client_address import TrustedProxies
from arp.access.incoming import IncomingConnection, Scope
from arp.access.leases import HookFailed
from arp.access.own_code import OwnCodeDetector
from arp.access.principal import Principal, User
from arp.access.settings import LOOPBACK, Access
from arp.access.tokens import PREFIX, Tokens

logger = logging.getLogger(__name__)

OWN_SITES = frozenset(("same-origin", "none"))
"""Values of `Sec-Fetch-Site` for pages of this server, and for addresses that a person typed."""

ONLY_HERE = (
    "this app has neither token nor hook, so it serves its own machine alone; "
    "give App an Access(token=…), or an Access(authenticate=…)"
)

BEHIND_PROXY = (
    "this app has neither token nor hook, and a request came through a proxy ({mark}), so anybody "
    "may have sent it; set a token (--token, ARP_TOKEN, Access(token=…)), create tokens (arp token "
    "create), or name the proxy, so that only this machine is served (--trust-proxy ADDRESS)"
)

ADMIN: Final = "admin"
"""Role that lets an issued token or a login read the sessions of all users."""

TOKEN: Final = "token:"
"""Prefix of the credential of an issued token."""


NOBODY_CHECKED: Final = "open"
"""Credential of users who were admitted without a check, before the first token was created."""


class Logins(Protocol):
    """Users who have signed in with a browser."""

    async def principal(self, scope: Scope) -> Principal | None:
        """Return the user of the login cookie; `None` if there is no valid login."""

    def is_valid(self, credential: str) -> bool:
        """Return whether the login with this credential is still valid."""


class Denial(NamedTuple):
    """Refusal of a request, with its HTTP status and reason."""

    status: int
    reason: str


OF_A_TOOL: Final = Denial(403, "tools that this server runs may not use it")


class Guard:
    """Decides about the requests for one app.

    Args:
        access: Access settings.
        linked: Paths that links on other sites may open; a path that ends with `/` includes all
            paths below it.
        tokens: Tokens created for the ledger of the app.
        logins: Users who have signed in with a browser.
        own_code: Check that refuses commands run by the app; `None` if the app runs no commands.
    """

    def __init__(
        self,
        access: Access,
        linked: Sequence[str] = ("/",),
        tokens: Tokens | None = None,
        logins: Logins | None = None,
        own_code: OwnCodeDetector | None = None,
    ) -> None:
        self._token = access.token
        self._authenticate = access.authenticate
        self._admin_role = access.admin_role
        self._has_no_access = access.is_open
        self.tokens = tokens or Tokens(None)
        self._logins = logins
        self._own_code = own_code
        self.proxies = TrustedProxies(access.trusted_proxies)
        self._has_warned = False
        self._hosts = frozenset(host.lower() for host in (*LOOPBACK, *access.hosts))
        self._origins = frozenset(origin.lower().rstrip("/") for origin in access.origins)
        self._uids = frozenset(access.uids)
        self._linked = frozenset(linked)
        self._linked_folders = tuple(path for path in linked if path != "/" and path[-1] == "/")

    def check_source(self, scope: Scope) -> Denial | None:
        """Check the source of a request, its `Host`, `Origin` and `Sec-Fetch-Site`.

        Returns:
            The refusal, or `None` if the request passes.
        """
        if self._own_code is not None and self._own_code.is_tool(scope):
            return OF_A_TOOL
        if self.is_open() and (refused := self._check_local(scope)) is not None:
            return refused
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or _host_name(hosts[0]) not in self._hosts:
            return Denial(
                421, "this host name is not served here; the server's hosts setting lists more"
            )
        if self.has_listed_origin(scope):
            return None
        origins = _values(scope, b"origin")
        is_own = all(self._is_own(origin, hosts[0]) for origin in origins) and len(origins) < 2
        if is_own and (_sites(scope) <= OWN_SITES or self._is_visit(scope)):
            return None
        return Denial(403, "this origin may not use this server; its origins setting lists more")

    def check_peer(self, scope: Scope) -> Denial | None:
        """Check the source of a connection without `Host` and `Origin`.

        Over a Unix socket, the other process must run as the user of this server or as a listed
        user. Over other transports, an app that serves only its own machine refuses other machines.
        Use this check only for transports that no page can use through a browser.

        Args:
            scope: Scope of the handshake, with `headers`, and with `uid` or `client` and `server`.

        Returns:
            The refusal, or `None` if the connection passes.
        """
        if self._own_code is not None and self._own_code.is_tool(scope):
            return OF_A_TOOL
        uid = scope.get("uid")
        if uid is not None:
            if uid == os.geteuid() or uid in self._uids:
                return None
            return Denial(
                403, f"user {uid} may not connect; the server's Access(uids=…) lists more"
            )
        return self._check_local(scope) if self.is_open() else None

    def is_open(self) -> bool:
        """Return whether every local client may use the server without a token or login."""
        return self._has_no_access and not self.tokens.are_used()

    def _check_local(self, scope: Scope) -> Denial | None:
        """Check that a request comes from this machine, and not through a proxy."""
        if self.proxies.is_elsewhere(scope):
            return self._refused(ONLY_HERE)
        mark = self.proxies.forwarding_header(scope)
        if mark is None and scope.get("http_version") == "1.0":
            mark = "HTTP/1.0"
        return None if mark is None else self._refused(BEHIND_PROXY.format(mark=mark))

    def has_listed_origin(self, scope: Scope) -> bool:
        """Return whether the request was sent by a page of a listed origin."""
        origins = _values(scope, b"origin")
        return len(origins) == 1 and origins[0] in self._origins

    def _refused(self, reason: str) -> Denial:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("a client on another machine was refused: %s", reason)
        return Denial(403, reason)

    @staticmethod
    def _is_own(origin: str, host: str) -> bool:
        return origin in (f"http://{host}", f"https://{host}")

    def _is_visit(self, scope: Scope) -> bool:
        """Return whether a user follows a link on any site to a linkable path of this server.

        The browser shows the response, and the page with the link learns nothing about it.
        """
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        return (
            scope.get("method") in ("GET", "HEAD")
            and _values(scope, b"sec-fetch-mode") == ["navigate"]
            and _values(scope, b"sec-fetch-dest") == ["document"]
            and (path in self._linked or path.startswith(self._linked_folders))
        )

    async def principal(self, scope: Scope) -> Principal | None:
        """Return the principal of a request, or `None` if it is not admitted.

        A hook is called once for each request, and once for the handshake of a connection.
        """
        token = IncomingConnection(scope).token
        if (found := self._issued_principal(token)) is not None:
            return found
        if self._logins is not None:
            found = await self._logins.principal(scope)
            if found is not None:
                return found
        if self._authenticate is not None:
            return await self._ask_hook(scope)
        return self._check_app_token(token)

    async def check_token(self, token: str, scope: Scope) -> Principal | None:
        """Return the principal of a token in a `hello`, or `None` if the token is not valid.

        Args:
            token: Token in the `hello`.
            scope: Scope of the handshake. A hook is called again and receives the token as if it
                had been in the `authorization` header.
        """
        if (found := self._issued_principal(token)) is not None:
            return found
        if self._authenticate is not None:
            return await self._ask_hook(scope, token)
        return self._check_app_token(token)

    def asks_hook(self, principal: Principal) -> bool:
        """Return whether the hook has admitted a principal, so that it can be asked again."""
        return self._authenticate is not None and not principal.credential

    def is_valid(self, principal: Principal) -> bool:
        """Return whether an admitted principal still has access."""
        now, credential = time.time(), principal.credential
        if principal.expires_at is not None and principal.expires_at <= now:
            return False
        if credential == NOBODY_CHECKED:
            return self.is_open()
        if credential.startswith(TOKEN):
            try:
                return self.tokens.is_valid(credential.removeprefix(TOKEN), now)
            except sqlite3.Error:
                logger.exception("the tokens cannot be read")
                return False
        return not credential or self._logins is None or self._logins.is_valid(credential)

    def _issued_principal(self, text: str) -> Principal | None:
        """Return the principal of a token from `arp token create`, or `None`."""
        if not text.startswith(PREFIX):
            return None
        try:
            token = self.tokens.find(text, time.time())
        except sqlite3.Error:
            logger.exception("the tokens cannot be read")
            return None
        if token is None:
            return None
        user = User(token.user, roles=token.roles, expires_at=token.expires_at)
        return Principal(
            user.name,
            known_as=user,
            credential=TOKEN + token.id,
            expires_at=token.expires_at,
            is_admin=ADMIN in token.roles,
        )

    def _check_app_token(self, token: str) -> Principal | None:
        """Return a principal if the app's own token matches, or if the app is open to everyone."""
        if self._own_code is not None and self._own_code.has_shown(token):
            return Principal()
        if self._token is None:
            # An app with a start token admits no client without a token.
            has_start_token = self._own_code is not None and bool(self._own_code.token)
            if has_start_token or not self.is_open():
                return None
            return Principal(credential=NOBODY_CHECKED if self.tokens.may_be_created else "")
        matches = hmac.compare_digest(token.encode(), self._token.encode())
        return Principal() if matches else None

    async def recheck(self, scope: Scope, token: str | None = None) -> Principal | None:
        """Call the hook and return the principal, or `None` if the hook refuses access.

        Raises:
            HookFailed: The hook failed, so there is no decision.
        """
        assert self._authenticate is not None
        address = self.proxies.client(scope)
        connection = IncomingConnection(scope, "" if address is None else str(address), token)
        try:
            answer = self._authenticate(connection)
            if inspect.isawaitable(answer):
                answer = await answer
            if isinstance(answer, User):
                return self._admitted(answer)
            if answer is None:
                return None
            if not isinstance(answer, str):
                raise TypeError(f"it gave {type(answer).__name__}, not a User, a name or None")
            user = User(answer)
        except Exception as error:
            logger.exception("the authenticate hook failed")
            raise HookFailed from error
        return Principal(user.name)

    async def _ask_hook(self, scope: Scope, token: str | None = None) -> Principal | None:
        """Return the principal that the hook admits; `None` if it refuses or fails."""
        try:
            return await self.recheck(scope, token)
        except HookFailed:
            return None

    def _admitted(self, user: User) -> Principal | None:
        """Return the principal of a user from the hook; `None` if their access has expired."""
        if user.expires_at is not None and user.expires_at <= time.time():
            return None
        is_admin = self._admin_role is not None and self._admin_role in user.roles
        return Principal(user.name, known_as=user, expires_at=user.expires_at, is_admin=is_admin)


def _sites(scope: Scope) -> set[str]:
    """Return the values of `Sec-Fetch-Site`, which only browsers send."""
    return set(_values(scope, b"sec-fetch-site"))


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for key, value in scope["headers"] if key == name]


def _host_name(host: str) -> str:
    """Return the host name without its port. A malformed value is kept, and matches no host."""
    name, colon, port = host.rpartition(":")
    if colon and port.isascii() and port.isdigit() and not host.endswith("]"):
        return name
    return host
