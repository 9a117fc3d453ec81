"""Validation of components and patch values on the agent side.

Theory of operation. Every component and patch value passes one of three functions before it reaches
a tree. `check_component` checks a whole component. `check_property` and `check_appended` check one
value of a patch; their cost depends on that value alone, not on the component. msgspec decides
whether a value fits a type. `explain` runs only after a refusal: it searches for the first misfit,
so that the error names its path, what is wrong and what is expected.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from arp.protocol.catalog import CATALOG, ComponentSpec, is_custom
from arp.protocol.components import CHILD, Component, as_object, from_object
from arp.protocol.errors import (
    ComponentUnsupported,
    InvalidComponent,
    InvalidMessage,
    InvalidPatch,
    ResourceLimit,
)
from arp.protocol.exact_integers import TOO_LARGE, numbers_of, rounded_at
from arp.protocol.json_value import Json, JsonObject, check_plain_json, is_plain_json, kind_of
from arp.protocol.limits import MAX_LEVELS
from arp.protocol.patch import Segments

MAX_FALLBACKS = 4
"""Longest chain of explicit fallbacks; the longest chain in the catalog has three types."""
MAX_ID_LENGTH = 128

_CACHED = 4096
"""Entries of each cache. The catalog has a few hundred paths; the rest are paths to nothing."""

_SHOWN = 60
"""Characters of a foreign name or value that an error message repeats."""


def check_component(
    value: Component | Json,
    where: str = "component",
    *,
    levels: int = MAX_LEVELS,
    empty_ids: bool = False,
    plain: bool = False,
    any_ids: bool = False,
) -> Component:
    """Check that a component, its children and its fallback fit the catalog.

    Args:
        value: A `Component`, or a component as a plain JSON object.
        where: Name of the component in error messages, for example `components[0]`.
        levels: Nesting levels allowed, including this component.
        empty_ids: Accept components without id; they get one when they are shown.
        plain: Skip the check that the props are plain JSON.
        any_ids: Accept ids with a slash, which only the agent side itself generates.

    Returns:
        The component. It shares its props with `value`, so `value` must not be changed afterwards.
        The alias `text` of a text component is renamed to `content`.

    Raises:
        InvalidComponent: It does not fit; the message begins with the path.
        ComponentUnsupported: The type is unknown, or a custom type has no fallback.
        ResourceLimit: Nested deeper than `levels`.

    Source: protocol.md 3.
    """
    check = _Check(empty_ids, any_ids)
    return check.component(value, where, levels, MAX_FALLBACKS, plain=plain)


def check_property(type_name: str, segments: Sequence[str | int], value: Json, where: str) -> Json:
    """Check that a value may be stored at a path below a component's `props`.

    The tree checks whether the path exists in the component, such as an index within its array.
    A rule that spans several props is checked only if a single patch could break it.

    Args:
        type_name: The component's type.
        segments: The path below `props`, as returned by `parse_path`.
        value: The value of the patch.
        where: Name of the value in error messages, for example `ops[2] update: props.rows.3`.

    Returns:
        The value to store: `value` itself, unless a child in it used an alias.

    Raises:
        InvalidPatch: No such prop, or the value does not fit.
        InvalidComponent, ComponentUnsupported, ResourceLimit: A component in the value does not
            fit.
    """
    spec = CATALOG.get(type_name)
    _check_plain(value, where, InvalidPatch)
    if spec is None:
        return value
    kind = _patched_type(spec, segments, where)
    if type_name == "chart":
        _check_exact(value, where, InvalidPatch)
    # A code block needs `code` or `tabs`. The type allows either to be empty, so an update of one
    # prop could leave a component that `check_component` would refuse.
    emptied = value is None or value == []
    if emptied and type_name == "code-block" and tuple(segments) in (("code",), ("tabs",)):
        raise InvalidPatch(f"{where}: a code-block needs code or tabs; use replace instead")
    return _checked_value(kind, value, where)


def check_appended(type_name: str, segments: Sequence[str | int], value: Json, where: str) -> Json:
    """Check that a value may be appended at a path: text to a string, an array to an array.

    Arguments and errors are those of `check_property`. To extend an array, `value` is the array of
    new items.
    """
    spec = CATALOG.get(type_name)
    _check_plain(value, where, InvalidPatch)
    kind = Any if spec is None else _patched_type(spec, segments, where)
    if type_name == "chart":
        _check_exact(value, where, InvalidPatch)
    wanted = []
    for option in options(kind):
        # Whether a string with bounds, such as a colour, still fits after an append depends on its
        # old value, which is not known here. Such strings cannot be appended to.
        if option in (str, Any) and not bounds(kind):
            wanted.append("string")
            if isinstance(value, str):
                return value
        if item_type(option) is not None or option is Any:
            wanted.append("array of new items")
            if isinstance(value, list):
                return value if option is Any else _checked_value(option, value, where)
    if not wanted:
        raise InvalidPatch(f"{where}: cannot be appended to; use update")
    raise InvalidPatch(f"{where}: expected {' or '.join(wanted)}, got {kind_of(value)}")


class _ComponentFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields that every component has, whatever its type."""

    id: str
    type: str
    props: JsonObject
    version: Annotated[int, msgspec.Meta(ge=1, description="a whole number from 1")] = 1
    fallback: Json = None


