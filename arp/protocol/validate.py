"""The border that components and patch values pass on the agent side: nothing unvalidated gets in.

`check_component` looks at a whole component, `check_property` and `check_appended` at one value
that a patch puts somewhere; the cost of those two follows the value. Every refusal names the path.
"""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from arp.protocol.catalog import CATALOG, ComponentSpec, is_custom
from arp.protocol.components import CHILD, Component, as_object
from arp.protocol.errors import (
    ComponentUnsupported,
    InvalidComponent,
    InvalidMessage,
    InvalidPatch,
    ResourceLimit,
)
from arp.protocol.json_value import Json, JsonObject, check_plain_json, is_plain_json, kind_of
from arp.protocol.limits import Limits

MAX_LEVELS = Limits().max_component_depth
MAX_FALLBACKS = 4
"""Longest chain of components' own fallbacks; the longest chain of the catalog has three types."""
MAX_ID_LENGTH = 128
MAX_SEGMENTS = 16
MAX_SEGMENT_LENGTH = 64
MAX_INDEX_DIGITS = 9

_KEYS = ("id", "type", "props", "version", "fallback")
_FORBIDDEN_SEGMENTS = frozenset(("constructor", "prototype"))
_INDEX = re.compile(r"[0-9]+")


def check_component(
    value: Component | Json,
    where: str = "component",
    *,
    levels: int = MAX_LEVELS,
    empty_ids: bool = False,
) -> Component:
    """Guarantees that a component, its children and its fallback fit the catalog.

    Args:
        value: A `Component`, or the plain object of the wire.
        where: How error messages name it: `components[0]`, say.
        levels: How many levels of components may stand here, this one counted.
        empty_ids: Lets components without id pass; who shows them gives them one.

    Returns:
        The component; it shares its props with `value`, which nobody may change afterwards. The
        alias `text` of a text component has become `content`.

    Raises:
        InvalidComponent: It does not fit; the message begins with the path.
        ComponentUnsupported: A type that is not known, or a custom one without fallback.
        ResourceLimit: Nested deeper than `levels`.

    Source: protocol.md 3.
    """
    return _Check(empty_ids).component(value, where, levels, MAX_FALLBACKS)


