"""What a turn shows, in order: items as they are stored, and entries as they are printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.components import Component
from arp.protocol.screen import ToolRun, TurnScreen
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
    """The id of a component or text part, or the number of an input, tool or error of the turn, or
    of a title of the surface."""
    start: int = 0
    """Of a piece of text: its first character in the part."""
    end: int | None = None
    """Of a piece of text: the place after its last character; `None` while it may grow."""
    tight: bool = False
    """Of a piece of text: it continues a list without an empty line before it."""
    number: int | None = None
    """Of a piece of text: the number of the list item that it begins with."""
    fence: str = ""
    """Of a piece of text that begins inside a code block: the line that opened the block."""
    tool_number: int | None = None
    """Number of a tool call in the conversation; `None` if tool calls are not numbered."""


class Entry(Struct, frozen=True):
    """One item as it is to be drawn now."""

    log: str
    """Which turn or surface it belongs to."""
    kind: Kind
    ref: str | int
    start: int
    version: object
    """Equal versions of one entry look equal."""
    draw: Callable[[Options], RenderableType]
    is_fixed: bool
    """Nothing of it will change (or only as an update)."""
    growing: bool = False
    """More of it is coming; it cannot be printed before that."""
    tight: bool = False
    """No empty line before it."""
    is_code: bool = False
    """It is a block of code: no character of it can turn out to be a mark."""
    asks: bool = False
    """It is a question that is open."""
    fingerprint: int = 0
    """Of a component: what `fingerprint` returns for it."""

    @property
    def key(self) -> tuple[str, str, str | int, int]:
        """Identifies the entry."""
        return (self.log, self.kind, self.ref, self.start)


class EntrySource(Struct, frozen=True):
    """What the entries of one turn are made from."""

    key: str
    turn: TurnScreen
    components: Mapping[str, Component]
    over: bool
    """The agent is done with the turn."""
    hold: bool
    """Components stay live while the turn runs."""
    spinner: str = ""
    """The sign of what runs, if it moves."""
    titles: Sequence[str] = ()
    """Those that the surface has had, the last one may say that it is closed."""


def entry_of(item: Item, source: EntrySource, *, last: bool) -> Entry:
    """Return the entry of an item; `last`: nothing follows it yet."""
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
    """Return the entry that shows a printed component again, as an update."""

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
    """Return whether an open question below it asks for permission, with its arguments."""
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
        piece = piece.lstrip(" ")  # after a tool; this is not the indent of a code block
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
    """Return a number that differs if what is shown differs."""
    return hash(msgspec.json.encode(component))