class _Check:
    """One check of a component and its descendants; it remembers the ids to find duplicates."""

    def __init__(self, empty_ids: bool, any_ids: bool = False) -> None:
        self._empty_ids = empty_ids
        self._any_ids = any_ids
        self._seen: set[str] = set()

    def component(
        self, value: Any, where: str, levels: int, fallbacks: int, *, plain: bool = False
    ) -> Component:
        component = _as_component(value, where)
        self._check_id(component.id, where)
        if levels <= 0:
            raise ResourceLimit(f"{where}: nested deeper than {MAX_LEVELS} levels")
        spec = _spec(component, where)
        props, fallback, in_props = component.props, component.fallback, f"{where}.props"
        if not plain:
            _check_plain(props, in_props, InvalidComponent)
        if spec is not None:
            props = self._props(spec, props, in_props, levels)
        if fallback is not None:
            if fallbacks <= 0:
                problem = f"{where}.fallback: more than {MAX_FALLBACKS} fallbacks in a row"
                raise ResourceLimit(problem)
            # No patch can address a component in a fallback, so its ids may be empty or equal to
            # ids outside of the fallback. A separate check therefore remembers them.
            alone = _Check(empty_ids=True)
            fallback = alone.component(fallback, f"{where}.fallback", levels, fallbacks - 1)
        if props is component.props and fallback is component.fallback:
            return component
        return Component(component.id, component.type, props, component.version, fallback)

    def children(self, kind: Any, value: Json, where: str, levels: int) -> Json:
        """Check every component in a value that fits its type.

        Returns:
            `value` itself, unless a child used an alias. In that case the arrays and objects around
            the child are copied, because the caller's objects must not change.
        """
        if not _holds_children(kind):
            return value
        if is_child(kind):
            checked = self.component(value, where, levels, MAX_FALLBACKS, plain=True)
            is_same = checked.props is value["props"] and value.get("fallback") is None
            return value if is_same or checked == from_object(value) else as_object(checked)
        item = item_type(kind)
        if item is not None and isinstance(value, list):
            items = [
                self.children(item, one, f"{where}[{index}]", levels)
                for index, one in enumerate(value)
            ]
            return value if all(map(_is_same, items, value)) else items
        for struct in _structs(kind):
            for name, hint in child_fields(struct).items():
                new = self.children(hint, value[name], f"{where}.{name}", levels)
                if new is not value[name]:
                    value = {**value, name: new}
        return value

    def _check_id(self, component_id: str, where: str) -> None:
        if component_id == "" and self._empty_ids:
            return
        if (
            not 0 < len(component_id) <= MAX_ID_LENGTH
            or ("/" in component_id and not self._any_ids)
            or not component_id.isprintable()
        ):
            raise InvalidComponent(
                f"{where}.id: expected 1…{MAX_ID_LENGTH} printable characters without /, "
                f"got {component_id!r:.60}"
            )
        if component_id in self._seen:
            raise InvalidComponent(f'{where}.id: "{component_id}" is used twice')
        self._seen.add(component_id)

    def _props(self, spec: ComponentSpec, props: JsonObject, where: str, levels: int) -> JsonObject:
        if spec.name == "text" and "text" in props:
            if "content" in props:
                problem = "is another name of content; give one of them"
                raise InvalidComponent(f"{where}.text: {problem}")
            props = {"content" if name == "text" else name: one for name, one in props.items()}
        if not fits(props, spec.props):
            raise InvalidComponent(explain(props, spec.props, where))
        for path, value in numbers_of(spec.name, props, where):
            _check_exact(value, path, InvalidComponent)
        if spec.slots is None:
            return props
        checked: JsonObject = self.children(spec.props, props, where, levels - 1)
        return checked


