"""Where a layout component keeps its children: taken out of its props, and put back.

A tree holds every component as a node of its own, so that a patch reaches a nested one by its id at
the cost of the change alone. On the wire the children stand inside the props.
"""

from __future__ import annotations

from arp.protocol.catalog import CATALOG
from arp.protocol.json_value import Json, JsonObject

_NAMES = {"children": ("children",), "tabs": ("tabs",), "split": ("left", "right")}

_SLOTS: dict[str, tuple[str, ...]] = {
    spec.name: _NAMES[spec.slots] for spec in CATALOG.values() if spec.slots is not None
}


def slot_names(type_name: str) -> tuple[str, ...]:
    """Name the props that hold children; empty for all but layout components."""
    return _SLOTS.get(type_name, ())


def has_free_slots(type_name: str) -> bool:
    """Return whether children can be added, taken away and moved: in a `group`."""
    return _SLOTS.get(type_name) == ("children",)


def may_have_parts(type_name: str) -> bool:
    """Return whether a renderer that does not know the type may show several in its place.

    So it is with layouts, whose children can stand for them, and with the fallbacks of custom
    components.
    """
    return type_name in _SLOTS or type_name not in CATALOG


def take_children(type_name: str, props: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """Split props into what the component itself says and its children, in order.

    Args:
        type_name: The component's type.
        props: Its props, which fit that type. Nothing of them is changed; what is not taken apart
            is shared.

    Raises:
        KeyError, TypeError, AttributeError: Props that do not fit the type; what is only missing in
            `group` and `tabs` is no child.
    """
    names = slot_names(type_name)
    if not names:
        return props, []
    own = {key: value for key, value in props.items() if key not in names}
    if names == ("children",):
        return own, list(props.get("children", ()))
    if names == ("tabs",):
        tabs = props.get("tabs", ())
        own["tabs"] = [{k: v for k, v in tab.items() if k != "component"} for tab in tabs]
        return own, [tab["component"] for tab in tabs]
    return own, [props["left"], props["right"]]


def put_children(type_name: str, own: JsonObject, children: list[JsonObject]) -> JsonObject:
    """Do the inverse of `take_children`; return new props that share what did not change."""
    names = slot_names(type_name)
    if names == ("children",):
        return {**own, "children": children}
    if names == ("tabs",):
        tabs: list[Json] = [
            {**label, "component": child}
            for label, child in zip(own["tabs"], children, strict=True)
        ]
        return {**own, "tabs": tabs}
    return {**own, **dict(zip(names, children, strict=True))}
