"""What a renderer gets in the place of components that it does not know, with the same content.

The order is: the component itself if its type and version are known; its own `fallback`; the
catalog's chain, down to `text`, which every renderer knows. What takes a component's place keeps
its id. A layout that is not known is taken apart: its children stand in its place, in order, each
under its own id; where all of them become text, they are one text under the id of the layout.

Source: protocol.md 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from arp.protocol.catalog import CATALOG, asks, chain, put_children, take_children
from arp.protocol.components import Component, as_object, from_object
from arp.protocol.json_value import Json, JsonObject
from arp.surface.as_text import as_text
from arp.surface.conversions import CONVERSIONS, cut_table

IN_PARTS = "children"
"""What `how_shown` says of a layout in whose place its children stand."""


_OF_QUESTIONS = ("state", "answer", "can_decline")

_ANSWERS: Mapping[str, type | tuple[type, ...]] = {
    "form": dict,
    "confirm": bool,
    "choices": (str, int, float, list),
    "table": (int, list),
    "text-input": str,
}
"""The kind of value that answers each type of question."""


class Supported(msgspec.Struct, frozen=True):
    """What a renderer can show, as far as degrading depends on it."""

    versions: Mapping[str, int]
    """The newest known version by component type; `text` is taken to be known."""
    max_table_rows: int | None = None
    """Tables are cut to so many rows; `None` for no limit."""

    def knows(self, component: Component) -> bool:
        """Return whether the renderer shows this type in this version itself."""
        known = self.versions.get(component.type, 1 if component.type == "text" else 0)
        return known >= component.version


class _Child(NamedTuple):
    """A child of a layout that is taken apart."""

    label: str | None
    component: Component


def degrade(component: Component, profile: Supported) -> list[Component]:
    """Return what a renderer shows in the place of a component.

    Args:
        component: Fits the catalog; not changed.
        profile: What the renderer can show.

    Returns:
        One component with the id of the original; or the parts of a layout in order, each with its
        own id. The original itself where the renderer knows all of it.
    """
    if profile.knows(component):
        return [_known(component, profile)]
    if component.fallback is not None:
        return degrade(_in_place_of(component, component.fallback), profile)
    spec = CATALOG.get(component.type)
    if spec is None:
        return [_text(component.id, f"[{component.type}]")]
    if spec.slots is None:
        return [_step_down(component, profile)]
    group = Component(component.id, "group", {})
    if component.type != "group" and profile.knows(group):
        return degrade(_as_group(component), profile)
    return _taken_apart(component, profile)


def as_one_text(component: Component, max_table_rows: int | None = None) -> Component:
    """Return all that a component says as one text under its id."""
    texts = degrade(component, Supported({}, max_table_rows))
    return _text(component.id, _contents(texts))


def answerable(component: Component) -> Component:
    """Return a question that can be answered on every renderer.

    A custom component whose fallback asks nothing gets a text input with the text of that fallback
    in its place: where the component is not known, a text answers it.
    """
    fallback = component.fallback
    if component.type in CATALOG or fallback is None:
        return component
    if fallback.type not in CATALOG:
        shown = answerable(fallback)
    elif asks(fallback.type, fallback.props):
        shown = fallback
    else:
        label = as_one_text(fallback).props["content"]
        shown = Component(fallback.id, "text-input", {"label": label} if label else {})
    return component if shown is fallback else msgspec.structs.replace(component, fallback=shown)


def how_shown(component: Component, profile: Supported) -> dict[str, str]:
    """Return as which type each component of a tree is shown.

    Returns:
        By id: its own type where it is native, the type that it was degraded to, or `children` for
        a layout in whose place its children stand. What has gone into another component is listed
        as that one.
    """
    shown = degrade(component, profile)
    own = shown[0].type if [one.id for one in shown] == [component.id] else IN_PARTS
    spec = CATALOG.get(own)
    replaced = component.fallback is not None and not profile.knows(component)
    if replaced or (own != IN_PARTS and (spec is None or spec.slots is None)):
        return dict.fromkeys(_ids(component), own)
    shapes = {component.id: own}
    for part in _parts(component):
        below = how_shown(part.component, profile)
        if below[part.component.id] == IN_PARTS and own in ("tabs", "split"):
            below = dict.fromkeys(below, "text")
        shapes.update(below)
    return shapes


def _known(component: Component, profile: Supported) -> Component:
    """Return a component of a known type, with what is in it degraded."""
    spec = CATALOG.get(component.type)
    if component.type == "table" and profile.max_table_rows is not None:
        return _with_props(component, cut_table(component.props, profile.max_table_rows))
    if spec is None or spec.slots is None:
        return component
    own, children = take_children(component.type, component.props)
    shown: list[JsonObject] = []
    for child in children:
        before = from_object(child)
        after = degrade(before, profile)
        if spec.slots != "children" and len(after) != 1:
            after = [as_one_text(before, profile.max_table_rows)]
        shown += [child if one is before else as_object(one) for one in after]
    if len(shown) == len(children) and all(a is b for a, b in zip(shown, children, strict=True)):
        return component
    return _with_props(component, put_children(component.type, own, shown))


def _step_down(component: Component, profile: Supported) -> Component:
    """Return the first form of the catalog's chain that is known, or the last, `text`."""
    for kind in chain(component.type)[1:-1]:
        props = CONVERSIONS[component.type](component.props)
        component = Component(component.id, kind, props)
        if profile.knows(component):
            return _known(component, profile)
    if component.type == "markdown":
        return Component(component.id, "text", {**component.props, "format": "markdown"})
    return _text(component.id, as_text(component.type, component.props, profile.max_table_rows))


