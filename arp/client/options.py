"""What a caller may set besides the address, and the `hello` that is made of it."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import TypedDict

from msgspec import Struct

from arp.client.address import Transport
from arp.client.backoff import Backoff
from arp.protocol.capabilities import PING
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import Encoding, encode_json, renderer_decoder
from arp.protocol.errors import InvalidMessage
from arp.protocol.messages import RendererCapabilities, RendererHello, Viewport

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
"""What this client does by itself. `frame-ack` is done where it is asked for."""

ANSWER_TIMEOUT_S = 10.0
"""A server answers a `hello` in milliseconds; what reads and never speaks is no server of ours."""


class Options(TypedDict, total=False):
    """What `ArpClient` and `connect` take by keyword; all of it may be left out."""

    session_id: str | None
    """A session to join; else the server makes one."""
    workflow: str | None
    """The agent of a session that is made, where an app has several; else its first."""
    capabilities: RendererCapabilities
    """What this renderer shows by itself; all core components unless told otherwise."""
    token: str | None
    """Sent as `Authorization: Bearer …`, nowhere else."""
    encoding: Encoding
    """Of WebSocket messages; the other transports carry JSON."""
    transport: Transport
    """Takes this transport, where the scheme of the address leaves a choice."""
    command: Sequence[str]
    """The child to start, with `stdio:`."""
    backoff: Backoff
    viewport: Viewport | None
    locale: str | None
    """Such as `de-CH`."""
    time_zone: str | None
    """Such as `Europe/Zurich`."""
    theme: str | None
    """Such as `dark`."""
    tls: ssl.SSLContext
    """Trusts other certificates than the system does."""
    answer_timeout_s: float
    """How long the answer to a `hello` may take."""


class Access(Struct, frozen=True):
    """How a server lets us in, and what it hears."""

    encoding: Encoding = "json"
    token: str | None = None
    tls: ssl.SSLContext | None = None

    def headers(self) -> dict[str, str]:
        """Return the headers that every request carries."""
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    def __repr__(self) -> str:
        return f"Access(encoding={self.encoding!r}, token={'…' if self.token else None})"


def check_names(options: Mapping[str, object]) -> None:
    """Raise `TypeError` for an option that there is not, as a call with a wrong keyword does."""
    if unknown := sorted(options.keys() - Options.__annotations__.keys()):
        raise TypeError(
            f"ArpClient() got unknown options {', '.join(unknown)}; "
            f"there are {', '.join(sorted(Options.__annotations__))}"
        )


def access(options: Options) -> Access:
    """Return what the transports need.

    Raises:
        InvalidMessage: A token that no header can carry.
    """
    token = options.get("token")
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise InvalidMessage("token: only printable ASCII without spaces can be sent in a header")
    return Access(options.get("encoding", "json"), token or None, options.get("tls"))


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