def _as_component(value: Any, where: str) -> Component:
    """Return a `Component` or a plain JSON object as a `Component` with fields of valid types.

    Raises:
        InvalidComponent: A field is missing, unknown or of the wrong type.
    """
    if isinstance(value, Component):
        # Structs accept any value in `__init__`, so the fields of an author's component need a
        # check. This fast path covers nearly all; the props are checked by the caller.
        if (
            type(value.id) is type(value.type) is str
            and type(value.props) is dict
            and type(value.version) is int
            and value.version >= 1
        ):
            return value
        try:
            msgspec.convert(value, _ComponentFields, from_attributes=True)
        except msgspec.ValidationError:
            value = msgspec.structs.asdict(value)
        else:
            return value
    elif fits(value, _ComponentFields):
        return Component(**value)
    raise InvalidComponent(explain(value, _ComponentFields, where))


def _spec(component: Component, where: str) -> ComponentSpec | None:
    """Return the spec of a core component; `None` for a custom component with a fallback.

    Raises:
        ComponentUnsupported: The type or version is unknown, or a custom type has no fallback.
    """
    spec = CATALOG.get(component.type)
    if spec is None:
        if not is_custom(component.type):
            custom = component.type.startswith(("x-", "s-"))
            hint = "; write x-vendor-name or s-name" if custom else nearest(component.type, CATALOG)
            raise ComponentUnsupported(f'{where}.type: no component "{component.type:.60}"{hint}')
        if component.fallback is None:
            raise ComponentUnsupported(
                f'{where}: "{component.type}" needs a fallback for renderers that do not know it'
            )
    elif component.version > spec.version:
        raise ComponentUnsupported(
            f"{where}.version: {spec.name} {component.version} is not known here, {spec.version} is"
        )
    return spec


def _check_plain(
    value: Json, where: str, refusal: type[InvalidComponent] | type[InvalidPatch]
) -> None:
    if is_plain_json(value):
        return
    try:
        check_plain_json(value, where)
    except InvalidMessage as error:
        raise refusal(error.message) from None


def _check_exact(
    value: Json, where: str, refusal: type[InvalidComponent] | type[InvalidPatch]
) -> None:
    if (path := rounded_at(value, where)) is not None:
        raise refusal(f"{path}: {TOO_LARGE}")


def _checked_value(kind: Any, value: Json, where: str) -> Json:
    """Return a value after checking its type and every component in it.

    Raises:
        InvalidPatch: The value does not fit the type.
    """
    if not fits(value, kind):
        raise InvalidPatch(explain(value, kind, where))
    return _Check(False).children(kind, value, where, MAX_LEVELS - 1)


# -- the type of the value at a path ---------------------------------------------------------------
# These functions walk over types, never over values: their cost does not depend on any component.


def _patched_type(spec: ComponentSpec, segments: Sequence[str | int], where: str) -> Any:
    """Return the type of the prop that a patch changes.

    Raises:
        InvalidPatch: There is no such prop, or it is a component with an id of its own.
    """
    # All items of an array have one type. With 0 for every index, the cache holds each path of the
    # catalog once, and not once per index.
    path = tuple(0 if isinstance(segment, int) else segment for segment in segments)
    found = type_at(spec.props, path)
    if found is not None:
        return found
    # Name the first segment without a type; the segments after it could only mislead.
    end = next(end for end in range(len(path)) if type_at(spec.props, path[: end + 1]) is None)
    holder, name = type_at(spec.props, path[:end]), segments[end]
    if is_child(holder):
        raise InvalidPatch(f"{where}: there is a component; patch it by its id")
    if spec.name == "text" and name == "text":
        raise InvalidPatch(f"{where}: is another name of props.content; patch that")
    hint = nearest(str(name), names_in(holder))
    raise InvalidPatch(f'{where}: {spec.name} has no "{name}" there{hint}')


