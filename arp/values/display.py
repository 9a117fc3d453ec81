"""Convert values of agents and tools to components: tables, charts, key-value lists."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from arp.protocol.components import Component, as_object, from_object
from arp.protocol.errors import InvalidComponent
from arp.protocol.json_value import Json, JsonObject
from arp.values.cell import as_json, cell_of
from arp.values.columns import columns_of, is_tabular, marked, name_of_column
from arp.values.pictures import description_of, figure_of_parts, picture_kind, source_of
from arp.values.records import record_of

F = TypeVar("F", bound=Callable[[Any], Any])

_CONVERTERS: Final[dict[type | str, Callable[[Any], Any]]] = {}
"""Registered converters, by type or by its full name."""


def converter(kind: type | str) -> Callable[[F], F]:
    """Register a function that converts a type, for `turn.show` and for results of tools.

        @ui.converter(Invoice)
        def shown(invoice: Invoice) -> Component:
            return ui.key_value({"Number": invoice.number, "Total": invoice.total})

    It is also used for subclasses. A newer converter of the same type replaces the older one. A
    class of your own can have a method `__arp__` instead.

    Args:
        kind: The type, or its full name, such as `"altair.vegalite.v5.api.Chart"`. With a name, the
            module of the type need not be imported.

    Raises:
        TypeError: `kind` is neither a type nor a text.
    """
    if not isinstance(kind, type | str):
        raise TypeError(f"ui.converter: expected a type or its full name, got {kind!r:.60}")

    def add(function: F) -> F:
        _CONVERTERS[kind] = function
        return function

    return add


def component_of(value: Any) -> JsonObject | None:
    """Return the component of a value as plain JSON; `None` if it has no component of its own.

    The following values have one: components, components as JSON, figures, pictures, and values
    with a method `__arp__` or a registered converter.

    Raises:
        InvalidComponent: The figure or picture cannot be shown.
    """
    if isinstance(value, Component):
        return as_object(value)
    converted = _converted(value)
    if converted is not None:
        return converted
    if not isinstance(value, Mapping):
        return None
    is_component = isinstance(value.get("type"), str) and isinstance(value.get("props"), Mapping)
    known = {"id", "type", "props", "version", "fallback"}
    return dict(value) if is_component and known.issuperset(value) else None


def _converted(value: Any) -> JsonObject | None:
    """Return the component from `__arp__`, a converter or a built-in conversion; else `None`."""
    if isinstance(value, type | str | bytes):
        return None
    own = getattr(type(value), "__arp__", None)
    if own is not None:
        return _returned(own(value), f"{type(value).__name__}.__arp__")
    for kind in type(value).__mro__ if _CONVERTERS else ():
        named = f"{kind.__module__}.{kind.__qualname__}"
        convert = _CONVERTERS.get(kind) or _CONVERTERS.get(named)
        if convert is not None:
            return _returned(convert(value), f"the converter of {kind.__name__}")
    if _is_plotly(value):
        from arp.values.plotly_figure import chart_of

        return as_object(chart_of(value))
    if (figure := figure_of_parts(value)) is not None:
        value = figure
    if picture_kind(value) in ("matplotlib", "PIL"):
        props = {"src": source_of(value), "alt": description_of(value)}
        return as_object(Component("", "image", props))
    return None


def _is_plotly(value: Any) -> bool:
    """Return whether a value is a figure of plotly."""
    return any(
        kind.__module__.partition(".")[0] == "plotly" and kind.__name__ == "BaseFigure"
        for kind in type(value).__mro__
    )


def _returned(value: Any, by: str) -> JsonObject:
    component = display_of(value)
    if component is None:
        raise InvalidComponent(f"{by} returned {type(value).__name__}; return a component")
    return component


def display_of(value: Any) -> JsonObject | None:
    """Return the component that shows a value; `None` if there is none, as for a text or a number.

    A data frame or a list of objects becomes a table, and an object becomes a key-value list.

    Raises:
        InvalidComponent: See `component_of`.
    """
    own = component_of(value)
    if own is not None:
        return own
    try:
        columns = None if _is_mapping(value) else columns_of(value)
    except TypeError as error:
        raise InvalidComponent(str(error)) from None
    if columns is not None:
        props: JsonObject = {"headers": columns.names, "rows": columns.rows}
        if columns.mark:
            props["title"] = marked(None, columns.mark)
        return {"type": "table", "props": props}
    record = record_of(value)
    if record:
        items = [
            {"key": name_of_column(name), "value": cell_of(one)} for name, one in record.items()
        ]
        return {"type": "key-value", "props": {"items": items}}
    return None


def display_or_none(value: Any) -> JsonObject | None:
    """Return the result of `display_of`, or `None` if it raises `InvalidComponent`."""
    try:
        return display_of(value)
    except InvalidComponent:
        return None


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def as_component(value: Any, where: str) -> Component:
    """Return the component that shows a value.

    Args:
        value: Any value; a text becomes a text component.
        where: Name of the value in error messages.

    Raises:
        InvalidComponent: The value cannot be shown; the message says what to pass instead.
    """
    if isinstance(value, Component):
        return value
    if isinstance(value, str):
        return Component("", "text", {"content": value})
    try:
        component = display_of(value)
    except InvalidComponent as error:
        raise InvalidComponent(f"{where}: {error.message}") from None
    # A mapping with `type` but without `props` is most likely a mistyped component. Showing it as
    # a key-value list would hide the mistake.
    has_type = isinstance(value, Mapping) and isinstance(value.get("type"), str)
    if component is None or (
        has_type and component["type"] == "key-value" and "props" not in value
    ):
        kind = type(value)
        other = f", and @ui.converter({kind.__name__}) makes one of your own types"
        raise InvalidComponent(
            f"{where}: expected a component, got {kind.__name__}; ui.text(…) is one"
            f"{'' if kind.__module__ == 'builtins' else other}"
        )
    return from_object({"id": "", **component})


def components_of(value: Any, where: str) -> Iterator[Component]:
    """Yield the components that show a value.

    A list of objects becomes one table. In any other list, each item becomes a component.

    Raises:
        InvalidComponent: See `as_component`.
    """
    is_single = isinstance(value, str | bytes | Component | Mapping)
    is_single = is_single or not isinstance(value, Iterable)
    if is_single or is_tabular(value) or _converted(value) is not None:
        yield as_component(value, where)
        return
    items = list(value)
    if items and not any(map(_is_shown, items)) and columns_of(items) is not None:
        yield as_component(items, where)
        return
    for item in items:
        yield as_component(item, where)


def _is_shown(item: Any) -> bool:
    """Return whether an item of a list becomes a component of its own."""
    return isinstance(item, str | Component) or component_of(item) is not None


def text_of(value: Any) -> str:
    """Return a text unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(as_json(value), ensure_ascii=False)


def arguments_of(text: str) -> JsonObject:
    """Return the arguments of a call from JSON; a value other than an object becomes `input`."""
    try:
        parsed: Json = json.loads(text or "{}")
    except ValueError:
        parsed = text
    return parsed if isinstance(parsed, dict) else {"input": parsed}
