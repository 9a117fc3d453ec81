"""Codec between Structs and Protocol Buffers.

`arp.protocol.framing.protobuf` has the wire format. Unknown fields are skipped, so that messages of
a newer peer can be read. Few types are needed and the Structs exist already, so this codec needs
neither generated classes nor another library.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

import msgspec

from arp.protocol.errors import ArpError
from arp.protocol.framing.protobuf import (
    BYTES,
    FIXED64,
    VARINT,
    ProtoError,
    encode_field,
    encode_tag,
    encode_varint,
    read_value,
    split_fields,
)
from arp.protocol.json_value import MAX_VALUES, JsonObject, check_json_text
from arp.runtime.contract.enum_values import not_allowed, refusal_of
from arp.runtime.remote.proto_fields import ZEROS, ProtoField, fields_of, numbers

S = TypeVar("S", bound=msgspec.Struct)

WIRE_TYPES = {"bool": VARINT, "int64": VARINT, "enum": VARINT, "double": FIXED64}
"""Wire types of field kinds; all other kinds are `BYTES`."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class ValueNotAllowed(ProtoError):
    """An enum does not have the value; the peer may be newer."""


# -- to bytes ------------------------------------------------------------------------------------


def encode(message: msgspec.Struct) -> bytes:
    """Return a Struct as bytes.

    Raises:
        ProtoError: An integer has more than 64 bits, or a text is not valid Unicode.
    """
    out = bytearray()
    for field, tag in _tags(type(message)):
        value = getattr(message, field.name)
        if value is None or (not field.is_optional and not value and field.kind != "message"):
            continue
        try:
            _write(out, field, tag, value)
        except (
            OverflowError,
            UnicodeEncodeError,
            msgspec.MsgspecError,
            ValueNotAllowed,
        ) as error:
            raise ProtoError(f"{type(message).__name__}.{field.name}: {error}") from error
    return bytes(out)


@cache
def _tags(kind: type[msgspec.Struct]) -> tuple[tuple[ProtoField, bytes], ...]:
    table = numbers().messages[kind.__name__]
    return tuple((field, _tag(field, table[field.name][0])) for field in fields_of(kind))


def _tag(field: ProtoField, number: int) -> bytes:
    packed = field.is_repeated and field.kind in WIRE_TYPES
    return encode_tag(number, BYTES if packed else WIRE_TYPES.get(field.kind, BYTES))


def _write(out: bytearray, field: ProtoField, tag: bytes, value: Any) -> None:
    if field.kind == "map":
        for name, text in value.items():
            out += encode_field(tag, _entry(name, text))
    elif not field.is_repeated and field.kind in WIRE_TYPES:
        out += tag + _scalar(field, value)
    elif field.kind in WIRE_TYPES:
        out += encode_field(tag, b"".join(_scalar(field, one) for one in value))
    else:
        for one in value if field.is_repeated else (value,):
            out += encode_field(tag, _TO_BYTES[field.kind](one))


_TO_BYTES: dict[str, Callable[[Any], bytes]] = {
    "string": str.encode,
    "bytes": bytes,
    "json": msgspec.json.encode,
    "message": encode,
}


def _entry(name: str, text: str) -> bytes:
    """Return an entry of a map: a message with the key as field 1 and the value as field 2."""
    return encode_field(b"\x0a", name.encode()) + encode_field(b"\x12", text.encode())


def _scalar(field: ProtoField, value: Any) -> bytes:
    if field.kind == "double":
        return struct.pack("<d", value)
    if field.kind == "enum":
        table = numbers().enums[field.of.__name__]
        if str(value) not in table:
            raise ValueNotAllowed(not_allowed("", tuple(table), repr(value)))
        return encode_varint(table[str(value)])
    if not INT64_MIN <= value <= INT64_MAX:
        raise OverflowError(f"{value} has more than 64 bits")
    return encode_varint(int(value) & (2**64 - 1))


# -- from bytes ----------------------------------------------------------------------------------

MAX_REQUEST_VALUES = 10 * MAX_VALUES
"""Largest number of values in a request. It is high because the request that creates a session may
contain a long conversation."""


class TooManyValues(ProtoError):
    """A message has more fields and values than allowed."""


