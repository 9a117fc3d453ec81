"""What a server takes from its clients at once, and how long it waits for them."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from arp.protocol.limits import Count, Seconds
from arp.protocol.validate import explain, fits


class Bounds(Struct, frozen=True):
    """Bounds of connections and uploads; each holds for one user or address before that for all.

    Raises:
        ValueError: A bound has an impossible value.
    """

    header_s: Seconds = 10.0
    """How long the request line and headers may take, also in the handshake of a WebSocket."""
    body_s: Seconds = 30.0
    """How long the server waits for the next byte of a body."""
    keep_alive_s: Count = 5
    """How long a connection stays open between two requests."""
    max_header_bytes: Annotated[int, Meta(ge=4096, description="a number from 4096")] = 64 << 10
    """Size of one request line with its headers."""
    max_unfinished_per_address: Count = 100
    """Connections of one address with an incomplete request; beyond it, the oldest are closed."""
    max_connections_per_address: Count = 4_000
    """Open connections of one address; at most three quarters of what the process may open."""
    max_connections_per_user: Count = 4_000
    """WebSockets, event streams and requests of one named user, at once."""
    spare_descriptors: Annotated[int, Meta(ge=0, description="a number from 0")] = 128
    """File descriptors kept free for the ledger, files and agents; at most a quarter of all."""
    max_uploads: Count = 64
    """Forms that the server receives at once."""
    max_uploads_per_user: Count = 16
    """The same from one named user, and from one address."""
    max_received_bytes: Count = 1 << 30
    """Bytes of bodies that the server is receiving at once."""
    max_received_bytes_per_user: Count = 256 << 20
    """The same from one named user, and from one address; one upload always fits."""

    def __post_init__(self) -> None:
        """Refuse impossible values where they are written."""
        for name, kind in _kinds().items():
            value = getattr(self, name)
            if not fits(value, kind):
                raise ValueError(explain(value, kind, f"Bounds.{name}"))


@cache
def _kinds() -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(Bounds)}
