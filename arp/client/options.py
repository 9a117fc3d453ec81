"""What a caller gives besides the address: how long to wait between attempts, and other options.

The options become the `hello` of every connection.
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
    """Sent as `Authorization: Bearer …`; over a Unix socket, which has no headers, in `hello`."""
    encoding: Encoding
    """The encoding over WebSocket and gRPC; over a Unix socket `msgpack` if it is not given. The
    other transports use JSON."""
    dialect: Dialect
    """`object` to speak the object dialect; the child of `stdio:` must speak it too."""
    transport: Transport
    """The transport to use, if the scheme of the address allows several."""
    command: Sequence[str]
    """With `stdio:`, the command that starts the child process."""
    on_stderr: Callable[[str], None]
    """With `stdio:`, is called with each line that the child writes to its standard error, without
    control characters. Default: the child shares the standard error of this process."""
    reconnect: bool
    """Whether to connect again after a loss. Default: `True`."""
    listen: bool
    """With `unix:`, listen there for a server that dials (`arp serve --dial`)."""
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
    dialect: Dialect = "session"

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
    return LinkSettings(
        options.get("encoding", "json"),
        token or None,
        options.get("tls"),
        options.get("dialect", "session"),
    )


def renderer_hello(options: Options, token: str | None = None) -> RendererHello:
    """Return the `hello` of every connection, without a place to resume from.

    Args:
        options: What the caller gives.
        token: Shown in the `hello`, where the transport has no headers.

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
        token=token,
    )
    (checked,) = renderer_decoder("json").decode(encode_json(hello))
    assert isinstance(checked, RendererHello)
    return hello