def decode(kind: type[S], data: bytes, max_values: int | None = None) -> S:
    """Return the Struct of a message.

    Args:
        kind: Type of the Struct.
        data: Bytes of the message.
        max_values: Limit for its fields and values at all levels; `None` means no limit, for
            answers to requests of our own client.

    Raises:
        ProtoError: The bytes are not a valid message; the text names the field.
    """
    try:
        return msgspec.convert(_ProtoReader(max_values).values(kind, data), kind)
    except msgspec.ValidationError as error:
        raise ProtoError(f"{kind.__name__}: {refusal_of(error, kind)}") from error


class _ProtoReader:
    """Reads one message with all nested messages, and counts their fields and values.

    A field takes at least two bytes in the message, but about a hundred in memory, so a limit is
    needed.
    """

    def __init__(self, max_values: int | None) -> None:
        self._max_values = max_values
        self._count = 0

    def values(self, kind: type[msgspec.Struct], data: bytes) -> JsonObject:
        """Return the fields of a message by name, without validation."""
        known = _by_number(kind)
        found: dict[str, list[Any]] = {}
        for number, wire_type, value in split_fields(data):
            self._count_one()
            field = known.get(number)
            if field is None:
                continue
            own = WIRE_TYPES.get(field.kind, BYTES)
            several = found.setdefault(field.name, [])
            if wire_type == own:
                several.append(value)
            elif field.is_repeated and wire_type == BYTES:
                for one in _packed(value, own):
                    self._count_one()
                    several.append(one)
        fields = {field.name: field for field in known.values()}
        values = dict(_zeros(kind))
        for name, several in found.items():
            if not several:
                continue
            try:
                value = self._value(fields[name], several)
            except (
                UnicodeDecodeError,
                msgspec.DecodeError,
                ArpError,
                ValueNotAllowed,
            ) as error:
                raise ProtoError(f"{kind.__name__}.{name}: {error}") from error
            if value is not None:
                values[name] = value
        return values

    def _count_one(self) -> None:
        self._count += 1
        if self._max_values is not None and self._count > self._max_values:
            raise TooManyValues(f"more than {self._max_values} values; send less at once")

    def _value(self, field: ProtoField, several: list[Any]) -> Any:
        if field.is_repeated:
            return [self._one(field, one) for one in several]
        if field.kind == "map":
            return dict(_read_entry(one) for one in several)
        # A field that is not repeated may still occur several times. The parts of a message are
        # then merged; for any other type the last value wins.
        last = b"".join(several) if field.kind == "message" else several[-1]
        return self._one(field, last)

    def _one(self, field: ProtoField, value: Any) -> Any:
        match field.kind:
            case "string":
                return value.decode()
            case "json":
                if self._max_values is not None:
                    self._count += check_json_text(
                        value, field.name, self._max_values - self._count
                    )
                return msgspec.json.decode(value) if value else {}
            case "bool":
                return bool(value)
            case "int64":
                return value - 2**64 if value > INT64_MAX else value
            case "double":
                return struct.unpack("<d", value)[0]
            case "enum":
                return _read_enum(field.of, value)
            case "message":
                return self.values(field.of, value)
            case _:
                return value


@cache
def _zeros(kind: type[msgspec.Struct]) -> JsonObject:
    """Return the zero values of required fields; `encode` does not write zero values."""
    return {
        field.name: ZEROS[field.kind]
        for field in fields_of(kind)
        if field.is_required and field.kind in ZEROS
    }


@cache
def _by_number(kind: type[msgspec.Struct]) -> dict[int, ProtoField]:
    table = numbers().messages[kind.__name__]
    return {table[field.name][0]: field for field in fields_of(kind)}


def _read_enum(kind: type[StrEnum], number: int) -> str | None:
    """Return the value of an enum; `None` for the number 0."""
    if number == 0:
        return None
    names = _enum_names(kind)
    if number not in names:
        known = tuple(f"{one} ({name})" for one, name in names.items())
        raise ValueNotAllowed(not_allowed("", known, str(number)))
    return names[number]


@cache
def _enum_names(kind: type[StrEnum]) -> dict[int, str]:
    table = numbers().enums[kind.__name__]
    return {table[one.value]: one.value for one in kind}


def _read_entry(data: bytes) -> tuple[str, str]:
    parts = {number: value for number, wire, value in split_fields(data) if wire == BYTES}
    return parts.get(1, b"").decode(), parts.get(2, b"").decode()


def _packed(data: bytes, wire_type: int) -> Iterator[Any]:
    at = 0
    while at < len(data):
        value, at = read_value(data, at, wire_type)
        yield value
