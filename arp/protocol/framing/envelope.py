"""Encoding and decoding of the gRPC messages in `schemas/arp.proto`, as Protocol Buffers.

All fields are bytes or text, so neither generated classes nor a library is needed. Unknown fields
are skipped, so that messages of a newer peer can be decoded. Lengths are checked against the
available bytes before anything is copied. Source: protocol.md 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from arp.protocol.errors import InvalidMessage

Dialect: TypeAlias = Literal["session", "object"]

DIALECTS: tuple[Dialect, ...] = ("session", "object")
"""Dialects by field number: field 1, field 2."""

SERVICE = "arp.v1.ArpService"
CONNECT = f"/{SERVICE}/Connect"
"""Path of the call that is a connection."""
UPLOAD = f"/{SERVICE}/Upload"
"""Path of the call that uploads one input with files."""

DIALECT_KEY = "arp-dialect"
ENCODING_KEY = "arp-encoding"
WORKFLOW_KEY = "arp-workflow"
"""Metadata of the call; the defaults are `session`, `json` and the first agent."""
CLOSE_CODE_KEY = "arp-close-code"
"""Trailing metadata: a WebSocket close code; the details of the status are the reason."""

_BYTES = 2
"""Wire type of bytes and messages; 0 is a varint, 1 and 5 have 8 and 4 bytes."""

_FIXED = {1: 8, 5: 4}

_MAX_VARINT_BYTES = 10
_MAX_NUMBER = 2**29 - 1
_SHORT = 0x80


class Envelope(NamedTuple):
    """A frame and its dialect."""

    dialect: Dialect
    frame: bytes


def seal(frame: bytes, dialect: Dialect = "session") -> bytes:
    """Return a frame in its envelope, `ArpMessage`."""
    return _field(DIALECTS.index(dialect) + 1, frame)


def unseal(data: bytes) -> Envelope:
    """Return the content of an envelope; the last frame wins, as Protocol Buffers require.

    Raises:
        InvalidMessage: The bytes are not an `ArpMessage`, or it has no frame.
    """
    found: Envelope | None = None
    for number, value in _fields(data, len(DIALECTS)):
        found = Envelope(DIALECTS[number - 1], value)
    if found is None:
        raise InvalidMessage("envelope: no frame in it; set session or object")
    return found


# -- uploads ---------------------------------------------------------------------------------------

PartKind: TypeAlias = Literal["input", "file", "data"]

_PART_KINDS: tuple[PartKind, ...] = ("input", "file", "data")
"""Kinds by field number: field 1, field 2, field 3."""


class UploadPart(NamedTuple):
    """A message of an upload."""

    kind: PartKind
    data: bytes


class FileStart(NamedTuple):
    """The metadata of the file that follows."""

    name: str
    mime: str
    field: str = ""
    """Form field that the file answers; empty: the file belongs to `data.files`."""


def seal_part(kind: PartKind, data: bytes) -> bytes:
    """Return an `UploadPart`."""
    return _field(_PART_KINDS.index(kind) + 1, data)


def unseal_part(data: bytes) -> UploadPart:
    """Return the content of an `UploadPart`.

    Raises:
        InvalidMessage: The bytes are not such a message, or it is empty.
    """
    found: UploadPart | None = None
    for number, value in _fields(data, len(_PART_KINDS)):
        found = UploadPart(_PART_KINDS[number - 1], value)
    if found is None:
        raise InvalidMessage("upload: an empty part; set input, file or data")
    return found


def seal_file_start(start: FileStart) -> bytes:
    """Return a `FileStart` as the data of a part."""
    texts = enumerate(start, start=1)
    return b"".join(_field(number, text.encode()) for number, text in texts if text)


def unseal_file_start(data: bytes) -> FileStart:
    """Return a `FileStart` from the data of a part.

    Raises:
        InvalidMessage: The bytes are not such a message.
    """
    texts = [""] * len(FileStart._fields)
    for number, value in _fields(data, len(texts)):
        try:
            texts[number - 1] = value.decode()
        except UnicodeDecodeError:
            raise InvalidMessage(f"upload: file: field {number} is no UTF-8") from None
    return FileStart(*texts)


def seal_answer(messages: bytes) -> bytes:
    """Return an `UploadAnswer` with an array of messages, as JSON."""
    return _field(1, messages)


def unseal_answer(data: bytes) -> bytes:
    """Return the array of messages in an `UploadAnswer`.

    Raises:
        InvalidMessage: The bytes are not such a message, or it is empty.
    """
    found = [value for _, value in _fields(data, 1)]
    if not found:
        raise InvalidMessage("upload: the answer is empty")
    return found[-1]


# -- Protocol Buffers ------------------------------------------------------------------------------


def _field(number: int, data: bytes) -> bytes:
    tag = number << 3 | _BYTES
    size = len(data)
    if size < _SHORT:
        return bytes((tag, size)) + data
    head = bytearray((tag,))
    while size >= _SHORT:
        head.append(size & 0x7F | _SHORT)
        size >>= 7
    head.append(size)
    return bytes(head) + data


def _fields(data: bytes, known: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the value of each field from 1 to `known`; all values are bytes.

    Raises:
        InvalidMessage: The bytes are not a Protocol Buffers message with such fields.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number <= _MAX_NUMBER:
            raise InvalidMessage(f"envelope: field {number} at byte {at}: there is no such number")
        end = _end_of_value(data, at, wire_type)
        if number <= known:
            if wire_type != _BYTES:
                raise InvalidMessage(f"envelope: field {number}: expected bytes")
            length, begin = _varint(data, at)
            yield number, data[begin : begin + length]
        at = end


def _end_of_value(data: bytes, at: int, wire_type: int) -> int:
    if wire_type == _BYTES:
        length, at = _varint(data, at)
        end = at + length
    elif wire_type == 0:
        _, end = _varint(data, at)
    elif wire_type in _FIXED:
        end = at + _FIXED[wire_type]
    else:  # 3 and 4 are groups, which Protocol Buffers 3 does not have
        raise InvalidMessage(f"envelope: wire type {wire_type} at byte {at} is not taken")
    if end > len(data):
        raise InvalidMessage(f"envelope: {end} bytes announced, {len(data)} there")
    return end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at an offset, and the offset of its end."""
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
