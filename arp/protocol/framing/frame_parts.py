"""What a frame is made of, before messages are made of it: how many they are, which keys, what end.

Three rules hold alike in JSON, MessagePack and CBOR: an array has so many messages at most, an
object has no key twice, and nothing follows the one value of a frame. An array is counted before
anything is made of its elements, so that a million empty objects cost no more than the first few.
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
"""Messages in one array: more than any renderer has to say at once."""

SAME_KEY: Final = "message: an object has the same key twice"

_SPACE: Final = b" \t\r\n"
_MSGPACK_ARRAYS: Final = frozenset(bytes((head,)) for head in (*range(0x90, 0xA0), 0xDC, 0xDD))

_BATCH: Final = msgspec.defstruct(
    "_BATCH",
    [(f"message_{number}", Raw, Raw()) for number in range(MAX_BATCH)],
    array_like=True,
    forbid_unknown_fields=True,
)
"""An array of at most `MAX_BATCH` messages, none of them read: one more is refused at its head."""

_BATCHES: Final[Mapping[str, Any]] = {
    "json": msgspec.json.Decoder(_BATCH),
    "msgpack": msgspec.msgpack.Decoder(_BATCH),
}
_ARRAYS: Final[Mapping[str, Any]] = {
    "json": msgspec.json.Decoder(list[Raw]),
    "msgpack": msgspec.msgpack.Decoder(list[Raw]),
}


_COUNTED_BYTES: Final = 4096
"""An array that is too long is counted to its end if it is not larger."""


def too_many(count: int | None) -> InvalidMessage:
    """Return the refusal of an array with too many messages; `None`: they were not all counted."""
    given = f"more than {MAX_BATCH}" if count is None else f"{count}"
    return InvalidMessage(f"batch of {given} messages; at most {MAX_BATCH}")


def parts_of(frame: bytes, encoding: str, *, is_bounded: bool) -> list[bytes] | None:
    """Return the messages of an array in JSON or MessagePack, each as it is written.

    Args:
        frame: One message, or an array.
        encoding: `json` or `msgpack`.
        is_bounded: Whether `MAX_BATCH` holds.

    Returns:
        `None` if the frame is no array.

    Raises:
        InvalidMessage: More than `MAX_BATCH`.
        msgspec.DecodeError: Not readable.
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
    given = (bytes(getattr(batch, name)) for name in _BATCH.__struct_fields__)
    return [part for part in given if part]


# -- keys ------------------------------------------------------------------------------------------


def check_json_keys(text: bytes) -> None:
    """Guarantee that no object in a JSON text, which can be read, has a key twice.

    Raises:
        InvalidMessage: One has.
    """
    json.loads(text.decode(), object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise InvalidMessage(f"{SAME_KEY}: {key!r:.60}")
    return found


def check_msgpack_keys(data: bytes, value: Json) -> None:
    """Guarantee that no map in MessagePack has a key twice.

    Args:
        data: What can be read.
        value: What was read from it, plain JSON.

    Raises:
        InvalidMessage: One has: there are more entries in its maps than keys in the objects.
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
"""Texts by their first byte: how many bytes say their length."""
_COUNTS: Final = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
"""Arrays and maps, in the same way."""
_NUMBERS: Final = {0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9}
_NUMBERS_BELOW_ZERO: Final = {0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_FIXED: Final = {**_NUMBERS, **_NUMBERS_BELOW_ZERO}
"""Values of a fixed size, their first byte counted."""


def _entries_written(data: bytes) -> int:
    """Count the entries of all maps in MessagePack that holds plain JSON.

    Source: the MessagePack specification, "Formats".
    """
    count, place, end = 0, 0, len(data)
    while place < end:
        head = data[place]
        if 0x80 <= head < 0x90:
            count += head & 0x0F
        elif 0xA0 <= head < 0xC0:
            place += head & 0x1F
        elif head in _FIXED:
            place += _FIXED[head] - 1
        elif head in _LENGTHS:
            wide = _LENGTHS[head]
            place += wide + int.from_bytes(data[place + 1 : place + 1 + wide], "big")
        elif head in _COUNTS:
            wide = _COUNTS[head]
            if head >= 0xDE:
                count += int.from_bytes(data[place + 1 : place + 1 + wide], "big")
            place += wide
        place += 1
    return count


# -- CBOR ------------------------------------------------------------------------------------------


def read_cbor(frame: bytes, *, is_bounded: bool) -> Json:
    """Read a whole frame in CBOR; keys are checked while it is read.

    Args:
        frame: One message, or an array.
        is_bounded: Whether `MAX_BATCH` holds.

    Raises:
        InvalidMessage: More than `MAX_BATCH` messages, a key twice, a tag, or more than one value.
        cbor2.CBORDecodeError: Not readable.
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
    if head == _ENDLESS:
        _check_endless(frame)
    if not _ARRAY <= head < _ENDLESS:
        return
    count = head & 0x1F
    if count >= _ONE_BYTE:
        wide = 1 << (count - _ONE_BYTE)
        count = int.from_bytes(frame[1 : 1 + wide], "big")
    if MAX_BATCH < count <= len(frame):  # else it cannot be read, which says more
        raise too_many(count)


_ARRAY, _ENDLESS, _BREAK = 0x80, 0x9F, b"\xff"
_ONE_BYTE: Final = 24
"""From here on the count stands behind the first byte, in 1, 2, 4 or 8 bytes."""


def _check_endless(frame: bytes) -> None:
    """Refuse so an array that does not say its length: as many items are read as are allowed."""
    stream = BytesIO(frame)
    stream.seek(1)
    decoder = _decoder(stream, read_size=1)  # so that the stream tells where the next one begins
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
"""Tags that cbor2 would turn into objects (dates, regular expressions, …), or into the same value
many times over: a small frame must not become a large message. The others go to a hook."""
