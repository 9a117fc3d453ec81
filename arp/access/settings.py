"""`Access`: settings of authentication, allowed sources and resource limits of an app."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_network
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

from arp.access.incoming import IncomingConnection
from arp.access.oidc import Oidc
from arp.access.principal import User
from arp.protocol.limits import Count, Seconds
from arp.protocol.validate import bounds, check_fields

Answer: TypeAlias = User | str | None
"""A user, a user's name, or `None` to refuse."""

Authenticate: TypeAlias = Callable[[IncomingConnection], Awaitable[Answer] | Answer]
"""Hook that returns the user of a connection."""

Token: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[^\s\x00-\x1f\x7f]+\Z",
        max_length=4096,
        description="a text without spaces and control characters",
    ),
]
"""Token that can be sent unchanged in headers, shell commands and addresses."""

HostName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(?:[A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\])\Z",
        description="a host name without scheme and port, as agents.example.org",
    ),
]
"""Host name as in `Host`, without a port; an IPv6 address is in brackets."""

Origin: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(?:null|[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._~%\[\]:-]+/?)\Z",
        description="an origin without a path, as https://example.org",
    ),
]
"""Origin as sent by browsers: scheme, host, and port if it is not the default."""

ProxyAddress: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[0-9A-Fa-f]*[.:][0-9A-Fa-f.:]*(?:/[0-9]{1,3})?\Z",
        max_length=64,
        description="an address or a network, as 10.0.0.7 or 10.0.0.0/8",
    ),
]
"""Address, or network such as `10.0.0.0/8`."""


UserNumber: TypeAlias = Annotated[
    int,
    Meta(ge=0, lt=2**32, description="the number of a user of this machine, as `id -u` prints it"),
]
"""Id of a user of this machine, as printed by `id -u`."""
PageLink: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(?:https?://|/(?![/\\\\]))[^\s\\\\\x00-\x1f\x7f]*\Z",
        max_length=2048,
        description="a path as /login, or an address with https://",
    ),
]
"""Address of a link on the page; `{next}` in it is replaced with the address of the page."""


class Bounds(Struct, frozen=True):
    """Limits of connections and uploads. Limits of a user or address apply before those of all.

    Raises:
        ValueError: A bound has an impossible value.
    """

    header_s: Seconds = 10.0
    """Time in seconds for the request line and headers, also in the handshake of a WebSocket."""
    body_s: Seconds = 30.0
    """Time in seconds that the server waits for the next byte of an incomplete body, message or
    frame."""
    keep_alive_s: Count = 5
    """Time in seconds that a connection stays open between two requests."""
    max_header_bytes: Annotated[int, Meta(ge=4096, description="a number from 4096")] = 64 << 10
    """Size of one request line with its headers."""
    max_unfinished_per_address: Count = 100
    """Connections of one address with an incomplete request or message; beyond it, the oldest are
    closed."""
    max_connections_per_address: Count = 4_000
    """Open connections of one address; at most three quarters of what the process may open."""
    max_connections_per_user: Count = 4_000
    """WebSockets, event streams and requests of one named user, at once."""
    spare_descriptors: Annotated[int, Meta(ge=0, description="a number from 0")] = 128
    """File descriptors kept free for the ledger, files and agents; at most a quarter of all."""
    max_uploads: Count = 64
    """Forms that the server receives at once."""
    max_uploads_per_user: Count = 16
    """Forms that the server receives at once from one named user, and from one address."""
    max_received_bytes: Count = 1 << 30
    """Bytes of bodies that the server is receiving at once."""
    max_received_bytes_per_user: Count = 256 << 20
    """Bytes of bodies from one named user, and from one address; one upload always fits."""

    def __post_init__(self) -> None:
        """Refuse impossible values when the object is created."""
        check_fields(self)


