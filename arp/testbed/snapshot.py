"""The output of a renderer as text, for snapshots and for the messages of failed tests."""

from __future__ import annotations

from collections.abc import Iterator

from arp.protocol.capabilities import LEVELS
from arp.protocol.catalog import CATALOG, split_children
from arp.protocol.components import Component, from_object
from arp.protocol.connection.screen import Screen, TurnScreen
from arp.surface.degrade import RendererSupport, as_one_text, degrade


def as_seen(component: Component, level: str = "minimal") -> str:
    """Return the text that a renderer of a level shows for a component.

    `as_seen(ui.chart(…))` returns the output of a renderer that supports only text.

    Args:
        component: Component to convert.
        level: `minimal`, `basic` or `standard`.

    Raises:
        ValueError: There is no such level.
    """
    if level not in LEVELS:
        raise ValueError(f"level: expected one of {', '.join(LEVELS)}; got {level!r}")
    supported = RendererSupport(dict.fromkeys(LEVELS[level], 99))
    return "\n".join(map(component_as_text, degrade(component, supported)))


def component_as_text(component: Component) -> str:
    """Return a component as text: its type (except for a text) and its content."""
    content = str(as_one_text(component).props.get("content", ""))
    if component.type == "text":
        return content
    state = component.props.get("state")
    head = f"[{component.type}{'' if state is None else f' {state}'}]"
    return "\n".join((head, *(f"  {line}".rstrip() for line in content.splitlines())))


def turn_as_text(screen: Screen, turn_id: str) -> str:
    """Return a turn on a screen as text: inputs, tools, output, errors and status."""
    turn = screen.turns.get(turn_id, TurnScreen(turn_id))
    lines: list[str] = []
    for echo in turn.inputs:
        text = echo.data.get("text")
        lines.append(f"> {text}" if isinstance(text, str) else f"> [{echo.input_type}] {echo.data}")
    for run in turn.tools:
        status = {None: "runs", True: "done", False: f"failed: {run.error}"}[run.ok]
        lines.append(f"* {run.tool} {run.args}: {status}")
    lines += map(component_as_text, screen.output(turn_id))
    lines += (f"! {error.debug or error.error}" for error in turn.errors)
    shown = "\n".join((*lines, f"= {turn.status}"))
    return "\n".join(line.rstrip() for line in shown.splitlines())


def parts_of(component: Component) -> Iterator[Component]:
    """Yield a component and all components inside it."""
    yield component
    if component.type in CATALOG:
        for child in split_children(component.type, component.props)[1]:
            yield from parts_of(from_object(child))
