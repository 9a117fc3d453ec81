"""Values of agents and their tools as something to show: components, tables, names with values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from arp.protocol.components import Component, as_object, from_object
from arp.protocol.errors import InvalidComponent
from arp.protocol.json_value import Json, JsonObject
from arp.values.cell import as_json, cell_of
from arp.values.columns import columns_of, is_tabular, marked, name_of_column
from arp.values.pictures import description_of, picture_kind, source_of
from arp.values.plotly_figure import chart_of, is_plotly
from arp.values.records import record_of

F = TypeVar("F", bound=Callable[[Any], Any])

_CONVERTERS: Final[dict[type | str, Callable[[Any], Any]]] = {}
"""What authors registered: by type, or by its module and name."""


def converter(kind: type | str) -> Callable[[F], F]:
    """Register what makes a component of a type, for `turn.show` and for what tools return.

        @ui.converter(Invoice)
        def shown(invoice: Invoice) -> Component:
            return ui.key_value({"Number": invoice.number, "Total": invoice.total})

    It counts for subclasses too. The newest of one type counts. A class of your own can have a
    method `__arp__` instead.

    Args:
        kind: The type; or its name, as `"altair.vegalite.v5.api.Chart"`, so that nothing has to be
            imported for it.

    Raises:
        TypeError: It is neither.
    """
    if not isinstance(kind, type | str):
        raise TypeError(f"ui.converter: expected a type or its full name, got {kind!r:.60}")

    def add(function: F) -> F:
        _CONVERTERS[kind] = function
        return function

    return add


def component_of(value: Any) -> JsonObject | None:
    """Return the component that a value is, as plain JSON; `None`: it is none.

    It is a `Component`, one as JSON, what `__arp__` or a converter returns, a figure or a picture.

    Raises:
        InvalidComponent: A figure or a picture that cannot be shown.
    """
    if isinstance(value, Component):
        return as_object(value)
    made = _made(value)
    if made is not None:
        return made
    if not isinstance(value, Mapping):
        return None
    is_component = isinstance(value.get("type"), str) and isinstance(value.get("props"), Mapping)
    known = {"id", "type", "props", "version", "fallback"}
    return dict(value) if is_component and known.issuperset(value) else None


def _made(value: Any) -> JsonObject | None:
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
    if is_plotly(value):
        return as_object(chart_of(value))
    if picture_kind(value) in ("matplotlib", "PIL"):
        props = {"src": source_of(value), "alt": description_of(value)}
        return as_object(Component("", "image", props))
    return None


def _returned(made: Any, by: str) -> JsonObject:
    component = shown(made)
    if component is None:
        raise InvalidComponent(f"{by} returned {type(made).__name__}; return a component")
    return component


def shown(value: Any) -> JsonObject | None:
    """Return the component that shows a value; `None` for what is a text or a number.

    A component shows as itself, a data frame or a list of objects as a table, an object as names
    with values.

    Raises:
        InvalidComponent: As `component_of`.
    """
    made = component_of(value)
    if made is not None:
        return made
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


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def as_component(value: Any, where: str) -> Component:
    """Return the component that a value is, or that shows it.

    Args:
        value: Anything; a text shows as it is.
        where: How error messages name it.

    Raises:
        InvalidComponent: There is none; the message says what can be shown.
    """
    if isinstance(value, Component):
        return value
    if isinstance(value, str):
        return Component("", "text", {"content": value})
    try:
        made = shown(value)
    except InvalidComponent as error:
        raise InvalidComponent(f"{where}: {error.message}") from None
    half = isinstance(value, Mapping) and isinstance(value.get("type"), str) and made is not None
    if made is None or (half and made["type"] == "key-value" and "props" not in value):
        raise InvalidComponent(
            f"{where}: expected a component, got {type(value).__name__}; ui.text(…) is one"
        )
    return from_object({"id": "", **made})


def components_of(value: Any, where: str) -> Iterator[Component]:
    """Yield the components that a value is, or that show it: of a list of components each one.

    A list of objects is a table; another list is each of its items.

    Raises:
        InvalidComponent: As `as_component`.
    """
    one = isinstance(value, str | bytes | Component | Mapping) or not isinstance(value, Iterable)
    if one or is_tabular(value) or _made(value) is not None:
        yield as_component(value, where)
        return
    items = list(value)
    if items and not any(map(_is_shown, items)) and columns_of(items) is not None:
        yield as_component(items, where)
        return
    for item in items:
        yield as_component(item, where)


def _is_shown(item: Any) -> bool:
    """Return whether an item of a list shows by itself."""
    return isinstance(item, str | Component) or component_of(item) is not None


def text_of(value: Any) -> str:
    """Return a value as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(as_json(value), ensure_ascii=False)


def arguments_of(text: str) -> JsonObject:
    """Return the arguments of a call, written as JSON, as an object."""
    try:
        parsed: Json = json.loads(text or "{}")
    except ValueError:
        parsed = text
    return parsed if isinstance(parsed, dict) else {"input": parsed}
