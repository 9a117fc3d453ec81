"""The Protocol Buffers fields of Structs: their numbers and types.

`proto_numbers.json` has the numbers, which never change. `tools/gen_proto.py` adds new numbers to
it and writes `schemas/ari/runtime/v1/api.proto` from the same tables. A field is `optional` if it
can be `None` or its default is not the zero of its type: in both cases a reader must be able to
distinguish an absent field from a zero.
"""

from __future__ import annotations

import types
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

import msgspec

from arp.protocol.json_value import JsonObject
from arp.runtime.contract.services import METHODS, AriMethod
from arp.runtime.contract.types import Details

PACKAGE = "ari.runtime.v1"

NUMBERS_FILE = "proto_numbers.json"

FieldKind: TypeAlias = Literal[
    "string", "json", "bytes", "bool", "int64", "double", "enum", "message", "map"
]

_SCALARS: dict[Any, FieldKind] = {
    str: "string",
    bytes: "bytes",
    bool: "bool",
    int: "int64",
    float: "double",
    JsonObject: "json",
    Details: "map",
}

ZEROS: dict[FieldKind, object] = {
    "string": "",
    "bytes": b"",
    "bool": False,
    "int64": 0,
    "double": 0.0,
    "json": {},
    "map": {},
}
"""Values of fields that are absent; enums and messages have no such value."""


class ProtoNumbers(msgspec.Struct, frozen=True):
    """The tables of `proto_numbers.json`.

    The entry of a removed field stays, so that its number is not used again.
    """

    enums: dict[str, dict[str, int]] = {}
    messages: dict[str, dict[str, tuple[int, str]]] = {}
    """Number and type of each field, by message and field."""
    methods: dict[str, str] = {}


class ProtoField(NamedTuple):
    """A field of a message."""

    name: str
    kind: FieldKind
    of: Any
    """Struct of a message, class of an enum, or values of a `Literal`; `None` for other kinds."""
    is_repeated: bool
    is_optional: bool
    is_required: bool
    """Whether the Struct has no default for the field."""

    @property
    def type_text(self) -> str:
        """Type in the form of tables and `.proto` files; JSON is named `json`."""
        name = self.of.__name__ if self.kind in ("enum", "message") else self.kind
        name = "map<string, string>" if self.kind == "map" else name
        if self.is_repeated:
            return f"repeated {name}"
        return f"optional {name}" if self.is_optional else name


@cache
def fields_of(struct: type[msgspec.Struct]) -> tuple[ProtoField, ...]:
    """Return the fields of a message, in the order of the Struct."""
    return tuple(_field(one) for one in msgspec.structs.fields(struct))


def _field(info: msgspec.structs.FieldInfo) -> ProtoField:
    kind, may_be_none = info.type, False
    if get_origin(kind) in (Union, types.UnionType):
        kinds = [one for one in get_args(kind) if one is not type(None)]
        assert len(kinds) == 1, f"{info.name}: a union has no type in a .proto file"
        kind, may_be_none = kinds[0], True
    is_repeated = get_origin(kind) is tuple
    if is_repeated:
        kind = get_args(kind)[0]
    word, of = _kind_of(kind)
    has_default = info.default is not msgspec.NODEFAULT or (
        info.default_factory is not msgspec.NODEFAULT
    )
    default = ZEROS.get(word) if info.default is msgspec.NODEFAULT else info.default
    is_optional = word not in ("message", "map") and (may_be_none or default != ZEROS.get(word))
    is_optional = is_optional and not is_repeated
    return ProtoField(info.name, word, of, is_repeated, is_optional, not has_default)


def _kind_of(kind: Any) -> tuple[FieldKind, Any]:
    if get_origin(kind) is Literal:
        return "string", get_args(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "enum", kind
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return "message", kind
    return _SCALARS[kind], None


def service_method(method: AriMethod) -> str:
    """Return the gRPC name of a method: `SessionManager/CreateSession`."""
    return f"{method.service.__name__}/{method.name.title().replace('_', '')}"


REMOTE_METHODS = tuple(method for method in METHODS if method.name != "close")
"""Methods that remote clients can call. `close` is missing, because a client closes only its
connection."""


@cache
def numbers() -> ProtoNumbers:
    """Return the tables of `proto_numbers.json`."""
    data = (files("arp.runtime.remote") / NUMBERS_FILE).read_bytes()
    return msgspec.json.decode(data, type=ProtoNumbers)