def check_property(type_name: str, segments: Sequence[str | int], value: Json, where: str) -> Json:
    """Guarantees that a value may stand at a path below a component's `props`.

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
    _check_plain_value(value, where)
    if spec is None:
        return value
    annotation = _patched_type(spec, segments, where)
    emptied = value is None or value == []
    if emptied and type_name == "code-block" and tuple(segments) in (("code",), ("tabs",)):
        raise InvalidPatch(f"{where}: a code-block needs code or tabs; use replace instead")
    return _fitting(annotation, value, where)


def check_appended(type_name: str, segments: Sequence[str | int], value: Json, where: str) -> Json:
    """Guarantees that a value may extend what stands at a path: a string a string, items an array.

    Args and errors are those of `check_property`; to extend an array, `value` is an array of its
    new items.
    """
    spec = CATALOG.get(type_name)
    _check_plain_value(value, where)
    annotation = Any if spec is None else _patched_type(spec, segments, where)
    wanted = []
    for option in options(annotation):
        if option in (str, Any) and not bounds(annotation):
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


def parse_path(path: str) -> Segments:
    """Split the path of a patch into names and indexes, without the leading `props`.

    Raises:
        InvalidPatch: It does not begin with `props`, names nothing in it, is too long, or has a
            segment that is empty, begins with `_`, is `constructor` or `prototype`, or is an index
            in another form than `0`, `1`, `2` …

    Source: protocol.md 4.
    """
    shown = f"path {path!r:.80}"
    root, *names = path.split(".", MAX_SEGMENTS + 1)
    if root != "props":
        raise InvalidPatch(f'{shown}: begins with "props", then a dot')
    if not names:
        raise InvalidPatch(f'{shown}: names no property; write "props.NAME", or use replace')
    if len(names) > MAX_SEGMENTS:
        raise InvalidPatch(f"{shown}: more than {MAX_SEGMENTS} segments")
    return tuple(_segment(name, shown) for name in names)


def _segment(name: str, shown: str) -> str | int:
    if not name:
        raise InvalidPatch(f"{shown}: has an empty segment")
    if len(name) > MAX_SEGMENT_LENGTH:
        raise InvalidPatch(f"{shown}: a segment has more than {MAX_SEGMENT_LENGTH} characters")
    if name.startswith("_") or name in _FORBIDDEN_SEGMENTS:
        raise InvalidPatch(f'{shown}: the segment "{name}" is not allowed')
    if _INDEX.fullmatch(name) is None:
        return name
    if name[0] == "0" and name != "0":
        raise InvalidPatch(f'{shown}: the index "{name}" begins with 0; write "{int(name)}"')
    if len(name) > MAX_INDEX_DIGITS:
        raise InvalidPatch(f'{shown}: the index "{name}" is too large')
    return int(name)


class _Check:
    """One run over a component and all in it."""

    def __init__(self, empty_ids: bool) -> None:
        self._empty_ids = empty_ids
        self._seen: set[str] = set()
        self.rewrote = False
        """Whether an alias was found, so that what holds it must be written anew."""

    def component(
        self, value: Any, where: str, levels: int, fallbacks: int, *, plain: bool = False
    ) -> Component:
        component = value if type(value) is Component else _component_of(value, where)
        _check_frame(component, where)
        self._check_id(component.id, where)
        if levels <= 0:
            raise ResourceLimit(f"{where}: nested deeper than {MAX_LEVELS} levels")
        spec = _spec(component, where)
        props = component.props
        if not plain:
            _check_plain(props, f"{where}.props")
        if spec is not None:
            props = self._props(spec, props, f"{where}.props", levels)
        fallback = component.fallback
        if fallback is not None:
            fallback = self._fallback(fallback, f"{where}.fallback", levels, fallbacks)
        if props is component.props and fallback is component.fallback:
            return component
        return Component(component.id, component.type, props, component.version, fallback)

    def children(self, annotation: Any, value: Json, where: str, levels: int) -> Json:
        """Check every component that stands directly in a value, which fits its type."""

        def visit(child: Json, place: str) -> Json:
            before, self.rewrote = self.rewrote, False
            checked = self.component(child, place, levels, MAX_FALLBACKS, plain=True)
            rewrote, self.rewrote = self.rewrote, self.rewrote or before
            return as_object(checked) if rewrote else child

        return map_children(annotation, value, where, visit)

    def _check_id(self, component_id: str, where: str) -> None:
        if component_id == "" and self._empty_ids:
            return
        if (
            not 0 < len(component_id) <= MAX_ID_LENGTH
            or "/" in component_id
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
            props = _without_alias(props, where)
            self.rewrote = True
        try:
            msgspec.convert(props, spec.props)
        except msgspec.ValidationError as error:
            raise InvalidComponent(explain(error, spec.props, where)) from None
        if spec.slots is None:
            return props
        checked: JsonObject = self.children(spec.props, props, where, levels - 1)
        return checked

    def _fallback(self, fallback: Component, where: str, levels: int, fallbacks: int) -> Component:
        """Check a fallback by itself: no patch names what is in it, so ids may be empty."""
        if fallbacks <= 0:
            raise ResourceLimit(f"{where}: more than {MAX_FALLBACKS} fallbacks in a row")
        alone = _Check(empty_ids=True)
        checked = alone.component(fallback, where, levels, fallbacks - 1)
        self.rewrote = self.rewrote or alone.rewrote
        return checked


def _component_of(value: Json, where: str) -> Component:
    """Return the plain object of the wire as a `Component` whose fields are not checked yet."""
    if type(value) is not dict:
        raise InvalidComponent(f"{where}: expected object, got {kind_of(value)}")
    for key in value:
        if key not in _KEYS:
            raise InvalidComponent(f"{where}.{key!s:.60}: unknown{nearest(str(key), _KEYS)}")
    for key in ("id", "type", "props"):
        if key not in value:
            raise InvalidComponent(f"{where}.{key}: missing")
    version, fallback = value.get("version", 1), value.get("fallback")
    return Component(value["id"], value["type"], value["props"], version, fallback)


def _check_frame(component: Component, where: str) -> None:
    if type(component.id) is not str:
        raise InvalidComponent(f"{where}.id: expected string, got {kind_of(component.id)}")
    if type(component.type) is not str:
        raise InvalidComponent(f"{where}.type: expected string, got {kind_of(component.type)}")
    if type(component.props) is not dict:
        raise InvalidComponent(f"{where}.props: expected object, got {kind_of(component.props)}")
    if type(component.version) is not int or component.version < 1:
        raise InvalidComponent(f"{where}.version: expected a whole number from 1")


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


def _without_alias(props: JsonObject, where: str) -> JsonObject:
    if "content" in props:
        raise InvalidComponent(f"{where}.text: is another name of content; give one of them")
    return {"content": props["text"], **{k: v for k, v in props.items() if k != "text"}}


def _check_plain(props: JsonObject, where: str) -> None:
    if not is_plain_json(props):
        try:
            check_plain_json(props, where)
        except InvalidMessage as error:
            raise InvalidComponent(error.message) from None


def _check_plain_value(value: Json, where: str) -> None:
    if not is_plain_json(value):
        try:
            check_plain_json(value, where)
        except InvalidMessage as error:
            raise InvalidPatch(error.message) from None


def _patched_type(spec: ComponentSpec, segments: Sequence[str | int], where: str) -> Any:
    try:
        return type_at(spec.props, normalised(segments))
    except NoSuchProp as stop:
        name = segments[stop.at]
        if stop.in_child:
            raise InvalidPatch(f"{where}: a component stands there; patch it by its id") from None
        if spec.name == "text" and name == "text":
            raise InvalidPatch(f"{where}: is another name of props.content; patch that") from None
        hint = nearest(str(name), stop.known)
        raise InvalidPatch(f'{where}: {spec.name} has no "{name}" there{hint}') from None


def _fitting(annotation: Any, value: Json, where: str) -> Json:
    """Return a value that fits a type, with every component in it checked."""
    try:
        msgspec.convert({"value": value}, _holder(annotation))
    except msgspec.ValidationError as error:
        raise InvalidPatch(explain(error, _holder(annotation), where, "value")) from None
    return _Check(False).children(annotation, value, where, MAX_LEVELS - 1)


@lru_cache(maxsize=1024)
def _holder(annotation: Any) -> type[msgspec.Struct]:
    """Return a Struct around a type: msgspec remembers of Structs alone how to check them."""
    return msgspec.defstruct("Holder", [("value", annotation)], frozen=True)


_PLACE = re.compile(r"(.*) - at `\$([^`]*)`", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_WRONG_KIND = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_NO_SUCH_WORD = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_KINDS = {"int": "number", "float": "number", "str": "string", "bool": "boolean"}
_SHOWN = 60
"""How many characters of a foreign name or value a message repeats."""


def explain(error: msgspec.ValidationError, root: Any, where: str, cut: str = "") -> str:
    """Translates a refusal of `msgspec.convert(value, root)`.

    Args:
        error: What `convert` raised.
        root: The type that the value did not fit.
        where: How the sender knows the value: `components[0].props`, say.
        cut: The field of `root` that `where` stands for; empty for `root` as a whole.

    Returns:
        For instance `components[0].props.rows[3]: expected array, got number`.
    """
    found = _PLACE.fullmatch(str(error))
    reason, path = found.groups() if found else (str(error), "")
    place = where + (path.removeprefix(f".{cut}") if cut else path)
    annotation = _annotation(root, path)
    if missing := _MISSING.fullmatch(reason):
        return f"{place}.{missing[1]}: missing"
    if unknown := _UNKNOWN.fullmatch(reason):
        hint = nearest(unknown[1], names_in(annotation))
        return f"{place}.{unknown[1]:.{_SHOWN}}: unknown{hint}"
    if kinds := _WRONG_KIND.fullmatch(reason):
        return f"{place}: {_wrong_kind(kinds[1], kinds[2])}"
    if word := _NO_SUCH_WORD.fullmatch(reason):
        return f"{place}: {word[1]:.{_SHOWN}} is not one of {', '.join(_words(annotation))}"
    if reason.startswith("Expected `") and (wanted := dict.fromkeys(_bounds(annotation))):
        return f"{place}: expected {' or '.join(wanted)}"
    return f"{place}: {reason}"


def _annotation(root: Any, path: str) -> Any:
    steps = tuple(0 if index else name for name, index in _STEP.findall(path))
    try:
        return type_at(root, steps)
    except NoSuchProp:
        return Any


def _wrong_kind(expected: str, got: str) -> str:
    if got == "float" and "int" in expected.split(" | "):
        return "expected whole number, got fraction"
    kinds = list(dict.fromkeys(_KINDS.get(name, name) for name in expected.split(" | ")))
    wanted = f"{', '.join(kinds[:-1])} or {kinds[-1]}" if len(kinds) > 1 else kinds[0]
    return f"expected {wanted}, got {_KINDS.get(got, got)}"


def _words(annotation: Any) -> list[str]:
    return [
        str(word)
        for option in options(annotation)
        if get_origin(option) is Literal
        for word in get_args(option)
    ]


def _bounds(annotation: Any) -> list[str]:
    return [mark.description for mark in bounds(annotation) if mark.description]


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
