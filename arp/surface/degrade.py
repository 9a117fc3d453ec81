"""Degrading: simpler components with the same content, for renderers that do not know a type.

The first possible form is used: the component itself, if its type and version are known; its own
`fallback`; the types of the catalog's fallback chain, down to `text`, which every renderer knows.
The replacement keeps the id of the component. An unknown layout is replaced by its children, in
order and with their own ids. If all children become text, they are joined into one text with the id
of the layout.

Source: protocol.md 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from arp.protocol.catalog import CATALOG, asks, chain, put_children, split_children
from arp.protocol.components import Component, as_object, from_object
from arp.protocol.json_value import Json, JsonObject
from arp.surface.as_text import as_text
from arp.surface.conversions import CONVERSIONS, cut_table

IN_PARTS = "children"
"""Result of `how_shown` for a layout that is replaced by its children."""


_OF_QUESTIONS = ("state", "answer", "can_decline")

_ANSWERS: Mapping[str, type | tuple[type, ...]] = {
    "form": dict,
    "confirm": bool,
    "choices": (str, int, float, list),
    "table": (int, list),
    "text-input": str,
}
"""Type of the answer to each type of question."""


class RendererSupport(msgspec.Struct, frozen=True):
    """The capabilities of a renderer that matter for degrading."""

    versions: Mapping[str, int]
    """Newest known version by component type; `text` counts as known in any case."""
    max_table_rows: int | None = None
    """Number of rows to which tables are cut; `None` for no limit."""

    def knows(self, component: Component) -> bool:
        """Return whether the renderer knows the type and version of a component."""
        known = self.versions.get(component.type, 1 if component.type == "text" else 0)
        return known >= component.version


class _Child(NamedTuple):
    """A child of a layout, with its label in `tabs`."""

    label: str | None
    component: Component


def degrade(component: Component, profile: RendererSupport) -> list[Component]:
    """Return the components that a renderer shows for a component.

    Args:
        component: A component that fits the catalog; it is not changed.
        profile: Capabilities of the renderer.

    Returns:
        One component with the id of the original, or the children of a layout in order, each with
        its own id. The original object itself if the renderer knows all of it.
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
    """Return the whole content of a component as one text with its id."""
    texts = degrade(component, RendererSupport({}, max_table_rows))
    return _text(component.id, _contents(texts))


def answerable(component: Component) -> Component:
    """Return a question that every renderer can answer.

    If the fallback of a custom component is not a question, it is replaced by a text input with the
    text of the fallback. Renderers that do not know the component can then answer with a text.
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


def how_shown(component: Component, profile: RendererSupport) -> dict[str, str]:
    """Map the ids of a component and its descendants to the type they are shown as.

    Returns:
        The component's own type if it is native, the type of its replacement, or `children` for a
        layout that is replaced by its children. A component that became a part of another one has
        the type of that one.
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


def _known(component: Component, profile: RendererSupport) -> Component:
    """Return a component of a known type with its children degraded and its rows cut."""
    spec = CATALOG.get(component.type)
    if component.type == "table" and profile.max_table_rows is not None:
        return _with_props(component, cut_table(component.props, profile.max_table_rows))
    if spec is None or spec.slots is None:
        return component
    own, children = split_children(component.type, component.props)
    shown: list[JsonObject] = []
    for child in children:
        before = from_object(child)
        after = degrade(before, profile)
        if spec.slots != "children" and len(after) != 1:
            # A slot of `tabs` or `split` holds exactly one component.
            after = [as_one_text(before, profile.max_table_rows)]
        shown += [child if one is before else as_object(one) for one in after]
    if len(shown) == len(children) and all(a is b for a, b in zip(shown, children, strict=True)):
        return component
    return _with_props(component, put_children(component.type, own, shown))


def _step_down(component: Component, profile: RendererSupport) -> Component:
    """Return the component as the first known type of its fallback chain, at the latest `text`."""
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


def _taken_apart(component: Component, profile: RendererSupport) -> list[Component]:
    """Return the children of a layout, or one text if all of them have become text."""
    out: list[Component] = []
    lost = True  # whether every child has become text
    for number, part in enumerate(_parts(component)):
        if part.label is not None:
            out.append(_label(component.id, number, part.label))
        shown = degrade(part.component, profile)
        became = [(one.id, one.type) for one in shown]
        # A child that was a text before loses nothing, so it keeps its own id.
        lost = lost and became == [(part.component.id, "text")] and part.component.type != "text"
        out += shown
    return [_text(component.id, _contents(out))] if lost else out


def _parts(component: Component) -> Iterator[_Child]:
    own, children = split_children(component.type, component.props)
    labels = [tab["label"] for tab in own["tabs"]] if component.type == "tabs" else []
    for number, child in enumerate(children):
        yield _Child(labels[number] if labels else None, from_object(child))


def _ids(component: Component) -> Iterator[str]:
    yield component.id
    for part in _parts(component):
        yield from _ids(part.component)


def _with_ids(fallback: Component, component_id: str) -> Component:
    """Return a fallback with the id of its component; derive ids for children without one."""
    own, children = split_children(fallback.type, fallback.props)
    with_ids = [
        as_object(_with_ids(from_object(child), child["id"] or f"{component_id}/{number}"))
        for number, child in enumerate(children)
    ]
    props = put_children(fallback.type, own, with_ids) if with_ids else fallback.props
    return msgspec.structs.replace(fallback, id=component_id, props=props)


def _in_place_of(component: Component, fallback: Component) -> Component:
    """Return a fallback with the id and the question state of its component.

    The answer was given to the component. It is left out if it does not fit the type of the
    fallback.
    """
    shown = _with_ids(fallback, component.id)
    state = {name: component.props[name] for name in _OF_QUESTIONS if name in component.props}
    if "state" not in state or not asks(shown.type, shown.props):
        return shown
    if not isinstance(state.get("answer"), _ANSWERS.get(shown.type, object)):
        state.pop("answer", None)
    return _with_props(shown, {**shown.props, **state})


def _label(component_id: str, number: int, label: str) -> Component:
    """Return the label of a tab as a text; ids of authors have no slash, so this id is unique."""
    return _text(f"{component_id}/tab/{number}", label)


def _text(component_id: str, content: str) -> Component:
    return Component(component_id, "text", {"content": content, "format": "plain"})


def _contents(texts: list[Component]) -> str:
    return "\n\n".join(one.props["content"] for one in texts)


def _with_props(component: Component, props: JsonObject) -> Component:
    if props is component.props:
        return component
    return msgspec.structs.replace(component, props=props)
