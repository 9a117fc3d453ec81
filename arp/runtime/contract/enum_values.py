"""Check of enum values in requests, and the error text for a value that is not allowed.

For remote calls, the decoder refuses such values. Calls in the same process need this check,
because msgspec does not validate a Struct when it is created. Both produce the same text:
`response.decision: expected one of allow, deny; got 'maybe'`.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from arp.runtime.contract.errors import InvalidArgument

_ENUM_ERROR = re.compile(
    r"Invalid enum value (?P<got>.+?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL
)
"""Error text of msgspec for a value that an enum or a `Literal` does not have."""
_STEP = re.compile(r"\.(\w+)|\[([^\]]*)\]")
MAX_SHOWN = 80
"""Number of characters of a refused value that are quoted."""


def refusal_of(error: Exception, kind: type) -> str:
    """Return the error text of a decoder; for an enum value, with the allowed values."""
    refused = _ENUM_ERROR.search(str(error))
    if refused is None:
        return str(error)
    path = refused["path"] or ""
    for name, _ in _STEP.findall(path):
        kind = _type_at(kind, name)
    return not_allowed(path.lstrip("."), allowed(kind), refused["got"])


def not_allowed(path: str, values: tuple[str, ...], got: str) -> str:
    """Return the error text for a value that is not allowed."""
    shown = got if len(got) <= MAX_SHOWN else got[:MAX_SHOWN] + "…"
    expected = f"expected one of {', '.join(values)}; got {shown}"
    return f"{path}: {expected}" if path else expected


def check_values(request: msgspec.Struct) -> None:
    """Raise if a request has an enum value that is not allowed, at any depth.

    Raises:
        InvalidArgument: A value is not allowed; the message names the field and the allowed values.
    """
    for path, values, got in _invalid(request, ""):
        raise InvalidArgument(not_allowed(path, values, repr(got)))


def _invalid(value: msgspec.Struct, path: str) -> Iterator[tuple[str, tuple[str, ...], object]]:
    for name, kind in _fields(type(value)):
        found, here = getattr(value, name), f"{path}{name}"
        several = found if isinstance(found, tuple) else (found,)
        for number, one in enumerate(several):
            at = f"{here}[{number}]" if isinstance(found, tuple) else here
            if isinstance(one, msgspec.Struct):
                yield from _invalid(one, f"{at}.")
            elif (values := allowed(kind)) and one is not None and one not in values:
                yield at, values, one


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Return the fields that hold enum values or other Structs."""
    found = []
    for info in msgspec.structs.fields(struct):
        kind = _item_type(info.type)
        is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
        if is_struct or allowed(kind):
            found.append((info.name, kind))
    return tuple(found)


def allowed(kind: Any) -> tuple[str, ...]:
    """Return the values of an enum or a `Literal`; empty for any other type."""
    if get_origin(kind) is Literal:
        return tuple(map(str, get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(str(one.value) for one in kind)
    return ()


def _type_at(kind: Any, name: str) -> Any:
    """Return the type of a Struct's field; without a name, the type of a tuple's items."""
    if name and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        kind = next((one.type for one in fields if one.encode_name == name), None)
        return _without_none(kind)
    return _item_type(kind)


def _without_none(kind: Any) -> Any:
    """Return a type without `None`."""
    if get_origin(kind) in (Union, types.UnionType):
        kind = next((one for one in get_args(kind) if one is not type(None)), None)
    return kind


def _item_type(kind: Any) -> Any:
    kind = _without_none(kind)
    return get_args(kind)[0] if get_origin(kind) is tuple else kind
