"""Encoding and decoding of the gRPC messages in `schemas/arp.proto`, as Protocol Buffers.

All fields are bytes or text, so neither generated classes nor a library is needed. Unknown fields
are skipped, so that messages of a newer peer can be decoded. Source: protocol.md 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from arp.protocol.errors import InvalidMessage
from arp.protocol.framing.protobuf import (
    BYTES,
    ProtoError,
    encode_field,
    encode_tag,
    split_fields,
)

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

_TAGS = [encode_tag(number, BYTES) for number in range(4)]
"""Tags by field number; no message has more fields."""


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
        InvalidMessage: The bytes are not an `UploadPart`, or it is empty.
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
        InvalidMessage: The bytes are not a `FileStart`.
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
        InvalidMessage: The bytes are not an `UploadAnswer`, or it is empty.
    """
    found = [value for _, value in _fields(data, 1)]
    if not found:
        raise InvalidMessage("upload: the answer is empty")
    return found[-1]


# -- Protocol Buffers ------------------------------------------------------------------------------


def _field(number: int, data: bytes) -> bytes:
    return encode_field(_TAGS[number], data)


def _fields(data: bytes, known: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the value of each field from 1 to `known`; all values are bytes.

    Raises:
        InvalidMessage: The bytes are not a Protocol Buffers message with such fields.
    """
    try:
        for number, wire_type, value in split_fields(data):
            if number > known:
                continue
            if wire_type != BYTES:
                raise InvalidMessage(f"envelope: field {number}: expected bytes")
            yield number, value
    except ProtoError as error:
        raise InvalidMessage(f"envelope: {error}") from None
