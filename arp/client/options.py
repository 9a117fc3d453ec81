"""What a caller gives: the address of a server, how long to wait between attempts, other options.

An address becomes the URLs of each transport, the options the `hello` of every connection.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import Literal, TypeAlias, TypedDict
from urllib.parse import SplitResult, urlsplit, urlunsplit

from msgspec import Struct

from arp.client.errors import InvalidAddress
from arp.client.link import Link
from arp.protocol.capabilities import PING
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import Encoding, encode_json, renderer_decoder
from arp.protocol.errors import InvalidMessage
from arp.protocol.messages import RendererCapabilities, RendererHello, Viewport

Kind: TypeAlias = Literal["websocket", "sse", "stdio"]

Transport: TypeAlias = Literal["auto", "websocket", "sse"]

ENDPOINT = "/_arp/v1"
"""The path of the WebSocket; SSE and POST are below it (protocol.md 6)."""

_SCHEMES: dict[str, tuple[str, tuple[Kind, ...]]] = {
    "ws": ("", ("websocket",)),
    "wss": ("s", ("websocket",)),
    "http": ("", ("websocket", "sse")),
    "https": ("s", ("websocket", "sse")),
    "http+sse": ("", ("sse",)),
    "https+sse": ("s", ("sse",)),
}

_HOW = "write http://HOST:PORT (or https, ws, wss, http+sse, https+sse), or stdio: with command=[…]"


class Address(Struct, frozen=True):
    """How a server can be reached."""

    kinds: tuple[Kind, ...]
    """Transports to try, in this order."""
    websocket_url: str = ""
    events_url: str = ""
    input_url: str = ""
    """Takes input over HTTP, and files whatever the transport."""
    is_loopback: bool = False
    """It is on this machine, where no proxy has a place."""
    command: tuple[str, ...] = ()
    """The child to start, for `stdio`."""


def parse_address(
    url: str, command: Sequence[str] | None = None, transport: Transport = "auto"
) -> Address:
    """Return the ways to reach a server.

    Args:
        url: `ws:` and `wss:` name the WebSocket itself, or a server's root; `http:` and `https:` a
            server's root or the prefix under which it is mounted; `http+sse:` and `https+sse:` the
            same without WebSocket; `stdio:` a child process.
        command: The child's program and arguments, with `stdio:` alone.
        transport: Takes this one, whatever the scheme says.

    Raises:
        InvalidAddress: Says what to write instead.
    """
    if url in ("stdio:", "stdio"):
        return _stdio(command)
    if command is not None:
        raise InvalidAddress(f"{url}: command=… goes with stdio: alone")
    parts = _split(url)
    secure, kinds = _SCHEMES[parts.scheme]
    if transport != "auto":
        kinds = (transport,)
    path = _endpoint(parts)

    def made(scheme: str, tail: str = "") -> str:
        return urlunsplit((scheme + secure, parts.netloc, path + tail, parts.query, ""))

    return Address(
        kinds,
        made("ws"),
        made("http", "/events"),
        made("http", "/input"),
        _is_loopback(parts.hostname or ""),
    )


def _stdio(command: Sequence[str] | None) -> Address:
    if not command or isinstance(command, str):
        raise InvalidAddress("stdio: needs command=[program, argument, …]")
    return Address(("stdio",), command=tuple(command))


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError as error:
        raise InvalidAddress(f"{url}: {error}; {_HOW}") from None
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise InvalidAddress(f"{url}: not an address of a server; {_HOW}")
    if "@" in parts.netloc:
        raise InvalidAddress(
            f"{parts.scheme}://…@{parts.hostname}: give the secret as token=… instead"
        )
    return parts


def _endpoint(parts: SplitResult) -> str:
    prefix = parts.path.rstrip("/")
    if parts.scheme in ("ws", "wss") and prefix:
        return prefix
    return prefix.removesuffix(ENDPOINT) + ENDPOINT


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Backoff(Struct, frozen=True):
    """Waits between attempts to connect.

    The wait before attempt `n` is drawn evenly between 0 and `min(most_s, first_s · 2ⁿ)`, so that
    clients of a server that went away do not all come back at once.
    """

    first_s: float = 1.0
    """Ceiling of the first wait, in seconds."""
    most_s: float = 16.0
    """Ceiling of every wait, in seconds."""
    draw: Callable[[], float] = random.random
    """Returns a number from 0 to 1."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits that many seconds; cancelled when the client closes."""

    def delay_s(self, attempt: int) -> float:
        """Return the wait after `attempt` failures in a row, which counts from 0."""
        ceiling: float = min(self.most_s, self.first_s * 2.0 ** min(attempt, 64))
        return ceiling * self.draw()


