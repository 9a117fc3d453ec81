"""What a renderer shows as text: for snapshots, and for the messages of tests that fail."""

from __future__ import annotations

from collections.abc import Iterator

from arp.protocol.capabilities import LEVELS
from arp.protocol.catalog import CATALOG, take_children
from arp.protocol.components import Component, from_object
from arp.protocol.screen import Screen, TurnScreen
from arp.surface.degrade import Supported, as_one_text, degrade


def as_seen(component: Component, level: str = "minimal") -> str:
    """Return a component as text, as a renderer of a level shows it.

    `as_seen(ui.chart(…))` is what a renderer gets that knows texts alone.

    Args:
        component: Any.
        level: `minimal`, `basic` or `standard`.

    Raises:
        ValueError: There is no such level.
    """
    if level not in LEVELS:
        raise ValueError(f"level: expected one of {', '.join(LEVELS)}; got {level!r}")
    supported = Supported(dict.fromkeys(LEVELS[level], 99))
    return "\n".join(map(component_as_text, degrade(component, supported)))


def component_as_text(component: Component) -> str:
    """Return a component as text: its type, unless it is a text, and what it says."""
    said = str(as_one_text(component).props.get("content", ""))
    if component.type == "text":
        return said
    state = component.props.get("state")
    head = f"[{component.type}{'' if state is None else f' {state}'}]"
    return "\n".join((head, *(f"  {line}".rstrip() for line in said.splitlines())))


def turn_as_text(screen: Screen, turn_id: str) -> str:
    """Return all that a screen shows of a turn: inputs, tools, output, errors, its status."""
    turn = screen.turns.get(turn_id, TurnScreen(turn_id))
    lines: list[str] = []
    for echo in turn.inputs:
        said = echo.data.get("text")
        lines.append(f"> {said}" if isinstance(said, str) else f"> [{echo.input_type}] {echo.data}")
    for run in turn.tools:
        ended = {None: "runs", True: "done", False: f"failed: {run.error}"}[run.ok]
        lines.append(f"* {run.tool} {run.args}: {ended}")
    lines += map(component_as_text, screen.output(turn_id))
    lines += (f"! {error.debug or error.error}" for error in turn.errors)
    shown = "\n".join((*lines, f"= {turn.status}"))
    return "\n".join(line.rstrip() for line in shown.splitlines())


def parts_of(component: Component) -> Iterator[Component]:
    """Yield a component, and all that is in it."""
    yield component
    if component.type in CATALOG:
        for child in take_children(component.type, component.props)[1]:
            yield from parts_of(from_object(child))
