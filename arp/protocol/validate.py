"""The border that components and patch values pass on the agent side: nothing unvalidated gets in.

`check_component` looks at a whole component, `check_property` and `check_appended` at one value
that a patch puts somewhere; the cost of those two follows the value. msgspec decides what fits a
type. Only after it has refused a value does `explain` look for the place and the words, so that
every refusal names the path, what was wrong and what would fit.
"""

from __future__ import annotations

import difflib
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
from arp.protocol.json_value import Json, JsonObject, check_plain_json, kind_of
from arp.protocol.limits import MAX_LEVELS
from arp.protocol.patch import Segments

MAX_FALLBACKS = 4
"""Longest chain of components' own fallbacks; the longest chain of the catalog has three types."""
MAX_ID_LENGTH = 128

_CACHED = 4096
"""All paths of the catalog are a few hundred; the rest are paths that lead nowhere."""

_SHOWN = 60
"""How many characters of a foreign name or value a message repeats."""


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
        value: A `Component`, or the plain object of the wire.
        where: How error messages name it: `components[0]`, say.
        levels: How many levels of components may stand here, this one counted.
        empty_ids: Components without id pass; they get one when they are shown.
        plain: The props are known to be plain JSON.
        any_ids: Ids may have a slash, as those that the agent side itself makes.

    Returns:
        The component; it shares its props with `value`, which nobody may change afterwards. The
        alias `text` of a text component has become `content`.

    Raises:
        InvalidComponent: It does not fit; the message begins with the path.
        ComponentUnsupported: A type that is not known, or a custom one without fallback.
        ResourceLimit: Nested deeper than `levels`.

    Source: protocol.md 3.
    """
    check = _Check(empty_ids, any_ids)
    return check.component(value, where, levels, MAX_FALLBACKS, plain=plain)


def check_property(type_name: str, segments: Sequence[str | int], value: Json, where: str) -> Json:
    """Check that a value may be put at a path below a component's `props`.

    Whether the path leads anywhere in that very component (an index within its array) is the
    tree's to know. A rule that spans several props holds where one patch could break it.

    Args:
        type_name: The component's type.
        segments: The path behind `props`, as `parse_path` gives it.
        value: What the patch puts there.
        where: How error messages name the value: `ops[2] update: props.rows.3`, say.

    Returns:
        The value to put: `value` itself, unless a child in it used an alias.

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
    emptied = value is None or value == []
    if emptied and type_name == "code-block" and tuple(segments) in (("code",), ("tabs",)):
        raise InvalidPatch(f"{where}: a code-block needs code or tabs; use replace instead")
    return _fitting(kind, value, where)


def check_appended(type_name: str, segments: Sequence[str | int], value: Json, where: str) -> Json:
    """Check that a value may extend what is at a path: a string a string, items an array.

    Args and errors are those of `check_property`; to extend an array, `value` is an array of its
    new items.
    """
    spec = CATALOG.get(type_name)
    _check_plain(value, where, InvalidPatch)
    kind = Any if spec is None else _patched_type(spec, segments, where)
    if type_name == "chart":
        _check_exact(value, where, InvalidPatch)
    wanted = []
    for option in options(kind):
        if option in (str, Any) and not bounds(kind):
            wanted.append("string")
            if isinstance(value, str):
                return value
        if item_type(option) is not None or option is Any:
            wanted.append("array of new items")
            if isinstance(value, list):
                return value if option is Any else _fitting(option, value, where)
    if not wanted:
        raise InvalidPatch(f"{where}: cannot be appended to; use update")
    raise InvalidPatch(f"{where}: expected {' or '.join(wanted)}, got {kind_of(value)}")


