"""Limits of gRPC servers, as options of its library.

gRPC reports the address of a client only with a call. So there is one limit for the connections of
all clients, and a connection without a call is closed soon. Calls are counted by address.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from arp.access.settings import Bounds
from arp.net.connections import descriptor_limit, usable_descriptors

MAX_CALLS: Final = 16_384
"""Limit of concurrent calls, including those of the health service."""

MAX_CONNECTIONS: Final = MAX_CALLS
"""Limit of concurrent TCP connections. Our client opens one for each session. The limit is lower
if it would exceed three quarters of the descriptors that connections may use."""

IDLE_S: Final = 30.0
"""Seconds after which a connection without a call is closed. Clients reconnect automatically."""

WINDOW_BYTES: Final = 64 << 10
"""Bytes that gRPC buffers for a client that does not read. Its default is an estimate, which may
reach megabytes."""

MAX_METADATA_BYTES: Final = 16 << 10

KEEP_ALIVE_MS: Final = 20_000
"""Milliseconds without traffic after which the server pings the client, as over WebSocket."""


class GrpcBounds(Struct, frozen=True):
    """Limits of a gRPC server."""

    max_message_bytes: int
    max_calls_per_connection: int
    max_connections: int = MAX_CONNECTIONS
    """Limit of concurrent TCP connections, with or without calls."""
    idle_s: float = IDLE_S
    """Seconds after which a connection without a call is closed."""


def bounded_options(bounds: Bounds, grpc: GrpcBounds) -> list[tuple[str, int]]:
    """Return the options of gRPC that apply these limits to a server."""
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
        # With this option on, a second server could use the same port and would get half of the
        # calls.
        ("grpc.so_reuseport", 0),
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", WINDOW_BYTES),
        ("grpc.http2.write_buffer_size", WINDOW_BYTES),
        ("grpc.keepalive_time_ms", KEEP_ALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEP_ALIVE_MS),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", KEEP_ALIVE_MS // 2),
    ]