@lru_cache(maxsize=_CACHED)
def type_at(kind: Any, path: Segments) -> Any | None:
    """Return the type of the value at a path below a type; `None` if there is no such path.

    A path cannot go through a component, because a component is patched by its own id.

    Args:
        kind: The type at which the path begins.
        path: The path, with 0 for every index.
    """
    if not path:
        return kind
    holder, last = type_at(kind, path[:-1]), path[-1]
    if holder is None or is_child(holder):
        return None
    for option in options(holder):
        if option is Any:
            return Any
        below = item_type(option) if isinstance(last, int) else _fields(option).get(last)
        if below is not None:
            return below
    return None


@lru_cache(maxsize=_CACHED)
def options(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union without their bounds; for other types, the type alone."""
    if get_origin(kind) is Annotated:
        return options(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(inner for member in get_args(kind) for inner in options(member))
    return (kind,)


@lru_cache(maxsize=_CACHED)
def bounds(kind: Any) -> tuple[msgspec.Meta, ...]:
    """Return the bounds of a type and of the members of a union."""
    if get_origin(kind) is Annotated:
        inner, *marks = get_args(kind)
        return (*(mark for mark in marks if isinstance(mark, msgspec.Meta)), *bounds(inner))
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(mark for member in get_args(kind) for mark in bounds(member))
    return ()


def is_child(kind: Any) -> bool:
    """Return whether a type is the type of a component."""
    return CHILD in bounds(kind)


def item_type(kind: Any) -> Any | None:
    """Return the type of the items if a type allows an array, else `None`."""
    return next((get_args(one)[0] for one in options(kind) if get_origin(one) in _ARRAYS), None)


def names_in(kind: Any) -> tuple[str, ...]:
    """Return the keys that an object of a type may have."""
    return tuple(name for struct in _structs(kind) for name in struct.__struct_encode_fields__)


@lru_cache(maxsize=_CACHED)
def child_fields(struct: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the fields of a Struct that may contain components, with their types."""
    return {name: hint for name, hint in _fields(struct).items() if _holds_children(hint)}


@lru_cache(maxsize=_CACHED)
def _holds_children(kind: Any) -> bool:
    item = item_type(kind)
    return (
        is_child(kind)
        or (item is not None and _holds_children(item))
        or any(child_fields(struct) for struct in _structs(kind))
    )


def _structs(kind: Any) -> Iterator[type[msgspec.Struct]]:
    return (one for one in options(kind) if _is_struct(one))


@lru_cache(maxsize=_CACHED)
def _fields(kind: Any) -> Mapping[str, Any]:
    """Return the fields of a Struct by their names on the wire; no fields for other types."""
    if not _is_struct(kind):
        return {}
    hints = get_type_hints(kind, include_extras=True)
    return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(kind)}


def _is_struct(option: Any) -> bool:
    return isinstance(option, type) and issubclass(option, msgspec.Struct)


def _is_same(new: Json, old: Json) -> bool:
    return new is old


# -- why a value does not fit ----------------------------------------------------------------------

_ARRAYS = (tuple, list)

