"""What server and client of gRPC agree on besides messages: options, metadata, errors.

An error has the gRPC status of its code, and as a whole, with its details, it is the message
`ErrorStatus` in the trailing metadata. A status without it was made by gRPC itself: the connection
broke, or the deadline is over.
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
"""A message with an image or two."""
MAX_STATUS_BYTES = 48 * 2**10
"""Of an error; details beyond that are left out."""
MAX_TEXT = 1000
"""Characters of the message of an error in the gRPC status; the metadata has all of it."""

STATUS_KEY = "ari-status-bin"
CURSOR_KEY = "ari-cursor"
"""In the initial metadata of events: behind which sequence they begin."""

KEEP_ALIVE_MS = 15_000
"""After how long without a byte each side asks whether the other one is still there."""

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
"""Of servers and clients alike."""

OF_GRPC = {1: Canceled, 4: DeadlineExceeded, 13: RuntimeInternal, 14: Unavailable}
"""Errors for statuses that gRPC made itself; every other one is `RuntimeInternal`."""


def trailing(status: ErrorStatus) -> tuple[tuple[str, bytes], ...]:
    """Return the trailing metadata that carries an error."""
    data = encode(status)
    if len(data) > MAX_STATUS_BYTES:
        # Rather without details than not at all: a peer drops metadata that is too long.
        short = status.message[: MAX_STATUS_BYTES // 8]
        data = encode(msgspec.structs.replace(status, message=short, details={}))
    return ((STATUS_KEY, data),)