FEATURES = (
    "streaming",
    "input",
    "resume",
    "multi-surface",
    "file-upload",
    "patch-append",
    "thinking",
    "batch",
    "tool-detail",
    PING,
)
"""The features that this client always supports; `frame-ack` only if the caller asks for it."""

ANSWER_TIMEOUT_S = 10.0
"""A server answers a `hello` in milliseconds; without an answer it is no ARP server."""


class Options(TypedDict, total=False):
    """The keyword arguments of `ArpClient` and `connect`; all are optional."""

    session_id: str | None
    """The session to open. Without it, the server creates one."""
    workflow: str | None
    """The agent of a new session, if the app has several. Default: the first one."""
    capabilities: RendererCapabilities
    """What this renderer can show. Default: all core components."""
    token: str | None
    """Sent as `Authorization: Bearer …` and nowhere else."""
    encoding: Encoding
    """The encoding of WebSocket messages. The other transports use JSON."""
    transport: Transport
    """The transport to use, if the scheme of the address allows several."""
    command: Sequence[str]
    """With `stdio:`, the command that starts the child process."""
    backoff: Backoff
    """How long to wait between attempts to connect."""
    viewport: Viewport | None
    """The size of the screen, for the agent."""
    locale: str | None
    """For the agent, for example `de-CH`."""
    time_zone: str | None
    """For the agent, for example `Europe/Zurich`."""
    theme: str | None
    """For the agent, for example `dark`."""
    tls: ssl.SSLContext
    """A TLS context, for certificates that the system does not trust."""
    answer_timeout_s: float
    """How long to wait for the answer to a `hello`, in seconds."""
    open_link: Callable[[bytes], Awaitable[Link]]
    """Opens each connection, in the place of the transports: for tests, and transports of your own.
    It gets the `hello` to send, and returns an `arp.client.link.Link`."""


class LinkSettings(Struct, frozen=True):
    """The encoding, the token and the TLS context of a connection."""

    encoding: Encoding = "json"
    token: str | None = None
    tls: ssl.SSLContext | None = None

    def headers(self) -> dict[str, str]:
        """Return the headers that every request carries."""
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    def __repr__(self) -> str:
        return f"LinkSettings(encoding={self.encoding!r}, token={'…' if self.token else None})"


def check_names(options: Mapping[str, object]) -> None:
    """Raise `TypeError` for an option that there is not, as a call with a wrong keyword does."""
    if unknown := sorted(options.keys() - Options.__annotations__.keys()):
        raise TypeError(
            f"ArpClient() got unknown options {', '.join(unknown)}; "
            f"there are {', '.join(sorted(Options.__annotations__))}"
        )


def access(options: Options) -> LinkSettings:
    """Return what the transports need.

    Raises:
        InvalidMessage: A token that no header can carry.
    """
    token = options.get("token")
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise InvalidMessage("token: only printable ASCII without spaces can be sent in a header")
    return LinkSettings(options.get("encoding", "json"), token or None, options.get("tls"))


def renderer_hello(options: Options) -> RendererHello:
    """Return the `hello` of every connection, without a place to resume from.

    Raises:
        InvalidMessage: A value that the server would refuse; names it.
    """
    capabilities = options.get("capabilities") or RendererCapabilities(
        dict(VERSIONS), list(FEATURES)
    )
    hello = RendererHello(
        capabilities=capabilities,
        session_id=options.get("session_id"),
        workflow=options.get("workflow"),
        viewport=options.get("viewport"),
        locale=options.get("locale"),
        time_zone=options.get("time_zone"),
        theme=options.get("theme"),
    )
    (checked,) = renderer_decoder("json").decode(encode_json(hello))
    assert isinstance(checked, RendererHello)
    return hello