class Access(Struct, frozen=True):
    """Authentication, allowed sources and resource limits of an app.

    Raises:
        ValueError: A field has a value that no request could match, or fields contradict each
            other.
    """

    token: Token | None = None
    """The token that every client must send."""
    authenticate: Authenticate | None = None
    """A hook that returns the user of a request; it is used instead of `token`."""
    hosts: tuple[HostName, ...] = ()
    """Host names under which clients reach the server, besides the names of this machine."""
    origins: tuple[Origin, ...] = ()
    """Web origins that may use the server, besides its own origin."""
    trusted_proxies: tuple[ProxyAddress, ...] = ()
    """Addresses or networks of proxies that may set `X-Forwarded-For` or `Forwarded`."""
    uids: tuple[UserNumber, ...] = ()
    """Users of this machine who may connect to the Unix socket, besides the user of the server."""
    bounds: Bounds = Bounds()
    """Limits of what the server accepts at once and how long it waits."""
    oidc: Oidc | None = None
    """A login at an OpenID Connect provider (extra `oidc`)."""
    login_url: PageLink | None = None
    """Sign-in page of another application that manages the logins; the page shows a link to it."""
    logout_url: PageLink | None = None
    """Sign-out page of that application; the page shows a link to it."""
    sign_in_text: str | None = None
    """Text that the page shows to a user who is not signed in; `None` uses the default text."""
    recheck_s: Seconds | None = 30.0
    """Interval in seconds at which the hook is called again for an open connection; the connection
    is closed if the hook refuses. `None` means never."""
    start_token: bool = True
    """Whether an app that runs commands of agents gets a token at each start, if it has no other
    access control."""
    admin_role: str | None = None
    """Role of the hook's users who may read the sessions of all users; `None` means no role."""

    def __post_init__(self) -> None:
        """Refuse values that no request could match."""
        _check("token", self.token, Token | None)
        if self.authenticate is not None:
            _check_hook(self.authenticate)
        elif self.admin_role is not None:
            raise ValueError(
                "Access.admin_role: it is the role of a hook's users; give authenticate=… too; "
                "of a login: Oidc(admin=…); of a token: arp token create --role admin"
            )
        if not isinstance(self.bounds, Bounds):
            kind = type(self.bounds).__name__
            raise ValueError(f"Access.bounds: expected Bounds(…), got {kind}")
        _check("login_url", self.login_url, PageLink | None)
        _check("logout_url", self.logout_url, PageLink | None)
        for name in ("sign_in_text", "admin_role"):
            text = getattr(self, name)
            if text is not None and (not isinstance(text, str) or not text):
                raise ValueError(f"Access.{name}: expected a text, got {text!r:.60}")
        _check("recheck_s", self.recheck_s, Seconds | None)
        if self.oidc is not None and not isinstance(self.oidc, Oidc):
            raise ValueError(f"Access.oidc: expected Oidc(…), got {self.oidc!r:.60}")
        if self.oidc is not None and (self.login_url or self.authenticate):
            raise ValueError(
                "Access.oidc: is a login of its own; leave login_url and authenticate out"
            )
        lists: tuple[tuple[str, Any, Any], ...] = (
            ("hosts", self.hosts, HostName),
            ("origins", self.origins, Origin),
            ("trusted_proxies", self.trusted_proxies, ProxyAddress),
            ("uids", self.uids, UserNumber),
        )
        for name, values, kind in lists:
            if isinstance(values, str) or not isinstance(values, Iterable):
                items = "numbers" if kind is UserNumber else "texts"
                raise ValueError(f"Access.{name}: expected a tuple of {items}, got {values!r:.60}")
            for value in values:
                _check(name, value, kind)

    @property
    def is_open(self) -> bool:
        """Whether no authentication is configured."""
        return self.token is None and self.authenticate is None and self.oidc is None


def unfit_signature(function: Callable[..., Any], count: int) -> inspect.Signature | None:
    """Return a function's signature if it cannot be called with `count` arguments, else `None`."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # some functions written in C have no signature
        return None
    try:
        signature.bind(*range(count))
    except TypeError:
        return signature
    return None


def _check_hook(hook: Any) -> None:
    """Refuse a hook that cannot be called with a connection.

    Raises:
        ValueError: The message says what to write.
    """
    write = "write async def authenticate(connection)"
    if inspect.iscoroutine(hook):
        hook.close()
        got = f"a call of it; give the function itself: authenticate={hook.__name__}"
    elif not callable(hook):
        got = f"{type(hook).__name__}; {write}"
    elif inspect.isclass(hook):
        got = f"the class {hook.__name__}; give an object of it, or {write}"
    elif inspect.isgeneratorfunction(hook) or inspect.isasyncgenfunction(hook):
        got = f"a generator; {write}, which returns the user"
    elif (takes := unfit_signature(hook, 1)) is not None:
        got = f"one that takes {takes}, but is given the connection; {write}"
    else:
        return
    raise ValueError(f"Access.authenticate: expected a function, got {got}")


def _check(name: str, value: object, kind: Any) -> None:
    try:
        msgspec.convert(value, kind)
        if kind is ProxyAddress:
            ip_network(str(value), strict=False)
    except ValueError:  # `msgspec.ValidationError` is one too
        shown = "" if name == "token" else f", got {value!r:.60}"
        raise ValueError(f"Access.{name}: expected {bounds(kind)[0].description}{shown}") from None


LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine, as written in `Host`."""


def check_names(access: Access, *, has_tokens: bool = False) -> None:
    """Refuse public host names and foreign origins if nothing restricts access.

    Args:
        access: The settings.
        has_tokens: Whether tokens were created for the ledger (`arp token create`).

    Raises:
        ValueError: There is no authentication, and either an origin is foreign, or a host name is
            public and there are no trusted proxies.
    """
    pages = [origin for origin in access.origins if not _is_local_origin(origin)]
    if pages and access.is_open and not has_tokens:
        raise ValueError(
            f"{', '.join(pages)}: pages of others could use this server, since nothing keeps them "
            "out: set --token (or ARP_TOKEN), create tokens (arp token create), or give App an "
            "Access with a token or an authenticate hook; or leave --origin (Access.origins) out"
        )
    names = [name for name in access.hosts if not _is_local(name.lower())]
    if names and access.is_open and not has_tokens and not access.trusted_proxies:
        raise ValueError(
            f"{', '.join(names)} can be reached by others: set --token (or ARP_TOKEN), create "
            "tokens (arp token create), let people sign in (--oidc-issuer), or give App an Access "
            "with a token or an authenticate hook; or name the proxy in front, so that "
            "only this machine is served: --trust-proxy ADDRESS (Access.trusted_proxies)"
        )


def _is_local_origin(origin: str) -> bool:
    """Return whether an origin belongs to this machine.

    `null` does not, because any framed page has this origin.
    """
    host = origin.partition("://")[2].rstrip("/").lower()
    name, colon, port = host.rpartition(":")
    return _is_local(name if colon and port.isdigit() else host)


def _is_local(name: str) -> bool:
    return name in LOOPBACK or name.endswith(".localhost")