class _Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every component has, before its type is looked at."""

    id: str
    type: str
    props: JsonObject
    version: Annotated[int, msgspec.Meta(ge=1, description="a whole number from 1")] = 1
    fallback: Json = None


class _Check:
    """One run over a component and all in it."""

    def __init__(self, empty_ids: bool, any_ids: bool = False) -> None:
        self._empty_ids = empty_ids
        self._any_ids = any_ids
        self._seen: set[str] = set()

    def component(
        self, value: Any, where: str, levels: int, fallbacks: int, *, plain: bool = False
    ) -> Component:
        made = _made(value, where)
        self._check_id(made.id, where)
        if levels <= 0:
            raise ResourceLimit(f"{where}: nested deeper than {MAX_LEVELS} levels")
        spec = _spec(made, where)
        props, fallback = made.props, made.fallback
        if not plain:
            _check_plain(props, f"{where}.props", InvalidComponent)
        if spec is not None:
            props = self._props(spec, props, f"{where}.props", levels)
        if fallback is not None:
            if fallbacks <= 0:
                problem = f"{where}.fallback: more than {MAX_FALLBACKS} fallbacks in a row"
                raise ResourceLimit(problem)
            # No patch names what is in a fallback, so its ids are its own and may be empty.
            alone = _Check(empty_ids=True)
            fallback = alone.component(fallback, f"{where}.fallback", levels, fallbacks - 1)
        if props is made.props and fallback is made.fallback:
            return made
        return Component(made.id, made.type, props, made.version, fallback)

    def children(self, kind: Any, value: Json, where: str, levels: int) -> Json:
        """Check every component that stands directly in a value, which fits its type.

        Returns:
            `value` itself, unless an alias was found below; then what holds it is copied.
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
        for place, value in numbers_of(spec.name, props, where):
            _check_exact(value, place, InvalidComponent)
        if spec.slots is None:
            return props
        checked: JsonObject = self.children(spec.props, props, where, levels - 1)
        return checked


def _made(value: Any, where: str) -> Component:
    """Return a component, or the plain object of one, as a `Component` with fields that fit."""
    if isinstance(value, Component):
        if (
            type(value.id) is type(value.type) is str
            and type(value.props) is dict
            and type(value.version) is int
            and value.version >= 1
        ):
            return value  # as nearly all do; what is in the props is looked at below
        try:
            msgspec.convert(value, _Given, from_attributes=True)
        except msgspec.ValidationError:
            value = msgspec.structs.asdict(value)
        else:
            return value
    elif fits(value, _Given):
        return Component(**value)
    raise InvalidComponent(explain(value, _Given, where))


def _spec(component: Component, where: str) -> ComponentSpec | None:
    """Return the spec of a core component; `None` for a custom one, which has a fallback."""
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
    try:
        check_plain_json(value, where)
    except InvalidMessage as error:
        raise refusal(error.message) from None


def _check_exact(
    value: Json, where: str, refusal: type[InvalidComponent] | type[InvalidPatch]
) -> None:
    if (place := rounded_at(value, where)) is not None:
        raise refusal(f"{place}: {TOO_LARGE}")


def _fitting(kind: Any, value: Json, where: str) -> Json:
    """Return a value that fits a type, with every component in it checked."""
    if not fits(value, kind):
        raise InvalidPatch(explain(value, kind, where))
    return _Check(False).children(kind, value, where, MAX_LEVELS - 1)


# -- what can stand at a path ----------------------------------------------------------------------
# The walk is over types, never over values, so its cost does not depend on any component.


def _patched_type(spec: ComponentSpec, segments: Sequence[str | int], where: str) -> Any:
    # All items of an array are of one type: so each path of the catalog is kept once.
    path = tuple(0 if isinstance(segment, int) else segment for segment in segments)
    found = type_at(spec.props, path)
    if found is not None:
        return found
    end = next(end for end in range(len(path)) if type_at(spec.props, path[: end + 1]) is None)
    holder, name = type_at(spec.props, path[:end]), segments[end]
    if is_child(holder):
        raise InvalidPatch(f"{where}: a component stands there; patch it by its id")
    if spec.name == "text" and name == "text":
        raise InvalidPatch(f"{where}: is another name of props.content; patch that")
    hint = nearest(str(name), names_in(holder))
    raise InvalidPatch(f'{where}: {spec.name} has no "{name}" there{hint}')


