"""The core components: versions, fallback chains, slots for children, and types of answers.

A tree has one node per component, so that the cost of a patch of a nested component depends on the
change alone. On the wire the children of a layout component are inside its props. `split_children`
separates them, `put_children` puts them back.

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
    """Definition of one component type."""

    name: str
    category: Category
    props: type[msgspec.Struct]
    falls_back_to: str | None
    """Next type of the fallback chain; `None` for `text`, the end of every chain."""
    version: int = 1
    """Newest version known here; versions count from 1."""
    slots: Slots | None = None
    """Layout of the children in the props; `None` for types without children."""
    text_path: str | None = None
    """Prop that a `delta` with this component as `target` extends."""
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
"""All core components by type."""

VERSIONS: Mapping[str, int] = MappingProxyType({spec.name: spec.version for spec in _SPECS})
"""Newest known version of each core component, as offered in `hello`."""


def asks(type_name: str, props: JsonObject) -> bool:
    """Return whether a component may be a question that stays open until it is answered.

    Args:
        type_name: Its type; any custom type may be a question.
        props: Its props without children; a table is a question only if rows can be selected.
    """
    spec = CATALOG.get(type_name)
    if type_name == "table":
        # `selectable` belongs to version 1 of `table`: a table of the draft is answered by a
        # `selection` too, and clients that send names without versions mean version 1.
        return props.get("selectable") in ("one", "many")
    return spec is None or spec.category == "input"


@cache
def chain(type_name: str) -> tuple[str, ...]:
    """Return a core type and its fallback types, in order, ending with `text`.

    Raises:
        KeyError: The type is not in the catalog.
    """
    names = [type_name]
    while (following := CATALOG[names[-1]].falls_back_to) is not None:
        names.append(following)
    return tuple(names)


def is_custom(type_name: str) -> bool:
    """Return whether a name has the form `x-{vendor}-{name}` or `s-{name}`.

    The parts have lower case letters, digits and single hyphens; the whole has up to 64 characters.
    """
    return len(type_name) <= MAX_TYPE_LENGTH and _CUSTOM.fullmatch(type_name) is not None


# -- children --------------------------------------------------------------------------------------

_NAMES = {"children": ("children",), "tabs": ("tabs",), "split": ("left", "right")}

_SLOTS: dict[str, tuple[str, ...]] = {
    spec.name: _NAMES[spec.slots] for spec in CATALOG.values() if spec.slots is not None
}


def slot_names(type_name: str) -> tuple[str, ...]:
    """Return the names of the props that hold children; empty unless it is a layout type."""
    return _SLOTS.get(type_name, ())


def has_free_slots(type_name: str) -> bool:
    """Return whether children can be inserted, removed and moved: true only for a `group`."""
    return _SLOTS.get(type_name) == ("children",)


def may_have_parts(type_name: str) -> bool:
    """Return whether a renderer that does not know the type may show several components instead.

    It may show the children of a layout, or the fallback of a custom component.
    """
    return type_name in _SLOTS or type_name not in CATALOG


def split_children(type_name: str, props: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """Split props into the props without children and the children in order.

    Args:
        type_name: The component's type.
        props: Props that fit the type. They are not changed; the result shares the values that are
            not split.

    Returns:
        The props without children, and the children. A `group` or `tabs` without the prop for
        children has none.

    Raises:
        KeyError, TypeError, AttributeError: The props do not fit the type.
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
    """Return props with children, the inverse of `split_children`; unchanged values are shared."""
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
