"""The three encodings: JSON, MessagePack and CBOR, with strict decoders.

A frame is one message or an array of messages (feature `batch`). Outgoing messages are always
encoded as JSON first and recoded for the other encodings, so that a component is encoded once for
all renderers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

import cbor2
import msgspec

from arp.protocol.draft_agent import completed
from arp.protocol.errors import InvalidMessage
from arp.protocol.exact_integers import exact_json
from arp.protocol.framing.frame_parts import MAX_BATCH as MAX_BATCH
from arp.protocol.framing.frame_parts import (
    check_json_keys,
    check_msgpack_keys,
    parts_of,
    read_cbor,
)
from arp.protocol.json_value import Json, JsonObject, check_plain_json, kind_of
from arp.protocol.messages import MAX_ID_LENGTH, AgentMessage, RendererMessage, is_unrepeatable
from arp.protocol.validate import explain

Encoding = Literal["json", "msgpack", "cbor"]

ENCODINGS: tuple[Encoding, ...] = ("json", "msgpack", "cbor")

ARRAY_BYTES = MAX_BATCH + 2
"""Maximum number of bytes that an array adds to its messages: brackets and commas of JSON."""

M = TypeVar("M")

encode_json: Callable[[object], bytes] = msgspec.json.Encoder().encode
"""Return a message, or a list of messages, as JSON without line breaks."""

_encode_msgpack = msgspec.msgpack.Encoder().encode


def encode(message: object, encoding: Encoding) -> bytes:
    """Return a message as a frame."""
    return recode(encode_json(message), encoding)


def encode_shown(message: object) -> bytes:
    """Return a message of the agent side as JSON without integers that a renderer would round.

    See `exact_integers`.
    """
    return exact_json(encode_json(message))


def recode(frame: bytes, encoding: Encoding) -> bytes:
    """Return a JSON frame in another encoding."""
    if encoding == "json":
        return frame
    plain = msgspec.json.decode(frame)
    return _encode_msgpack(plain) if encoding == "msgpack" else cbor2.dumps(plain)


def join_frames(frames: Sequence[bytes], encoding: Encoding) -> bytes:
    """Join frames of one message each into one array frame; at most `MAX_BATCH` frames."""
    count = len(frames)
    if count == 1:
        return frames[0]
    if encoding == "json":
        return b"[" + b",".join(frames) + b"]"
    if encoding == "msgpack":
        head = bytes((0x90 | count,)) if count < 16 else b"\xdc" + count.to_bytes(2, "big")
    else:
        head = bytes((0x80 | count,)) if count < 24 else bytes((0x98, count))
    return head + b"".join(frames)


class UnreadableMessage(msgspec.Struct, frozen=True):
    """A message of a frame that could not be parsed."""

    error: InvalidMessage
    input_id: str | None = None
    """Its `id`, if it may be the id of an input."""
    of_unknown_type: bool = False
    """Whether this version does not know its `type`."""


class Decoder(Generic[M]):
    """Parses frames of one encoding and direction; refuses everything else.

    Every failure is an `InvalidMessage` that says what is wrong and where.
    """

    def __init__(
        self,
        encoding: Encoding,
        union: Any,
        *,
        is_bounded: bool = False,
        complete: Callable[[JsonObject], JsonObject] | None = None,
    ) -> None:
        """Create a decoder.

        Args:
            encoding: Encoding of all frames.
            union: Union of the message types.
            is_bounded: Whether an array is limited to `MAX_BATCH` messages.
            complete: Function that adds missing fields to a message that does not fit.
        """
        self.encoding = encoding
        self._is_bounded = is_bounded
        self._complete = complete
        self._structs: Mapping[str, type[msgspec.Struct]] = {
            str(struct.__struct_config__.tag): struct for struct in get_args(union)
        }
        self._json = msgspec.json.Decoder(union)

    def decode(self, frame: bytes) -> list[M]:
        """Parse one frame, all or nothing; ignore messages of unknown types.

        Returns:
            The messages in order; one message unless the frame is an array.

        Raises:
            InvalidMessage: The frame is unreadable, has values that are not JSON, is nested too
                deep, or has a message with a field that does not fit. In the last case `detail` is
                the type of the message, if it is the only one in the frame.
        """
        out: list[M] = []
        read = self.read(frame)
        for message in read:
            if not isinstance(message, UnreadableMessage):
                out.append(message)
            elif not message.of_unknown_type:
                raise message.error if len(read) == 1 else InvalidMessage(message.error.message)
        return out

    def read(self, frame: bytes) -> list[M | UnreadableMessage]:
        """Parse one frame, each message independently of the others.

        Returns:
            The messages in order, with an `UnreadableMessage` for each that could not be parsed.

        Raises:
            InvalidMessage: The frame as a whole is unreadable, has too many messages, has values
                that are not JSON or an object with a duplicate key, or is nested too deep.
        """
        try:
            if self.encoding == "cbor":
                return self._each_cbor(frame)
            parts = parts_of(frame, self.encoding, is_bounded=self._is_bounded)
            if parts is None:
                return [self._message(frame, "message")]
            return [self._message(part, f"message[{n}]") for n, part in enumerate(parts)]
        except _BROKEN as error:
            raise _unreadable(error, self.encoding) from None

    def _message(self, data: bytes, where: str) -> M | UnreadableMessage:
        """Parse one message in JSON or MessagePack."""
        if self.encoding == "msgpack":
            return self._from_plain(_plain_msgpack(data), where)
        try:
            message: M = self._json.decode(data)
        except msgspec.ValidationError:
            plain = msgspec.json.decode(data)
            if not _is_canonical(plain, data):
                check_json_keys(data)
            return self._from_plain(plain, where)
        # The check for duplicate keys parses in Python, which is slow. Text that our own encoder
        # would write cannot have any, and most messages are such text.
        if not _is_canonical(message, data):
            plain = msgspec.json.decode(data)
            if not _is_canonical(plain, data):
                check_json_keys(data)
        return message

    def _each_cbor(self, frame: bytes) -> list[M | UnreadableMessage]:
        plain = read_cbor(frame, is_bounded=self._is_bounded)
        check_plain_json(plain, "message")
        if isinstance(plain, list):
            return [self._from_plain(item, f"message[{index}]") for index, item in enumerate(plain)]
        return [self._from_plain(plain, "message")]

    def _from_plain(self, plain: Json, where: str) -> M | UnreadableMessage:
        if not isinstance(plain, dict):
            wanted = "object or array" if where == "message" else "object"
            return UnreadableMessage(
                InvalidMessage(f"{where}: expected {wanted}, got {kind_of(plain)}")
            )
        name, given = plain.get("type"), plain.get("id")
        message_id = given if isinstance(given, str) and len(given) <= MAX_ID_LENGTH else None
        if name is None:
            return UnreadableMessage(InvalidMessage(f"{where}.type: missing"), message_id)
        if not isinstance(name, str):
            wrong = f"{where}.type: expected string, got {kind_of(name)}"
            return UnreadableMessage(InvalidMessage(wrong), message_id)
        struct = self._structs.get(name)
        if struct is None:
            known = ", ".join(self._structs)
            wrong = f"{where}.type: {name!r:.60} is not one of {known}"
            return UnreadableMessage(InvalidMessage(wrong), message_id, of_unknown_type=True)
        try:
            return self._convert(plain, struct)
        except msgspec.ValidationError:
            return UnreadableMessage(
                InvalidMessage(explain(plain, struct, where), detail=name), message_id
            )

    def _convert(self, plain: JsonObject, struct: type[msgspec.Struct]) -> M:
        try:
            return msgspec.convert(plain, struct)  # type: ignore[return-value]  # one of the union
        except msgspec.ValidationError:
            if self._complete is None:
                raise
        return msgspec.convert(self._complete(plain), struct)  # type: ignore[return-value]


_BROKEN = (
    msgspec.DecodeError,
    cbor2.CBORDecodeError,
    RecursionError,
    ValueError,
    TypeError,
    OverflowError,
    MemoryError,
)
"""Exceptions of the libraries for unreadable bytes; invalid UTF-8 is a `ValueError`."""


def _unreadable(error: BaseException, encoding: str) -> InvalidMessage:
    if isinstance(error.__cause__, InvalidMessage):
        return error.__cause__
    if isinstance(error, RecursionError):
        return InvalidMessage("message: nested too deep to be read")
    return InvalidMessage(f"message is not {encoding}: {error!s:.200}")


def read_plain(frame: bytes, encoding: Encoding) -> list[Json]:
    """Return the messages of a frame as plain JSON values; an array has at most `MAX_BATCH`.

    Raises:
        InvalidMessage: The frame is unreadable; see `Decoder.read`.
    """
    try:
        if encoding == "cbor":
            value = read_cbor(frame, is_bounded=True)
            check_plain_json(value, "message")
            return value if isinstance(value, list) else [value]
        parts = parts_of(frame, encoding, is_bounded=True)
        read = _plain_json if encoding == "json" else _plain_msgpack
        return [read(part) for part in ([frame] if parts is None else parts)]
    except _BROKEN as error:
        raise _unreadable(error, encoding) from None


def _plain_json(data: bytes) -> Json:
    plain = msgspec.json.decode(data)
    check_plain_json(plain, "message")
    if not _is_canonical(plain, data):
        check_json_keys(data)
    return plain


def _plain_msgpack(data: bytes) -> Json:
    plain = msgspec.msgpack.decode(data)
    check_plain_json(plain, "message")
    # Bytes that our own encoder would write have no duplicate keys: only others are checked.
    if _encode_msgpack(plain) != data:
        check_msgpack_keys(data, plain)
    return plain


def _is_canonical(value: object, data: bytes) -> bool:
    """Return whether `data` is what our encoder writes for a value: it has no duplicate keys."""
    return encode_json(value) == data


def renderer_decoder(encoding: Encoding) -> Decoder[RendererMessage]:
    """Return a decoder for frames of renderers; an array has at most `MAX_BATCH` messages."""
    return Decoder(encoding, RendererMessage, is_bounded=True)


def agent_decoder(encoding: Encoding) -> Decoder[AgentMessage]:
    """Return a decoder for frames of an agent side, which may know only the draft."""
    return Decoder(encoding, AgentMessage, complete=completed)


class _SequenceFields(msgspec.Struct, frozen=True):
    type: str = ""
    seq: int | None = None
    epoch: str | None = None
    turn_id: str | None = None


class FrameCursor(NamedTuple):
    """The cursor of a renderer after it has applied a frame."""

    epoch: str | None
    """The epoch in the frame; `None` if the frame has none."""
    seq: int | None
    """Last applied sequence number; `render` and `patch` are applied by their commit."""
    is_between: bool
    """Whether the cursor is invalid: a message after `seq` has no number of its own and must not
    be sent again."""


_NUMBERED = msgspec.json.Decoder(_SequenceFields | list[_SequenceFields])


def cursor_after(frame: bytes) -> FrameCursor:
    """Return the cursor after a JSON frame, for transports that send cursors."""
    numbered = _NUMBERED.decode(frame)
    epoch, seq, is_between = None, None, False
    for one in numbered if isinstance(numbered, list) else [numbered]:
        epoch = one.epoch or epoch
        if one.type in ("render", "patch", "session"):
            continue
        if one.seq is not None:
            seq, is_between = one.seq, False
        elif is_unrepeatable(one.type, one.turn_id):
            is_between = True
    return FrameCursor(epoch, seq, is_between)
