"""Values of enums in requests: which are allowed, and what is told of one that is not.

Over a transport a decoder refuses them, in this process nothing does: Structs are not checked when
they are made. Both say the same: `response.decision: expected one of allow, deny; got 'maybe'`.
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

_REFUSED = re.compile(r"Invalid enum value (?P<got>.+?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL)
"""What msgspec says of a value that is none of an enum or a `Literal`."""
_STEP = re.compile(r"\.(\w+)|\[([^\]]*)\]")
MAX_SHOWN = 80
"""Characters of a refused value that are quoted."""


def refusal_of(error: Exception, kind: type) -> str:
    """Return what a decoder of a type has refused; of a value of an enum, with the allowed ones."""
    refused = _REFUSED.search(str(error))
    if refused is None:
        return str(error)
    path = refused["path"] or ""
    for name, _ in _STEP.findall(path):
        kind = _inner(kind, name)
    return told(path.lstrip("."), allowed(kind), refused["got"])


def told(place: str, values: tuple[str, ...], got: str) -> str:
    """Return the text for a value that is not allowed."""
    shown = got if len(got) <= MAX_SHOWN else got[:MAX_SHOWN] + "…"
    expected = f"expected one of {', '.join(values)}; got {shown}"
    return f"{place}: {expected}" if place else expected


def check_values(request: msgspec.Struct) -> None:
    """Raise for a value of an enum that there is not, anywhere in a request.

    Raises:
        InvalidArgument: It is so; the message names the field and the allowed values.
    """
    for place, values, got in _wrong(request, ""):
        raise InvalidArgument(told(place, values, repr(got)))


def _wrong(value: msgspec.Struct, place: str) -> Iterator[tuple[str, tuple[str, ...], object]]:
    for name, kind in _fields(type(value)):
        found, here = getattr(value, name), f"{place}{name}"
        several = found if isinstance(found, tuple) else (found,)
        for number, one in enumerate(several):
            at = f"{here}[{number}]" if isinstance(found, tuple) else here
            if isinstance(one, msgspec.Struct):
                yield from _wrong(one, f"{at}.")
            elif (values := allowed(kind)) and one is not None and one not in values:
                yield at, values, one


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Return the fields that have a value of an enum, or other Structs."""
    found = []
    for info in msgspec.structs.fields(struct):
        kind = _item(info.type)
        is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
        if is_struct or allowed(kind):
            found.append((info.name, kind))
    return tuple(found)


def allowed(kind: Any) -> tuple[str, ...]:
    """Return the values of an enum or a `Literal`; none for any other type."""
    if get_origin(kind) is Literal:
        return tuple(map(str, get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(str(one.value) for one in kind)
    return ()


def _inner(kind: Any, name: str) -> Any:
    """Return the type of a field of a Struct; without a name the kind of items."""
    if name and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        kind = next((one.type for one in fields if one.encode_name == name), None)
        return _present(kind)
    return _item(kind)


def _present(kind: Any) -> Any:
    """Return a type without `None`."""
    if get_origin(kind) in (Union, types.UnionType):
        kind = next((one for one in get_args(kind) if one is not type(None)), None)
    return kind


def _item(kind: Any) -> Any:
    kind = _present(kind)
    return get_args(kind)[0] if get_origin(kind) is tuple else kind
