"""Envelopes of the object dialect: strict parsing, and writing with increasing numbers.

An envelope is `{v, id, op, seq, payload}`. Its `seq` is called `serial_no` here, because `seq`
means a sequence number of the ledger everywhere else. The type of a payload depends on the target
object, which only the connection knows. Parsing therefore has two steps: `read` parses the
envelope, `payload_of` the payload.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from arp.protocol.codec import Encoding, encode_json, encode_shown, read_plain, recode
from arp.protocol.errors import ArpError, InvalidMessage, VersionMismatch
from arp.protocol.json_value import Json, JsonObject, kind_of
from arp.protocol.messages import VERSION
from arp.protocol.validate import explain

P = TypeVar("P", bound=Struct)

MAX_OBJECT_ID = 0xFFFFFFFF
AGENT_IDS = range(1, 0x80000000)
"""Ids of objects that the agent side creates."""
RENDERER_IDS = range(0x80000000, MAX_OBJECT_ID + 1)
"""Ids of objects that the renderer creates."""
DISPLAY = 0
"""Id of `ArpDisplay`."""

MAX_OP_LENGTH = 64
MAX_SERIAL_NO = 2**53


class ObjectEnvelope(Struct, frozen=True):
    """A received message with an unparsed payload."""

    object_id: int
    op: str
    serial_no: int
    payload: JsonObject


class RefusedEnvelope(Struct, frozen=True):
    """A refused message, with its `object_id` and `serial_no` if they could be read."""

    error: ArpError
    object_id: int = DISPLAY
    serial_no: int | None = None


class ObjectMessage(Struct, frozen=True):
    """A valid message with its parsed payload."""

    object_id: int
    op: str
    serial_no: int
    payload: Struct


class _WireEnvelope(Struct, frozen=True):
    v: int
    id: int
    op: str
    seq: int
    payload: Struct


def write(message: ObjectMessage, encoding: Encoding, *, is_shown: bool = False) -> bytes:
    """Return a message as a frame.

    Args:
        message: The message.
        encoding: Encoding of the frame.
        is_shown: Whether the agent side sends it; large integers are then sent as text (see
            `exact_integers`).

    Raises:
        UnicodeEncodeError: A string contains a lone surrogate.
    """
    written = _WireEnvelope(
        VERSION, message.object_id, message.op, message.serial_no, message.payload
    )
    return recode(encode_shown(written) if is_shown else encode_json(written), encoding)


def read(frame: bytes, encoding: Encoding) -> list[ObjectEnvelope | RefusedEnvelope]:
    """Return the envelopes of a frame and its refused messages, in order. Never raises."""
    try:
        values = read_plain(frame, encoding)
    except InvalidMessage as error:
        return [RefusedEnvelope(error)]
    return [_envelope(value) for value in values]


def _envelope(value: Json) -> ObjectEnvelope | RefusedEnvelope:
    if not isinstance(value, dict):
        return RefusedEnvelope(InvalidMessage(f"message: expected object, got {kind_of(value)}"))
    object_id, serial_no = _number(value.get("id"), 0), _number(value.get("seq"), 1)
    op, payload = value.get("op"), value.get("payload")
    wrong: ArpError | None = None
    if type(value.get("v")) is not int or value["v"] != VERSION:
        version = value.get("v")
        wrong = VersionMismatch(f"message.v: expected {VERSION}, got {version!r:.40}")
    elif object_id is None or object_id > MAX_OBJECT_ID:
        wrong = InvalidMessage(f"message.id: expected a number in 0…{MAX_OBJECT_ID}")
    elif not isinstance(op, str) or not 0 < len(op) <= MAX_OP_LENGTH:
        wrong = InvalidMessage("message.op: expected the name of an operation")
    elif serial_no is None:
        wrong = InvalidMessage(f"message.seq: expected a number in 1…{MAX_SERIAL_NO}")
    elif not isinstance(payload, dict):
        wrong = InvalidMessage(f"message.payload: expected object, got {kind_of(payload)}")
    else:
        return ObjectEnvelope(object_id, op, serial_no, payload)
    if object_id is None or object_id > MAX_OBJECT_ID:
        object_id = DISPLAY
    return RefusedEnvelope(wrong, object_id, serial_no)


def _number(value: Json, least: int) -> int | None:
    return value if type(value) is int and least <= value <= MAX_SERIAL_NO else None


def payload_of(envelope: ObjectEnvelope, kind: type[P]) -> P:
    """Return the payload of a message as the struct of its operation.

    Raises:
        InvalidMessage: The payload does not fit; the message names the field.
    """
    try:
        return msgspec.convert(envelope.payload, kind)
    except msgspec.ValidationError:
        wrong = explain(envelope.payload, kind, f"{envelope.op}.payload")
        raise InvalidMessage(wrong, detail=envelope.op) from None