_KINDS = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}
_ORDER = ("boolean", "number", "string", "array", "object", "null")


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value can be converted to a type."""
    try:
        if _is_struct(kind):
            msgspec.convert(value, kind)
        else:
            msgspec.convert({"value": value}, _holder(kind))
    except msgspec.ValidationError:
        return False
    return True


@lru_cache(maxsize=1024)
def _holder(kind: Any) -> type[msgspec.Struct]:
    """Return a Struct with one field of a type.

    msgspec caches how to check a Struct, but compiles any other type again on each call.
    """
    return msgspec.defstruct("Holder", [("value", kind)], frozen=True)


def explain(value: Any, kind: Any, where: str) -> str:
    """Return why a value does not fit a type.

    Args:
        value: A value that `msgspec.convert` refuses.
        kind: The type.
        where: Path of the value as its sender knows it, for example `components[0].props`.

    Returns:
        The path of the first misfit and the reason, for example
        `components[0].props.rows[3]: expected array, got number`.
    """
    # Descend to the innermost value that does not fit: that is the one that the sender must change.
    for option in options(kind):
        if isinstance(value, _ARRAYS) and get_origin(option) in _ARRAYS and not fits(value, option):
            index = _first_misfit(value, option)
            return explain(value[index], get_args(option)[0], f"{where}[{index}]")
        if isinstance(value, dict) and get_origin(option) is dict:
            for name, one in value.items():
                if type(name) is not str:
                    return f"{where}: object key {name!r:.{_SHOWN}} is not a string"
                for part, inner in zip((name, one), get_args(option), strict=True):
                    if not fits(part, inner):
                        return explain(part, inner, f"{where}.{name:.{_SHOWN}}")
    structs = list(_structs(kind))
    if structs and isinstance(value, dict):
        return _explain_object(value, structs, where)
    return f"{where}: {_reason(value, kind)}"


def check_fields(settings: msgspec.Struct) -> None:
    """Check the field values of a Struct that a program created; `__init__` accepts any value.

    Raises:
        ValueError: A value does not fit its field; the message names the field.
    """
    for name, kind in _fields(type(settings)).items():
        value, where = getattr(settings, name), f"{type(settings).__name__}.{name}"
        if isinstance(value, dict):
            raise ValueError(f"{where}: expected {kind.__name__}(…), got a dict")
        try:
            msgspec.convert(value, kind)  # not `fits`, which caches a Struct for each type
        except msgspec.ValidationError:
            raise ValueError(explain(value, kind, where)) from None


def _first_misfit(items: Sequence[Any], kind: Any) -> int:
    """Return the index of the first item that does not fit, by binary search."""
    low, high = 0, len(items)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(items[low:middle], kind):
            low = middle
        else:
            high = middle
    return low


def _explain_object(value: JsonObject, structs: list[type[msgspec.Struct]], where: str) -> str:
    struct = structs[0]
    tag = struct.__struct_config__.tag_field
    if tag is not None and tag in value:
        by_tag = {one.__struct_config__.tag: one for one in structs}
        if value[tag] not in list(by_tag):
            return f"{where}.{tag}: {_no_word(value[tag], by_tag)}"
        struct = by_tag[value[tag]]
    elif len(structs) > 1:
        return f"{where}.{tag}: missing"
    known = _fields(struct)
    for name, one in value.items():
        if name in known:
            if not fits(one, known[name]):
                return explain(one, known[name], f"{where}.{name}")
        elif struct.__struct_config__.forbid_unknown_fields and name != tag:
            return f"{where}.{name!s:.{_SHOWN}}: unknown{nearest(str(name), known)}"
    for field in msgspec.structs.fields(struct):
        if field.required and field.encode_name not in value:
            return f"{where}.{field.encode_name}: missing"
    try:
        msgspec.convert(value, struct)
    except msgspec.ValidationError as error:
        # Every field fits, so a rule of `__post_init__` failed: its `ValueError` says why.
        return f"{where}: {error.__cause__ or error}"
    return f"{where}: does not fit"


def _reason(value: Any, kind: Any) -> str:
    """Return why a value does not fit, regardless of the values inside it."""
    got = kind_of(value)
    words = [word for option in options(kind) for word in _words(option)]
    taken = {name for option in options(kind) for name in _kinds(option)}
    if got not in taken:
        *most, last = [name for name in _ORDER if name in taken] or ["another kind of value"]
        return f"expected {', '.join(most)}{' or ' if most else ''}{last}, got {got}"
    if words:
        return _no_word(value, words)
    if isinstance(value, float) and float not in options(kind):
        return "expected whole number, got fraction"
    wanted = dict.fromkeys(mark.description for mark in bounds(kind) if mark.description)
    return f"expected {' or '.join(wanted)}" if wanted else f"{value!r:.{_SHOWN}} does not fit"


def _no_word(value: Any, words: Iterable[Any]) -> str:
    return f"{value!r:.{_SHOWN}} is not one of {', '.join(map(str, words))}"


def _words(option: Any) -> tuple[Any, ...]:
    """Return the values of a `Literal` or an enum; none for other types."""
    if get_origin(option) is Literal:
        return get_args(option)
    if isinstance(option, type) and issubclass(option, Enum):
        return tuple(one.value for one in option)
    return ()


def _kinds(option: Any) -> Iterable[str]:
    """Return the kinds of JSON values that a type accepts."""
    if words := _words(option):
        return map(kind_of, words)
    if get_origin(option) in _ARRAYS:
        return ("array",)
    if get_origin(option) is dict or _is_struct(option):
        return ("object",)
    return (_KINDS[option],) if option in _KINDS else ()


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: the closest known name, or all known names.

    The hint begins with `; `; it is empty if there are no known names.
    """
    from difflib import get_close_matches  # only needed after a mistake

    names = list(known)
    close = get_close_matches(name[:64], names, 1)
    if close:
        return f'; did you mean "{close[0]}"?'
    return f"; known are {', '.join(names)}" if names else ""
