"""The wire format of Protocol Buffers: numbers and fields, without knowledge of the messages.

A message is a series of fields, each with a tag (number and wire type) and a value. A length is
checked against the available bytes before anything is copied. Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
"""Wire types; texts and messages have `BYTES` too. Version 3 has no groups (3 and 4)."""

MAX_FIELD_NUMBER: Final = 2**29 - 1
MAX_VARINT_BYTES: Final = 10
_SIZES: Final = {FIXED64: 8, FIXED32: 4}
_MORE: Final = 0x80
"""Bit of each byte of a varint except the last."""


class ProtoError(ValueError):
    """The bytes are not a message of the type, or a value does not fit into a field."""


# -- to bytes --------------------------------------------------------------------------------------


def encode_varint(value: int) -> bytes:
    """Return a number from 0 to 2**64 - 1 as a varint."""
    if value < _MORE:
        return bytes((value,))
    out = bytearray()
    while value >= _MORE:
        out.append(value & 0x7F | _MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_tag(number: int, wire_type: int) -> bytes:
    """Return the tag of a field."""
    return encode_varint(number << 3 | wire_type)


def encode_field(tag: bytes, data: bytes) -> bytes:
    """Return a field of the wire type `BYTES` after its tag."""
    return b"".join((tag, encode_varint(len(data)), data))


# -- from bytes ------------------------------------------------------------------------------------


def split_fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and value of each field: an integer for `VARINT`, or else bytes.

    Raises:
        ProtoError: The bytes are not a message.
    """
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number <= MAX_FIELD_NUMBER:
            raise ProtoError(f"field {number}: there is no such number")
        value, at = read_value(data, at, wire_type)
        yield number, wire_type, value


def read_value(data: bytes, at: int, wire_type: int) -> tuple[Any, int]:
    """Return the value at an offset, and the offset of its end.

    Raises:
        ProtoError: The value is incomplete, or the wire type is unknown.
    """
    if wire_type == BYTES:
        size, at = read_varint(data, at)
    elif wire_type == VARINT:
        return read_varint(data, at)
    elif wire_type in _SIZES:
        size = _SIZES[wire_type]
    else:
        raise ProtoError(f"there is no wire type {wire_type}")
    end = at + size
    if end > len(data):
        raise ProtoError(
            f"it ends within a field of {size} bytes: {end} bytes announced, {len(data)} there"
        )
    return data[at:end], end


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at an offset, and the offset of its end.

    Raises:
        ProtoError: The number is incomplete, or has more than 64 bits.
    """
    if at < len(data) and data[at] < _MORE:  # most tags and lengths are one byte
        return data[at], at + 1
    value = 0
    for count in range(MAX_VARINT_BYTES):
        if at >= len(data):
            raise ProtoError("it ends within a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << 7 * count
        if byte < _MORE:
            if value >= 1 << 64:
                break
            return value, at
    raise ProtoError("a number has more than 64 bits")
