"""The output of a turn: items, which the log stores, and entries, which are drawn.

An `Item` names one thing at its place in the turn. An `Entry` is made from it for each frame, with
the current content and a version; the drawing of an unchanged version is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.components import Component
from arp.protocol.connection.screen import ToolRun, TurnScreen
from arp_terminal.asking.open_questions import is_open_question
from arp_terminal.drawing.blocks import indented, stack
from arp_terminal.drawing.markdown import markdown
from arp_terminal.drawing.palette import BOLD, DIM
from arp_terminal.drawing.permission import draw_permission, input_of
from arp_terminal.drawing.props import line
from arp_terminal.drawing.tool_run import draw_tool
from arp_terminal.drawing.turn import (
    INDENT,
    draw_end,
    draw_error,
    draw_input,
    draw_thought,
)
from arp_terminal.options import Options
from arp_terminal.render import render

Kind = Literal[
    "title",
    "input",
    "thought",
    "tool",
    "text",
    "component",
    "author",
    "answer",
    "update",
    "error",
    "end",
]


class Item(Struct):
    """One thing that a turn shows, at its place."""

    kind: Kind
    ref: str | int = 0
    """Id of a component or text part; or the index of an input, tool call or error in its turn, or
    of a title of the surface."""
    start: int = 0
    """Index in the text part of the first character of a piece of text."""
    end: int | None = None
    """Index after the last character of a piece of text; `None` while the piece may grow."""
    tight: bool = False
    """Whether a piece of text continues a list without an empty line before it."""
    number: int | None = None
    """Number of the list item that a piece of text begins with."""
    fence: str = ""
    """Line that opened the code block, if a piece of text continues one."""
    tool_number: int | None = None
    """Number of a tool call in the conversation; `None` if tool calls are not numbered."""


class Entry(Struct, frozen=True):
    """One item with its current content."""

    log: str
    """Key of the log of its turn or surface."""
    kind: Kind
    ref: str | int
    start: int
    version: object
    """Version of the content; two entries of one item with equal versions look equal."""
    draw: Callable[[Options], RenderableType]
    is_fixed: bool
    """Whether it is final; a later change of a component is printed as an update."""
    growing: bool = False
    """Whether more of it is coming, so that it cannot be printed yet."""
    tight: bool = False
    """Whether it has no empty line before it."""
    is_code: bool = False
    """Whether it is a block of code, so that no character can turn out to be a mark."""
    asks: bool = False
    """Whether it is an open question."""
    fingerprint: int = 0
    """Result of `fingerprint` for a component."""

    @property
    def key(self) -> tuple[str, str, str | int, int]:
        """Identifies the entry."""
        return (self.log, self.kind, self.ref, self.start)


class EntrySource(Struct, frozen=True):
    """The content of one turn, from which its entries are made."""

    key: str
    turn: TurnScreen
    components: Mapping[str, Component]
    over: bool
    """Whether the turn is over."""
    hold: bool
    """Whether components stay live while the turn runs."""
    spinner: str = ""
    """Current sign of the spinner; empty if nothing is animated."""
    titles: Sequence[str] = ()
    """Titles that the surface has had, oldest first; the last one may say that it is closed."""


def entry_of(item: Item, source: EntrySource, *, last: bool) -> Entry:
    """Return the entry of an item.

    Args:
        item: The item.
        source: The content of its turn.
        last: Whether nothing follows it yet.
    """
    match item.kind:
        case "input":
            return _input(item, source)
        case "title":
            title = line(source.titles[int(item.ref)])
            return _fixed(item, source, lambda options: _heading(title, options))
        case "thought":
            return _thought(item, source, live=last and not source.over)
        case "tool":
            return _tool(item, source)
        case "text":
            return _text(item, source)
        case "error":
            errors = source.turn.errors
            error = errors[int(item.ref)]
            return _fixed(item, source, lambda options: draw_error(error, options, errors))
        case "end":
            turn = source.turn
            return _fixed(item, source, lambda options: draw_end(turn, options) or Text(""))
        case "answer":
            return _component(item, source, is_fixed=True)
    return _component(item, source, is_fixed=source.over or not source.hold)


def _heading(title: str, options: Options) -> RenderableType:
    sign = "▸ " if options.unicode else "- "
    return indented(Text(sign + title, style=BOLD), INDENT)


def update_of(component: Component, source: EntrySource) -> Entry:
    """Return the entry that shows a printed component again, marked as an update."""

    def draw(options: Options) -> RenderableType:
        head = Text("↻ updated" if options.unicode else "(updated)", style=DIM)
        return indented(stack([head, render(component, options)]), INDENT)

    mark = fingerprint(component)
    asks = is_open_question(component)
    return Entry(
        source.key,
        "update",
        component.id,
        0,
        mark,
        draw,
        is_fixed=True,
        asks=asks,
        fingerprint=mark,
    )


def _fixed(item: Item, source: EntrySource, draw: object) -> Entry:
    return Entry(
        source.key,
        item.kind,
        item.ref,
        item.start,
        source.turn.status,
        draw,  # type: ignore[arg-type]  # a drawing
        is_fixed=True,
    )


def _input(item: Item, source: EntrySource) -> Entry:
    echo = source.turn.inputs[int(item.ref)]
    queued = source.turn.status == "queued" and int(item.ref) == 0
    note = f"queued, {source.turn.position or 1} in line" if queued else ""
    return Entry(
        source.key,
        "input",
        item.ref,
        0,
        note,
        lambda options: draw_input(echo, options, note),
        is_fixed=not queued,
    )


def _thought(item: Item, source: EntrySource, *, live: bool) -> Entry:
    thinking = source.turn.thinking
    return Entry(
        source.key,
        "thought",
        item.ref,
        0,
        (len(thinking), live),
        lambda options: draw_thought(thinking, options, live=live),
        is_fixed=not live,
        growing=live,
    )


def _tool(item: Item, source: EntrySource) -> Entry:
    run = source.turn.tools[int(item.ref)]
    runs = run.ok is None and not source.over
    spinner = source.spinner if runs else ""
    is_asking = runs and _asks_permission(run, source)
    return Entry(
        source.key,
        "tool",
        item.ref,
        0,
        (run.ok, run.error, spinner, run.progress, run.result, is_asking),
        lambda options: draw_tool(
            run, options, spinner, is_asking=is_asking, number=item.tool_number
        ),
        is_fixed=not runs,
        growing=runs,
    )


def _asks_permission(run: ToolRun, source: EntrySource) -> bool:
    """Return whether an open question below a tool call asks for permission and shows its input."""
    asked = [
        one.component for one in source.turn.permissions.values() if one.call_id == run.call_id
    ]
    return any(
        one in source.components and is_open_question(source.components[one]) for one in asked
    )


def _text(item: Item, source: EntrySource) -> Entry:
    content: str = source.components[str(item.ref)].props["content"]
    piece = content[item.start : item.end].rstrip("\r\n")
    if not item.fence:
        piece = piece.lstrip("\r\n")
    if item.start and content[item.start - 1] != "\n":
        # A tool call cut the text in the middle of a line. The space that follows would be read
        # as the indent of a code block.
        piece = piece.lstrip(" ")
    return Entry(
        source.key,
        "text",
        item.ref,
        item.start,
        len(piece),
        lambda options: indented(_drawn_text(piece, options, item), INDENT),
        is_fixed=item.end is not None,
        growing=item.end is None,
        tight=item.tight,
        is_code=bool(item.fence) or piece.startswith(("```", "~~~")),
    )


def _drawn_text(piece: str, options: Options, item: Item) -> RenderableType:
    if not piece.strip():
        return stack([])
    narrower = replace(options, width=options.width - INDENT)
    return markdown(piece, narrower, item.number, item.fence)


def _component(item: Item, source: EntrySource, *, is_fixed: bool) -> Entry:
    component = source.components[str(item.ref)]
    asks = is_open_question(component)
    permission = source.turn.permissions.get(component.id) if asks else None

    def draw(options: Options) -> RenderableType:
        if permission is None:
            return indented(render(component, options), INDENT)
        shown = input_of(source.turn, permission)
        return indented(draw_permission(component.props, permission, shown, options), INDENT)

    mark = fingerprint(component)
    return Entry(
        source.key,
        item.kind,
        item.ref,
        0,
        (mark, permission is not None),
        draw,
        is_fixed=is_fixed,
        asks=asks,
        fingerprint=mark,
    )


def fingerprint(component: Component) -> int:
    """Return a number that differs if the component looks different."""
    return hash(msgspec.json.encode(component))
