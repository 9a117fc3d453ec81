"""The envelope of gRPC: `ArpMessage` of `schemas/arp.proto`, as Protocol Buffers and back.

It is one field: a frame, under the number of its dialect. That needs neither generated classes nor
another library. Fields that are not known are skipped, so that a newer peer can be read; lengths
are checked against the bytes that are there before anything is copied. Source: protocol.md 6.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from arp.protocol.errors import InvalidMessage

Dialect: TypeAlias = Literal["session", "object"]

DIALECTS: tuple[Dialect, ...] = ("session", "object")
"""The one of field 1, of field 2."""

SERVICE = "arp.v1.ArpService"
CONNECT = f"/{SERVICE}/Connect"
"""The path of the call."""

DIALECT_KEY = "arp-dialect"
ENCODING_KEY = "arp-encoding"
WORKFLOW_KEY = "arp-workflow"
"""Metadata of the call; absent: `session`, `json`, the first agent."""
CLOSE_CODE_KEY = "arp-close-code"
"""Trailing metadata: a close code of WebSocket; the details of the status are its reason."""

_BYTES = 2
"""The wire type of bytes and messages; 0 is a varint, 1 and 5 have 8 and 4 bytes."""

_FIXED = {1: 8, 5: 4}

_MAX_VARINT_BYTES = 10
_MAX_NUMBER = 2**29 - 1
_SHORT = 0x80


class Envelope(NamedTuple):
    """A frame, and the dialect of what is in it."""

    dialect: Dialect
    frame: bytes


def seal(frame: bytes, dialect: Dialect = "session") -> bytes:
    """Return a frame in its envelope."""
    tag = DIALECTS.index(dialect) + 1 << 3 | _BYTES
    size = len(frame)
    if size < _SHORT:
        return bytes((tag, size)) + frame
    head = bytearray((tag,))
    while size >= _SHORT:
        head.append(size & 0x7F | _SHORT)
        size >>= 7
    head.append(size)
    return bytes(head) + frame


def unseal(data: bytes) -> Envelope:
    """Return what is in an envelope; of several frames the last, as Protocol Buffers demand.

    Raises:
        InvalidMessage: These bytes are no `ArpMessage`, or one without a frame.
    """
    found: Envelope | None = None
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number <= _MAX_NUMBER:
            raise InvalidMessage(f"envelope: field {number} at byte {at}: there is no such number")
        end = _end_of_value(data, at, wire_type)
        if number <= len(DIALECTS):
            if wire_type != _BYTES:
                raise InvalidMessage(f"envelope: field {number}: expected bytes")
            length, begin = _varint(data, at)
            found = Envelope(DIALECTS[number - 1], data[begin : begin + length])
        at = end
    if found is None:
        raise InvalidMessage("envelope: no frame in it; set session or object")
    return found


def _end_of_value(data: bytes, at: int, wire_type: int) -> int:
    if wire_type == _BYTES:
        length, at = _varint(data, at)
        end = at + length
    elif wire_type == 0:
        _, end = _varint(data, at)
    elif wire_type in _FIXED:
        end = at + _FIXED[wire_type]
    else:  # 3 and 4, groups, are of Protocol Buffers 1
        raise InvalidMessage(f"envelope: wire type {wire_type} at byte {at} is not taken")
    if end > len(data):
        raise InvalidMessage(f"envelope: {end} bytes announced, {len(data)} there")
    return end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where it ends."""
    value = 0
    for count in range(_MAX_VARINT_BYTES):
        if at + count >= len(data):
            raise InvalidMessage("envelope: it ends within a number")
        byte = data[at + count]
        value |= (byte & 0x7F) << 7 * count
        if byte < _SHORT:
            if value >= 1 << 64:
                break
            return value, at + count + 1
    raise InvalidMessage(f"envelope: a number of more than 64 bits at byte {at}")
