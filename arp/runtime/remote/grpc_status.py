"""Options, metadata and errors that gRPC server and client share.

An error has the gRPC status of its code. The complete error, with its details, is the message
`ErrorStatus` in the trailing metadata. A status without it was made by gRPC itself: the connection
broke, or the deadline has passed.
"""

from __future__ import annotations

import msgspec

from arp.runtime.contract.errors import (
    Canceled,
    DeadlineExceeded,
    ErrorStatus,
    RuntimeInternal,
    Unavailable,
)
from arp.runtime.remote.proto_codec import encode

MAX_MESSAGE_BYTES = 32 * 2**20
"""Largest message, in bytes; enough for an image or two."""
MAX_STATUS_BYTES = 48 * 2**10
"""Largest error in the metadata, in bytes; the details of a larger one are left out."""
MAX_TEXT = 1000
"""Largest message in the gRPC status, in characters; the metadata has the whole message."""

STATUS_KEY = "ari-status-bin"
CURSOR_KEY = "ari-cursor"
"""Key in the initial metadata of events: the sequence number that they begin after."""

KEEP_ALIVE_MS = 15_000
"""Milliseconds without data after which each side checks that the other one still answers."""

OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", 2 * MAX_STATUS_BYTES),
    ("grpc.absolute_max_metadata_size", 2 * MAX_STATUS_BYTES),
    ("grpc.keepalive_time_ms", KEEP_ALIVE_MS),
    ("grpc.keepalive_timeout_ms", KEEP_ALIVE_MS),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", KEEP_ALIVE_MS // 2),
)
"""Options of servers and clients."""

OF_GRPC = {1: Canceled, 4: DeadlineExceeded, 13: RuntimeInternal, 14: Unavailable}
"""Errors for statuses that gRPC made itself; every other status becomes `RuntimeInternal`."""


def trailing(status: ErrorStatus) -> tuple[tuple[str, bytes], ...]:
    """Return the trailing metadata with an error."""
    data = encode(status)
    if len(data) > MAX_STATUS_BYTES:
        # A peer drops metadata that is too long, so an error without details is better than none.
        short = status.message[: MAX_STATUS_BYTES // 8]
        data = encode(msgspec.structs.replace(status, message=short, details={}))
    return ((STATUS_KEY, data),)
