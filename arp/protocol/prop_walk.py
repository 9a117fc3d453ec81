"""Follows a path through the types of props: which type stands there, what names would fit.

The walk is over types, never over values, so its cost does not depend on any component; results
are kept by (type, path with every index as 0).
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from arp.protocol.json_value import Json
from arp.protocol.prop_types import CHILD

Segments: TypeAlias = tuple[str | int, ...]

_CACHED = 4096
"""All paths of the catalog are a few hundred; the rest are paths that lead nowhere."""


class NoSuchProp(Exception):
    """A path leads nowhere; an outcome of the walk, which its callers put into words."""

    def __init__(self, at: int, known: tuple[str, ...], *, in_child: bool) -> None:
        super().__init__(at, known)
        self.at = at
        """The number of the segment that does not fit."""
        self.known = known
        """The names that would have fitted there."""
        self.in_child = in_child
        """Whether a component of its own stands there, with an id of its own."""


@lru_cache(maxsize=_CACHED)
def type_at(root: Any, segments: Segments) -> Any:
    """Return the annotation of what stands at a path below a type.

    Args:
        root: A Struct type or another annotation.
        segments: Names and indexes; use `normalised` so that equal walks are kept once.

    Raises:
        NoSuchProp: Nothing can stand there.
    """
    here = root
    for number, segment in enumerate(segments):
        if is_child(here):
            raise NoSuchProp(number, (), in_child=True)
        below = [_below(option, segment) for option in options(here)]
        found = [annotation for annotation in below if annotation is not None]
        if not found:
            raise NoSuchProp(number, names_in(here), in_child=False)
        here = found[0]
    return here


def normalised(segments: Sequence[str | int]) -> Segments:
    """Return a path with every index as 0: all items of an array are of one type."""
    return tuple(0 if isinstance(segment, int) else segment for segment in segments)


@lru_cache(maxsize=_CACHED)
def options(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, bounds stripped; a type that is no union gives itself."""
    if get_origin(annotation) is Annotated:
        return options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(inner for member in get_args(annotation) for inner in options(member))
    return (annotation,)


@lru_cache(maxsize=_CACHED)
def bounds(annotation: Any) -> tuple[msgspec.Meta, ...]:
    """Return the bounds that stand on a type or on the members of a union."""
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        return (*(mark for mark in marks if isinstance(mark, msgspec.Meta)), *bounds(inner))
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(mark for member in get_args(annotation) for mark in bounds(member))
    return ()


def is_child(annotation: Any) -> bool:
    """Return whether a whole component stands there."""
    return any(mark is CHILD for mark in bounds(annotation))


def item_type(annotation: Any) -> Any | None:
    """Return the type of the items if an array can stand there, else `None`."""
    for option in options(annotation):
        if get_origin(option) is tuple:
            return get_args(option)[0]
    return None


def names_in(annotation: Any) -> tuple[str, ...]:
    """Return the keys that an object there may have."""
    return tuple(
        name
        for option in options(annotation)
        if _is_struct(option)
        for name in option.__struct_encode_fields__
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Say what somebody who wrote `name` may have meant, beginning with `; `, or nothing."""
    names = list(known)
    close = difflib.get_close_matches(name[:64], names, 1)
    if close:
        return f'; did you mean "{close[0]}"?'
    return f"; known are {', '.join(names)}" if names else ""


def map_children(
    annotation: Any, value: Json, where: str, visit: Callable[[Json, str], Json]
) -> Json:
    """Put `visit(child, where)` in the place of every component that stands directly in a value.

    Args:
        annotation: The type of `value`, which fits it.
        value: Not changed; where a visit gives another object, its holders are copied.
        where: The path of `value`, for `visit`.
        visit: Not called for components inside of components.

    Returns:
        `value` itself if every visit gave back what it got.
    """
    if is_child(annotation):
        return visit(value, where)
    inner = item_type(annotation)
    if inner is not None and isinstance(value, list):
        items = [
            map_children(inner, item, f"{where}[{index}]", visit)
            for index, item in enumerate(value)
        ]
        return value if all(map(_same, items, value)) else items
    for option in options(annotation):
        if _is_struct(option):
            changed = {
                name: new
                for name, hint in child_fields(option).items()
                if (new := map_children(hint, value[name], f"{where}.{name}", visit))
                is not value[name]
            }
            return {**value, **changed} if changed else value
    return value


@lru_cache(maxsize=_CACHED)
def child_fields(struct: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the fields of a Struct below which components can stand, with their types."""
    return {name: hint for name, hint in _hints(struct).items() if _holds_children(hint)}


def _holds_children(annotation: Any) -> bool:
    if is_child(annotation):
        return True
    inner = item_type(annotation)
    return (inner is not None and _holds_children(inner)) or any(
        _is_struct(option) and bool(child_fields(option)) for option in options(annotation)
    )


def _below(option: Any, segment: str | int) -> Any | None:
    if option is Any:
        return Any
    if isinstance(segment, int):
        return item_type(option)
    return _hints(option).get(segment) if _is_struct(option) else None


@lru_cache(maxsize=_CACHED)
def _hints(struct: type[msgspec.Struct]) -> Mapping[str, Any]:
    hints = get_type_hints(struct, include_extras=True)
    return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(struct)}


def _is_struct(option: Any) -> bool:
    return isinstance(option, type) and issubclass(option, msgspec.Struct)


def _same(new: Json, old: Json) -> bool:
    return new is old
