"""Where a layout component keeps its children: taken out of its props, and put back.

A tree holds every component as a node of its own, so that a patch reaches a nested one by its id at the
cost of the change alone. On the wire the children stand inside the props.
"""

from __future__ import annotations

from arp.protocol.catalog import CATALOG
from arp.protocol.json_value import Json, JsonObject


def slot_names(type_name: str) -> tuple[str, ...]:
    """Names the props that hold children; empty for all but layout components."""
    spec = CATALOG.get(type_name)
    match spec.slots if spec else None:
        case "children":
            return ("children",)
        case "tabs":
            return ("tabs",)
        case "split":
            return ("left", "right")
    return ()


def take_children(type_name: str, props: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """Splits props into what the component itself says and its children, in order.

    Nothing of `props` is changed; what is not taken apart is shared.
    """
    match slot_names(type_name):
        case ("children",):
            own = {key: value for key, value in props.items() if key != "children"}
            return own, list(props.get("children", ()))
        case ("tabs",):
            tabs = props.get("tabs", ())
            labels = [{k: v for k, v in tab.items() if k != "component"} for tab in tabs]
            return {**props, "tabs": labels}, [tab["component"] for tab in tabs]
        case ("left", "right"):
            own = {key: value for key, value in props.items() if key not in ("left", "right")}
            return own, [props["left"], props["right"]]
    return props, []


def put_children(type_name: str, own: JsonObject, children: list[JsonObject]) -> JsonObject:
    """Is the inverse of `take_children`; gives new props that share what did not change."""
    match slot_names(type_name):
        case ("children",):
            return {**own, "children": children}
        case ("tabs",):
            tabs: list[Json] = [
                {**label, "component": child}
                for label, child in zip(own["tabs"], children, strict=True)
            ]
            return {**own, "tabs": tabs}
        case ("left", "right"):
            return {**own, "left": children[0], "right": children[1]}
    return own
