"""Checks of a frame: the number of its messages, duplicate keys, and bytes after its end.

Three rules are the same in JSON, MessagePack and CBOR: an array has at most `MAX_BATCH` messages,
an object has no duplicate keys, and nothing follows the single value of a frame. An array is
counted before its elements are decoded, so that a million empty objects cost no more than the first
few.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, Final

import cbor2
import msgspec
from msgspec import Raw

from arp.protocol.errors import InvalidMessage
from arp.protocol.json_value import MAX_DEPTH, Json

MAX_BATCH: Final = 64
"""Maximum number of messages in one array: more than any renderer needs to send at once."""

SAME_KEY: Final = "message: an object has the same key twice"

_SPACE: Final = b" \t\r\n"
_MSGPACK_ARRAYS: Final = frozenset(bytes((head,)) for head in (*range(0x90, 0xA0), 0xDC, 0xDD))

_BATCH: Final = msgspec.defstruct(
    "_BATCH",
    [(f"message_{number}", Raw, Raw()) for number in range(MAX_BATCH)],
    array_like=True,
    forbid_unknown_fields=True,
)
"""Type of an array of at most `MAX_BATCH` raw messages; msgspec refuses a longer one at the first
element too many."""

_BATCHES: Final[Mapping[str, Any]] = {
    "json": msgspec.json.Decoder(_BATCH),
    "msgpack": msgspec.msgpack.Decoder(_BATCH),
}
_ARRAYS: Final[Mapping[str, Any]] = {
    "json": msgspec.json.Decoder(list[Raw]),
    "msgpack": msgspec.msgpack.Decoder(list[Raw]),
}


_COUNTED_BYTES: Final = 4096
"""Up to this size of a frame, all its messages are counted for the error message."""


def too_many(count: int | None) -> InvalidMessage:
    """Return the error for an array with too many messages; `None` if the number is unknown."""
    given = f"more than {MAX_BATCH}" if count is None else f"{count}"
    return InvalidMessage(f"batch of {given} messages; at most {MAX_BATCH}")


def parts_of(frame: bytes, encoding: str, *, is_bounded: bool) -> list[bytes] | None:
    """Return the undecoded messages of an array in JSON or MessagePack.

    Args:
        frame: One message, or an array.
        encoding: `json` or `msgpack`.
        is_bounded: Whether `MAX_BATCH` applies.

    Returns:
        The bytes of each message; `None` if the frame is not an array.

    Raises:
        InvalidMessage: The array has more than `MAX_BATCH` messages.
        msgspec.DecodeError: The frame is unreadable.
    """
    head = frame[:1]
    if encoding == "msgpack":
        if head not in _MSGPACK_ARRAYS:
            return None
    elif head != b"[" and (head not in _SPACE or frame.lstrip(_SPACE)[:1] != b"["):
        return None
    if not is_bounded:
        return [bytes(part) for part in _ARRAYS[encoding].decode(frame)]
    try:
        batch = _BATCHES[encoding].decode(frame)
    except msgspec.ValidationError:
        is_small = len(frame) <= _COUNTED_BYTES
        raise too_many(len(_ARRAYS[encoding].decode(frame)) if is_small else None) from None
    raw = (bytes(getattr(batch, name)) for name in _BATCH.__struct_fields__)
    # Fields beyond the end of the array have their default, which is empty.
    return [part for part in raw if part]


# -- keys ------------------------------------------------------------------------------------------


def check_json_keys(text: bytes) -> None:
    """Check that no object in a valid JSON text has a duplicate key.

    Raises:
        InvalidMessage: An object has one.
    """
    json.loads(text.decode(), object_pairs_hook=_without_duplicates)


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise InvalidMessage(f"{SAME_KEY}: {key!r:.60}")
    return found


def check_msgpack_keys(data: bytes, value: Json) -> None:
    """Check that no map in MessagePack has a duplicate key.

    Args:
        data: Valid MessagePack.
        value: The value decoded from it, plain JSON.

    Raises:
        InvalidMessage: A map has a duplicate key: the maps in `data` have more entries than the
            objects in `value`.
    """
    if _entries_written(data) != _keys_in(value):
        raise InvalidMessage(SAME_KEY)


def _keys_in(value: Json) -> int:
    count, rest = 0, [value]
    while rest:
        one = rest.pop()
        if type(one) is dict:
            count += len(one)
            rest.extend(one.values())
        elif type(one) is list:
            rest.extend(one)
    return count


_LENGTHS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}
"""First byte of a text → number of bytes of its length."""
_COUNTS: Final = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
"""First byte of an array or a map → number of bytes of its count."""
_NUMBERS: Final = {0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9}
_NUMBERS_BELOW_ZERO: Final = {0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_FIXED: Final = {**_NUMBERS, **_NUMBERS_BELOW_ZERO}
"""First byte of a value of fixed size → its size, including the first byte."""


def _entries_written(data: bytes) -> int:
    """Count the entries of all maps in MessagePack that holds plain JSON.

    Source: the MessagePack specification, "Formats".
    """
    count, at, end = 0, 0, len(data)
    while at < end:
        head = data[at]
        if 0x80 <= head < 0x90:  # a short map
            count += head & 0x0F
        elif 0xA0 <= head < 0xC0:  # a short text
            at += head & 0x1F
        elif head in _FIXED:
            at += _FIXED[head] - 1
        elif head in _LENGTHS:
            size = _LENGTHS[head]
            at += size + int.from_bytes(data[at + 1 : at + 1 + size], "big")
        elif head in _COUNTS:
            size = _COUNTS[head]
            if head >= 0xDE:  # a map; the elements of arrays and maps follow and are scanned too
                count += int.from_bytes(data[at + 1 : at + 1 + size], "big")
            at += size
        at += 1
    return count


# -- CBOR ------------------------------------------------------------------------------------------


def read_cbor(frame: bytes, *, is_bounded: bool) -> Json:
    """Decode a whole frame in CBOR, including the check of its keys.

    Args:
        frame: One message, or an array.
        is_bounded: Whether `MAX_BATCH` applies.

    Raises:
        InvalidMessage: The frame has more than `MAX_BATCH` messages, a duplicate key, a tag, or
            more than one value.
        cbor2.CBORDecodeError: The frame is unreadable.
    """
    if is_bounded:
        _check_cbor_count(frame)
    decoder = _decoder(BytesIO(frame))
    try:
        value = decoder.decode()
    except cbor2.CBORDecodeError as error:
        if "Duplicate map key" in str(error):
            raise InvalidMessage(SAME_KEY) from None
        raise
    try:
        decoder.read(1)
    except cbor2.CBORDecodeEOF:
        return value
    raise InvalidMessage("message is not cbor: more bytes follow the value")


def _decoder(stream: BytesIO, read_size: int = 65_536) -> cbor2.CBORDecoder:
    return cbor2.CBORDecoder(
        stream,
        max_depth=MAX_DEPTH,
        allow_duplicate_keys=False,
        semantic_decoders=_NO_TAGS,
        tag_hook=_refuse_tag,
        read_size=read_size,
    )


def _check_cbor_count(frame: bytes) -> None:
    """Refuse an array of more than `MAX_BATCH` items.

    Source: RFC 8949, 3.
    """
    head = frame[0] if frame else 0
    if head == _INDEFINITE:
        _check_indefinite(frame)
    if not _ARRAY <= head < _INDEFINITE:
        return
    count = head & 0x1F
    if count >= _ONE_BYTE:
        size = 1 << (count - _ONE_BYTE)
        count = int.from_bytes(frame[1 : 1 + size], "big")
    # A count above the length of the frame is wrong; decoding then gives a better error message.
    if MAX_BATCH < count <= len(frame):
        raise too_many(count)


_ARRAY, _INDEFINITE, _BREAK = 0x80, 0x9F, b"\xff"
_ONE_BYTE: Final = 24
"""From this value on, the count follows the first byte, in 1, 2, 4 or 8 bytes."""


def _check_indefinite(frame: bytes) -> None:
    """Refuse an array of indefinite length with more than `MAX_BATCH` items.

    Only the allowed number of items is decoded.
    """
    stream = BytesIO(frame)
    stream.seek(1)
    # Without reading ahead, the position of the stream is the beginning of the next item.
    decoder = _decoder(stream, read_size=1)
    for _ in range(MAX_BATCH):
        if frame[stream.tell() : stream.tell() + 1] in (b"", _BREAK):
            return
        decoder.decode()
    if frame[stream.tell() : stream.tell() + 1] not in (b"", _BREAK):
        raise too_many(None)


def _refuse_tag(*_: object) -> Any:
    raise InvalidMessage("CBOR tags are not used in ARP; send plain maps, arrays and strings")


_NO_TAGS: Final[Mapping[int, Callable[..., Any]]] = dict.fromkeys(
    (
        *(0, 1, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004),
        *(43000, 55799),
    ),
    _refuse_tag,
)
"""Tags that cbor2 would decode itself, each with a decoder that refuses it.

Some become objects (dates, regular expressions, …), others repeated values, so that a small frame
becomes a large message. cbor2 passes all other tags to `tag_hook`.
"""
