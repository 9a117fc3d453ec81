"""The core components: versions, chains of fallback, where children stand, who answers them.

A tree holds every component as a node of its own, so that a patch reaches a nested one by its id at
the cost of the change alone. On the wire the children of a layout component stand inside its props:
here they are taken out of them, and put back.

Source: protocol.md 3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal, TypeAlias

import msgspec

from arp.protocol import components as of
from arp.protocol.json_value import Json, JsonObject

Category: TypeAlias = Literal["display", "input", "layout"]
Slots: TypeAlias = Literal["children", "tabs", "split"]
AnsweredBy: TypeAlias = Literal["form_submit", "action", "selection", "text"]

_CUSTOM = re.compile(r"(?:x-[a-z0-9]+|s)(?:-[a-z0-9]+)+")

MAX_TYPE_LENGTH = 64
"""Longest name of a custom type, in characters."""


class ComponentSpec(msgspec.Struct, frozen=True):
    """What the protocol says about one component type."""

    name: str
    category: Category
    props: type[msgspec.Struct]
    falls_back_to: str | None
    """The next type of the chain; `None` for `text`, where every chain ends."""
    version: int = 1
    """The newest version known here; versions count from 1."""
    slots: Slots | None = None
    """Where its children stand in its props; `None` if it has none."""
    text_path: str | None = None
    """The prop that a `delta` with this component as `target` extends."""
    answered_by: AnsweredBy | None = None
    """The `input_type` that answers it."""


_SPECS = (
    ComponentSpec("text", "display", of.TextProps, None, text_path="content"),
    ComponentSpec("markdown", "display", of.MarkdownProps, "text", text_path="content"),
    ComponentSpec("status-card", "display", of.StatusCardProps, "text"),
    ComponentSpec("table", "display", of.TableProps, "text", answered_by="selection"),
    ComponentSpec("code-block", "display", of.CodeBlockProps, "text", text_path="code"),
    ComponentSpec("diff", "display", of.DiffProps, "code-block"),
    ComponentSpec("key-value", "display", of.KeyValueProps, "text"),
    ComponentSpec("progress", "display", of.ProgressProps, "text"),
    ComponentSpec("chart", "display", of.ChartProps, "table"),
    ComponentSpec("image", "display", of.ImageProps, "text"),
    ComponentSpec("product-cards", "display", of.ProductCardsProps, "table"),
    ComponentSpec("form", "input", of.FormProps, "text", answered_by="form_submit"),
    ComponentSpec("confirm", "input", of.ConfirmProps, "text", answered_by="action"),
    ComponentSpec("choices", "input", of.ChoicesProps, "text", answered_by="selection"),
    ComponentSpec("text-input", "input", of.TextInputProps, "text", answered_by="text"),
    ComponentSpec("group", "layout", of.GroupProps, "text", slots="children"),
    ComponentSpec("tabs", "layout", of.TabsProps, "group", slots="tabs", answered_by="action"),
    ComponentSpec("split", "layout", of.SplitProps, "group", slots="split"),
)

CATALOG: Mapping[str, ComponentSpec] = MappingProxyType({spec.name: spec for spec in _SPECS})
"""Every core component by its type."""

VERSIONS: Mapping[str, int] = MappingProxyType({spec.name: spec.version for spec in _SPECS})
"""The newest known version of every core component, as `hello` offers them."""


def asks(type_name: str, props: JsonObject) -> bool:
    """Return whether a component may be a question that stays open until it is answered.

    Args:
        type_name: Its type; a custom one may be.
        props: Its own: a table asks only where rows can be selected.
    """
    spec = CATALOG.get(type_name)
    if type_name == "table":
        return props.get("selectable") in ("one", "many")
    return spec is None or spec.category == "input"


@cache
def chain(type_name: str) -> tuple[str, ...]:
    """Return a core type and what it falls back to, in declared order, ending in `text`.

    Raises:
        KeyError: The type is not in the catalog.
    """
    names = [type_name]
    while (following := CATALOG[names[-1]].falls_back_to) is not None:
        names.append(following)
    return tuple(names)


def is_custom(type_name: str) -> bool:
    """Return whether a name has the form `x-{vendor}-{name}` or `s-{name}`.

    Lower case letters, digits and single hyphens, up to 64 characters.
    """
    return len(type_name) <= MAX_TYPE_LENGTH and _CUSTOM.fullmatch(type_name) is not None


# -- children --------------------------------------------------------------------------------------

_NAMES = {"children": ("children",), "tabs": ("tabs",), "split": ("left", "right")}

_SLOTS: dict[str, tuple[str, ...]] = {
    spec.name: _NAMES[spec.slots] for spec in CATALOG.values() if spec.slots is not None
}


def slot_names(type_name: str) -> tuple[str, ...]:
    """Return the names of the props that hold children; empty for all but layout components."""
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
