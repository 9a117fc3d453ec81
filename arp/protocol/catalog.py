"""The core components: versions, chains of fallback, where children stand, who answers them.

Source: protocol.md 3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

import msgspec

from arp.protocol import components as display
from arp.protocol import input_components as inputs
from arp.protocol import layout_components as layout
from arp.protocol.json_value import JsonObject

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
    ComponentSpec("text", "display", display.TextProps, None, text_path="content"),
    ComponentSpec("markdown", "display", display.MarkdownProps, "text", text_path="content"),
    ComponentSpec("status-card", "display", display.StatusCardProps, "text"),
    ComponentSpec("table", "display", display.TableProps, "text", answered_by="selection"),
    ComponentSpec("code-block", "display", display.CodeBlockProps, "text", text_path="code"),
    ComponentSpec("diff", "display", display.DiffProps, "code-block"),
    ComponentSpec("key-value", "display", display.KeyValueProps, "text"),
    ComponentSpec("progress", "display", display.ProgressProps, "text"),
    ComponentSpec("chart", "display", display.ChartProps, "table"),
    ComponentSpec("image", "display", display.ImageProps, "text"),
    ComponentSpec("product-cards", "display", display.ProductCardsProps, "table"),
    ComponentSpec("form", "input", inputs.FormProps, "text", answered_by="form_submit"),
    ComponentSpec("confirm", "input", inputs.ConfirmProps, "text", answered_by="action"),
    ComponentSpec("choices", "input", inputs.ChoicesProps, "text", answered_by="selection"),
    ComponentSpec("text-input", "input", inputs.TextInputProps, "text", answered_by="text"),
    ComponentSpec("group", "layout", layout.GroupProps, "text", slots="children"),
    ComponentSpec("tabs", "layout", layout.TabsProps, "group", slots="tabs", answered_by="action"),
    ComponentSpec("split", "layout", layout.SplitProps, "group", slots="split"),
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
