"""Bounds of gRPC servers, as options of its library.

gRPC does not say who connects before there is a call. So the number of connections has one bound
for all, and a connection without a call is closed soon; calls count for their address.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from arp.access.settings import Bounds
from arp.net.connections import descriptor_limit, usable_descriptors

MAX_CALLS: Final = 16_384
"""Calls at once, those of the health service included."""

MAX_CONNECTIONS: Final = MAX_CALLS
"""TCP connections at once: our client makes one for each session. At most three quarters of what
the process may open."""

IDLE_S: Final = 30.0
"""How long a connection may be there without a call. A client's library opens another."""

WINDOW_BYTES: Final = 64 << 10
"""How much gRPC takes for a reader that does not read (it would guess, up to megabytes)."""

MAX_METADATA_BYTES: Final = 16 << 10

KEEP_ALIVE_MS: Final = 20_000
"""Time without a byte after which the server pings the client; the same as over WebSocket."""


class GrpcBounds(Struct, frozen=True):
    """How much a gRPC server accepts, and how long it waits."""

    max_message_bytes: int
    max_calls_per_connection: int
    max_connections: int = MAX_CONNECTIONS
    """TCP connections at once, with calls or without."""
    idle_s: float = IDLE_S
    """How long a connection may be there without a call."""


def bounded_options(bounds: Bounds, grpc: GrpcBounds) -> list[tuple[str, int]]:
    """Return the options of a server."""
    usable = usable_descriptors(bounds, descriptor_limit())
    most = grpc.max_connections if usable is None else min(grpc.max_connections, usable * 3 // 4)
    return [
        ("grpc.max_allowed_incoming_connections", most),
        ("grpc.max_connection_idle_ms", int(grpc.idle_s * 1000)),
        ("grpc.max_receive_message_length", grpc.max_message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", MAX_METADATA_BYTES),
        ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
        ("grpc.server_handshake_timeout_ms", int(bounds.header_s * 1000)),
        ("grpc.max_concurrent_streams", grpc.max_calls_per_connection),
        # With this option on, a second server would take half of the calls.
        ("grpc.so_reuseport", 0),
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", WINDOW_BYTES),
        ("grpc.http2.write_buffer_size", WINDOW_BYTES),
        ("grpc.keepalive_time_ms", KEEP_ALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEP_ALIVE_MS),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", KEEP_ALIVE_MS // 2),
    ]