@lru_cache(maxsize=_CACHED)
def type_at(kind: Any, path: Segments) -> Any | None:
    """Return the type of what stands at a path below a type; `None` if nothing can stand there.

    A path ends at a component, which has an id of its own. Every index in it is 0.
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
    """Return the members of a union, bounds stripped; a type that is no union gives itself."""
    if get_origin(kind) is Annotated:
        return options(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(inner for member in get_args(kind) for inner in options(member))
    return (kind,)


@lru_cache(maxsize=_CACHED)
def bounds(kind: Any) -> tuple[msgspec.Meta, ...]:
    """Return the bounds that stand on a type or on the members of a union."""
    if get_origin(kind) is Annotated:
        inner, *marks = get_args(kind)
        return (*(mark for mark in marks if isinstance(mark, msgspec.Meta)), *bounds(inner))
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(mark for member in get_args(kind) for mark in bounds(member))
    return ()


def is_child(kind: Any) -> bool:
    """Return whether a whole component stands there."""
    return CHILD in bounds(kind)


def item_type(kind: Any) -> Any | None:
    """Return the type of the items if an array can stand there, else `None`."""
    return next((get_args(one)[0] for one in options(kind) if get_origin(one) in _ARRAYS), None)


def names_in(kind: Any) -> tuple[str, ...]:
    """Return the keys that an object there may have."""
    return tuple(name for struct in _structs(kind) for name in struct.__struct_encode_fields__)


@lru_cache(maxsize=_CACHED)
def child_fields(struct: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the fields of a Struct below which components can stand, with their types."""
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
    """Return the fields of a Struct by their names on the wire; none of any other type."""
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
    """Return a Struct around a type: msgspec remembers of Structs alone how to check them."""
    return msgspec.defstruct("Holder", [("value", kind)], frozen=True)


def explain(value: Any, kind: Any, where: str) -> str:
    """Return why a value does not fit a type.

    Args:
        value: What `msgspec.convert` refuses.
        kind: The type.
        where: How the sender knows the value: `components[0].props`, say.

    Returns:
        For instance `components[0].props.rows[3]: expected array, got number`.
    """
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
    """Check the values with which a program made a Struct, since `__init__` takes any.

    Raises:
        ValueError: One does not fit its field; the message names it.
    """
    for name, kind in _fields(type(settings)).items():
        value, where = getattr(settings, name), f"{type(settings).__name__}.{name}"
        if isinstance(value, dict):
            raise ValueError(f"{where}: expected {kind.__name__}(…), got a dict")
        try:
            msgspec.convert(value, kind)  # not `fits`, which is for many values of one type
        except msgspec.ValidationError:
            raise ValueError(explain(value, kind, where)) from None


def _first_misfit(items: Sequence[Any], kind: Any) -> int:
    """Return the index of the first item that does not fit; by halves, since arrays may be long."""
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
        return f"{where}: {error.__cause__ or error}"  # a rule across fields, in its own words
    return f"{where}: does not fit"


def _reason(value: Any, kind: Any) -> str:
    """Return why a value does not fit that holds no other one to blame."""
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
    """Return the values of a closed list."""
    if get_origin(option) is Literal:
        return get_args(option)
    if isinstance(option, type) and issubclass(option, Enum):
        return tuple(one.value for one in option)
    return ()


def _kinds(option: Any) -> Iterable[str]:
    """Return the kinds of JSON values that a type takes."""
    if words := _words(option):
        return map(kind_of, words)
    if get_origin(option) in _ARRAYS:
        return ("array",)
    if get_origin(option) is dict or _is_struct(option):
        return ("object",)
    return (_KINDS[option],) if option in _KINDS else ()


def nearest(name: str, known: Iterable[str]) -> str:
    """Say what somebody who wrote `name` may have meant, beginning with `; `, or nothing."""
    names = list(known)
    close = difflib.get_close_matches(name[:64], names, 1)
    if close:
        return f'; did you mean "{close[0]}"?'
    return f"; known are {', '.join(names)}" if names else ""
