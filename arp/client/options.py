"""The options of a client, including the waits between attempts to connect.

Most options are part of the `hello` of every connection.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypedDict

from msgspec import Struct

from arp.client.address import Transport
from arp.client.link import Link
from arp.protocol.capabilities import PING
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import Encoding, encode_json, renderer_decoder
from arp.protocol.errors import InvalidMessage
from arp.protocol.framing.envelope import Dialect
from arp.protocol.messages import RendererCapabilities, RendererHello, Viewport


class Backoff(Struct, frozen=True):
    """Waits between attempts to connect.

    The wait before attempt `n` is a random time between 0 and `min(most_s, first_s · 2ⁿ)`, so that
    the clients of a server that was restarted do not all reconnect at the same moment.
    """

    first_s: float = 1.0
    """Maximum of the first wait, in seconds."""
    most_s: float = 16.0
    """Maximum of every wait, in seconds."""
    draw: Callable[[], float] = random.random
    """Function that returns a random number from 0 to 1."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Function that waits a number of seconds; it is cancelled when the client closes."""

    def delay_s(self, attempt: int) -> float:
        """Return the wait after a failure, in seconds.

        Args:
            attempt: Number of failures in a row before this one.
        """
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
"""Features that this client always supports; it supports `frame-ack` only if the caller asks."""

ANSWER_TIMEOUT_S = 10.0
"""Time to wait for the answer to a `hello`. An ARP server answers within milliseconds."""


class Options(TypedDict, total=False):
    """The keyword arguments of `ArpClient` and `connect`; all are optional."""

    session_id: str | None
    """The session to open. Without it, the server creates one."""
    workflow: str | None
    """The agent of a new session, if the app has several. Default: the first one."""
    capabilities: RendererCapabilities
    """Components and features that this renderer supports. Default: all core components."""
    token: str | None
    """Token, sent as `Authorization: Bearer …`; over a Unix socket in `hello`, since it has no
    headers."""
    encoding: Encoding
    """The encoding over WebSocket, gRPC and a Unix socket. Default: `msgpack` over a Unix socket,
    otherwise JSON. The other transports always use JSON."""
    dialect: Dialect
    """`object` for the object dialect; the child process of `stdio:` must use it too."""
    transport: Transport
    """The transport to use, if the scheme of the address allows several."""
    command: Sequence[str]
    """Command that starts the child process; only with `stdio:`."""
    on_stderr: Callable[[str], None]
    """Function that is called with each line that the child process writes to its standard error,
    without control characters; only with `stdio:`. Default: the child process uses the standard
    error of this process."""
    reconnect: bool
    """Whether to connect again after a loss. Default: `True`."""
    listen: bool
    """Whether to listen on the socket and wait for a server that connects (`arp serve --dial`);
    only with `unix:`. Default: `False`."""
    backoff: Backoff
    """How long to wait between attempts to connect."""
    viewport: Viewport | None
    """The size of the screen, for the agent."""
    locale: str | None
    """Locale of the user, for the agent, for example `de-CH`."""
    time_zone: str | None
    """Time zone of the user, for the agent, for example `Europe/Zurich`."""
    theme: str | None
    """Theme of the screen, for the agent, for example `dark`."""
    tls: ssl.SSLContext
    """A TLS context, for certificates that the system does not trust."""
    answer_timeout_s: float
    """How long to wait for the answer to a `hello`, in seconds."""
    open_link: Callable[[bytes], Awaitable[Link]]
    """A function that opens each connection instead of the transports: for tests, and for
    transports of your own. It receives the `hello` to send, and returns an
    `arp.client.link.Link`."""


class LinkSettings(Struct, frozen=True):
    """The encoding, the token, the TLS context and the dialect of a connection."""

    encoding: Encoding = "json"
    token: str | None = None
    tls: ssl.SSLContext | None = None
    dialect: Dialect = "session"

    def headers(self) -> dict[str, str]:
        """Return the headers of every request."""
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    def __repr__(self) -> str:
        return f"LinkSettings(encoding={self.encoding!r}, token={'…' if self.token else None})"


def check_names(options: Mapping[str, object]) -> None:
    """Raise `TypeError` for an unknown option, as a call with an unknown keyword does."""
    if unknown := sorted(options.keys() - Options.__annotations__.keys()):
        raise TypeError(
            f"ArpClient() got unknown options {', '.join(unknown)}; "
            f"there are {', '.join(sorted(Options.__annotations__))}"
        )


def link_settings(options: Options) -> LinkSettings:
    """Return the options that the transports need.

    Raises:
        InvalidMessage: The token has characters that a header cannot contain.
    """
    token = options.get("token")
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise InvalidMessage("token: only printable ASCII without spaces can be sent in a header")
    return LinkSettings(
        options.get("encoding", "json"),
        token or None,
        options.get("tls"),
        options.get("dialect", "session"),
    )


def renderer_hello(options: Options, token: str | None = None) -> RendererHello:
    """Return the `hello` of every connection, without the position to resume from.

    Args:
        options: Options of the client.
        token: Token to include in the `hello`, if the transport has no headers.

    Raises:
        InvalidMessage: The server would refuse a value; the message names it.
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
        token=token,
    )
    # Decode it as the server will, so that a wrong value raises here and not at each connection.
    (checked,) = renderer_decoder("json").decode(encode_json(hello))
    assert isinstance(checked, RendererHello)
    return hello