def _as_group(component: Component) -> Component:
    """Return tabs or a split as a group; the label of a tab becomes a text before it."""
    children: list[Json] = []
    for number, part in enumerate(_parts(component)):
        if part.label is not None:
            children.append(as_object(_label(component.id, number, part.label)))
        children.append(as_object(part.component))
    props: JsonObject = {"children": children}
    if component.type == "split":
        props["direction"] = component.props.get("direction", "horizontal")
    return Component(component.id, "group", props)


def _taken_apart(component: Component, profile: Supported) -> list[Component]:
    """Return the children of a layout, or one text where all of them have become text."""
    out: list[Component] = []
    lost = True
    for number, part in enumerate(_parts(component)):
        if part.label is not None:
            out.append(_label(component.id, number, part.label))
        shown = degrade(part.component, profile)
        became = [(one.id, one.type) for one in shown]
        lost = lost and became == [(part.component.id, "text")] and part.component.type != "text"
        out += shown
    return [_text(component.id, _contents(out))] if lost else out


def _parts(component: Component) -> Iterator[_Child]:
    own, children = take_children(component.type, component.props)
    labels = [tab["label"] for tab in own["tabs"]] if component.type == "tabs" else []
    for number, child in enumerate(children):
        yield _Child(labels[number] if labels else None, from_object(child))


def _ids(component: Component) -> Iterator[str]:
    yield component.id
    for part in _parts(component):
        yield from _ids(part.component)


def _named(fallback: Component, component_id: str) -> Component:
    """Return a fallback with the id of its component, from which what has no id in it gets one."""
    own, children = take_children(fallback.type, fallback.props)
    named = [
        as_object(_named(from_object(child), child["id"] or f"{component_id}/{number}"))
        for number, child in enumerate(children)
    ]
    props = put_children(fallback.type, own, named) if named else fallback.props
    return msgspec.structs.replace(fallback, id=component_id, props=props)


def _in_place_of(component: Component, fallback: Component) -> Component:
    """Return a fallback under the id of its component; as a question it is as open as that one.

    An answer that does not fit the fallback was given to the component itself, and is left out.
    """
    shown = _named(fallback, component.id)
    told = {name: component.props[name] for name in _OF_QUESTIONS if name in component.props}
    if "state" not in told or not asks(shown.type, shown.props):
        return shown
    if not isinstance(told.get("answer"), _ANSWERS.get(shown.type, object)):
        told.pop("answer", None)
    return _with_props(shown, {**shown.props, **told})


def _label(component_id: str, number: int, label: str) -> Component:
    """Return the label of a tab as a text; no author's id has a slash in it."""
    return _text(f"{component_id}/tab/{number}", label)


def _text(component_id: str, content: str) -> Component:
    return Component(component_id, "text", {"content": content, "format": "plain"})


def _contents(texts: list[Component]) -> str:
    return "\n\n".join(one.props["content"] for one in texts)


def _with_props(component: Component, props: JsonObject) -> Component:
    if props is component.props:
        return component
    return msgspec.structs.replace(component, props=props)
