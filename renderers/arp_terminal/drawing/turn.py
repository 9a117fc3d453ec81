"""Drawings of the parts of a turn: inputs, thinking, errors, and the end of the turn.

Output of the agent is indented by two cells. The first column is reserved for this program, so an
agent cannot imitate the prompt, a note of this program, or the user's words.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from arp.protocol.connection.screen import TurnScreen
from arp.protocol.errors import ErrorPayload, sentence
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import InputEcho
from arp_terminal.drawing.blocks import HangingBlock, cut, indented
from arp_terminal.drawing.palette import BAD, BOLD, DIM, ITALIC, PROMPT_SIGN, USER
from arp_terminal.drawing.props import items, line, lines, number, objects, output
from arp_terminal.options import Options

INDENT = 2
"""Cells before output of the agent."""

SIZE_UNITS = ("kB", "MB", "GB")

THOUGHT_LINES = 3
"""Number of lines of growing thinking that are shown: the last ones."""


def is_said(turn: TurnScreen, place: int) -> bool:
    """Return whether an input is shown as the user's words."""
    echo = turn.inputs[place]
    if echo.input_type == "event":  # it started a turn without words of the user
        return False
    return place == 0 or (echo.source_component is None and echo.input_type != "action")


def draw_input(echo: InputEcho, options: Options, note: str = "") -> RenderableType:
    """Draw an input, with a note after it."""
    text = Text()
    if echo.origin is not None:  # another program sent it
        text.append(f"{line(echo.origin)}: ", style=DIM)
    text.append(input_words(echo), style=BOLD)
    if note:
        text.append(f"  ({note})", style=DIM)
    return HangingBlock(f"{PROMPT_SIGN} " if options.unicode else "> ", text, style=USER)


def input_words(echo: InputEcho) -> str:
    """Return an input as text."""
    data = echo.data
    match echo.input_type:
        case "text":
            return lines(data.get("text"))
        case "voice":
            return lines(data.get("transcript"))
        case "selection":
            return ", ".join(line(value) for value in items(data.get("selected")))
        case "file":
            return _files(data)
        case "form_submit":
            return "(form sent)"
        case "action":
            return f"({line(data.get('action'))})"
        case "navigate":
            return f"(to {line(data.get('route'))})"
    return f"({line(echo.input_type)})"


def _files(data: JsonObject) -> str:
    names = [
        f"{line(file.get('name'))} ({_size(file.get('size'))})"
        for file in objects(data.get("files"))
    ]
    text = lines(data.get("text"))
    return "\n".join([*([text] if text else []), *(f"+ {name}" for name in names)])


def _size(given: Json) -> str:
    """Return a number of bytes as text: 78 bytes, 3.4 kB."""
    size = number(given)
    if size is None or size < 1000:
        return f"{line(given)} {'byte' if size == 1 else 'bytes'}"
    power = min((len(str(int(size))) - 1) // 3, len(SIZE_UNITS))
    scaled = size / 1000**power
    shown = f"{scaled:.1f}".removesuffix(".0") if scaled < 10 else f"{scaled:.0f}"
    return f"{shown} {SIZE_UNITS[power - 1]}"


def draw_thought(thinking: str, options: Options, *, live: bool = False) -> RenderableType:
    """Draw thinking: its last lines while it grows, its beginning afterwards."""
    sign = "∴ " if options.unicode else "~ "
    words = lines(thinking).strip()
    if live:
        recent = "\n".join(words[-600:].split("\n")[-THOUGHT_LINES:])
        return indented(HangingBlock(sign, Text(recent, style=DIM + ITALIC), style=DIM), INDENT)
    summary = cut(
        Text(" ".join(words.split()), style=DIM + ITALIC),
        max(10, options.width - 4),
        options.unicode,
    )
    return indented(HangingBlock(sign, summary, style=DIM), INDENT)


def draw_error(
    error: ErrorPayload, options: Options, errors: Sequence[ErrorPayload] = ()
) -> RenderableType:
    """Draw an error that the agent side sent.

    Args:
        error: The error; its `debug` is drawn as details below it.
        options: How to draw.
        errors: All errors of its turn. If another one has the same message, only the details are
            drawn.
    """
    sign = "✗ " if options.unicode else "! "
    text = Text(sentence(output(error.error)), style=BAD)
    if error.debug is not None:
        if any(other.debug is None and other.error == error.error for other in errors):
            sign, text = "  ", Text("Details:", style=DIM)
        text.append(f"\n{output(error.debug)}", style=DIM)
    return indented(HangingBlock(sign, text, style=BAD), INDENT)


def draw_end(turn: TurnScreen, options: Options) -> RenderableType | None:
    """Draw the end of a turn; `None` if it completed or its errors show the end."""
    if turn.status == "cancelled":
        return indented(Text("■ Stopped" if options.unicode else "# Stopped", style=DIM), INDENT)
    if turn.status == "failed" and not turn.errors:
        return indented(Text("✗ Failed" if options.unicode else "! Failed", style=BAD), INDENT)
    # A restart of the server cut the turn off; the answer will begin another turn.
    if turn.status == "waiting" and turn.final:
        return indented(Text("? Waiting for your answer", style=DIM), INDENT)
    return None
